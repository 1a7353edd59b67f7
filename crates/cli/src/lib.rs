//! The command `corsair` as a function, so that the Python package can provide the command as well.

mod arch;
mod checkpoint;
mod chosen;
mod cli;
mod cluster;
mod commands;
mod complete;
mod config_file;
mod console;
mod driver;
mod ending;
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
mod style;
mod summary;
mod text;
mod workload;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Runs the command with these arguments, which do not include the program's name. Output goes to standard output and
/// standard error. Returns the exit code.
pub fn main(args: impl Iterator<Item = OsString>) -> u8 {
    let code = cli::main(args).unwrap_or_else(|error| {
        console::complain(format_args!("{error:#}"));
        ExitCode::from(exit_code::REFUSED)
    });
    // A host program does not flush Rust's standard output when it exits.
    let _ = std::io::stdout().flush();
    // The number of an `ExitCode` cannot be read, so it is found by comparison.
    (0..=u8::MAX)
        .find(|&number| ExitCode::from(number) == code)
        .unwrap_or(1)
}
