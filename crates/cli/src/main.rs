//! The program `corsair`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(corsair_cli::main(std::env::args_os().skip(1)))
}
