//! The command `corsair`: from flags to calls of the library.

mod arch;
mod checkpoint;
mod cli;
mod cluster;
mod commands;
mod config_file;
mod console;
mod exit_code;
mod flags;
mod format;
mod fsm;
mod interrupt;
mod memory;
mod observed;
mod options;
mod parser;
mod per_actor;
#[cfg(unix)]
mod profile;
#[cfg(not(unix))]
#[path = "profile/unsupported.rs"]
mod profile;
mod progress;
mod session;
mod simulation;
mod summary;
mod text;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os().skip(1)).unwrap_or_else(|error| {
        console::complain(format_args!("{error:#}"));
        ExitCode::from(exit_code::REFUSED)
    })
}
