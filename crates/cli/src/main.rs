//! The command `corsair`: from flags to calls of the library.

mod cli;
mod config_file;
mod console;
mod courier;
mod flags;
mod fsm;
mod graph;
mod interrupt;
mod marshal;
mod memory;
mod options;
mod profile;
mod progress;
mod replace;
mod sum;
mod summary;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os().skip(1)).unwrap_or_else(|error| {
        console::complain(format_args!("{error:#}"));
        ExitCode::from(cli::REFUSED)
    })
}
