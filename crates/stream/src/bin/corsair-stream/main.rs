//! The program `corsair-stream`, which sends points from HTTP or a file through tasks.

mod arguments;
mod replay;
mod saving;
mod serve;
mod show;
mod signals;
mod tasks;
mod terminal;

use arguments::{Arguments, StreamSubcommand};
use clap::Parser;
use std::process::ExitCode;
use terminal::complain;

/// The exit code if something was refused, or a task has failed.
const REFUSED: u8 = 2;

/// Runs the command line and returns its exit code.
pub fn main() -> ExitCode {
    terminal::log_to_stderr();
    let code = run();
    terminal::flush();
    code
}

fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            complain(arguments::sentence(&error));
            return ExitCode::from(REFUSED);
        }
        // clap reports `--help` and `--version` as errors.
        Err(error) => {
            terminal::print(&error.to_string());
            return ExitCode::SUCCESS;
        }
    };
    let done = match &arguments.what {
        StreamSubcommand::Serve(arguments) => serve::run(arguments),
        StreamSubcommand::Replay(arguments) => replay::run(arguments),
        StreamSubcommand::Show(arguments) => show::run(arguments),
    };
    done.unwrap_or_else(|error| {
        complain(format_args!("{error:#}"));
        ExitCode::from(REFUSED)
    })
}
