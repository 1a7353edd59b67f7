//! The command `corsair`: from flags to calls of the library.

mod arch;
mod capacity;
mod check;
mod checkpoint;
mod cli;
mod cluster;
mod compare;
mod compose;
mod config_file;
mod console;
mod diff;
mod exit_code;
mod flags;
mod fork;
mod format;
mod fsm;
mod interrupt;
mod learn;
mod marshal;
mod memory;
mod observed;
mod options;
mod per_actor;
mod plan;
#[cfg(unix)]
mod profile;
#[cfg(not(unix))]
#[path = "profile/unsupported.rs"]
mod profile;
mod progress;
mod resume;
mod session;
mod simulation;
mod sum;
mod summary;
mod sweep;
mod text;
mod usl;
mod variants;
mod view;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os().skip(1)).unwrap_or_else(|error| {
        console::complain(format_args!("{error:#}"));
        ExitCode::from(exit_code::REFUSED)
    })
}
