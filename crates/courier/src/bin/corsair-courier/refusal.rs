//! Errors that end the program, including invalid arguments, as one sentence each.

use clap::error::ErrorKind;
use std::process::ExitCode;

/// The exit code if a request was refused or failed.
pub const REFUSED: u8 = 2;

/// Prints the help or version if it was requested, and otherwise the fault in the arguments.
pub fn answer(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is ignored.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        _ => {
            complain(&sentence(error));
            ExitCode::from(REFUSED)
        }
    }
}

/// Prints the reason for which the program ends on stderr.
#[expect(clippy::print_stderr, reason = "a program says why it ends")]
pub fn complain(sentence: &str) {
    eprintln!("corsair-courier: {sentence}");
}

fn sentence(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command given; type `corsair-courier serve`, or --help for all commands"
            .to_owned();
    }
    let text = error.to_string();
    // Below the first paragraph clap repeats the usage.
    let lines = text.lines().take_while(|line| !line.is_empty());
    let lines: Vec<&str> = lines.map(str::trim).collect();
    let line = lines.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line}; `corsair-courier serve --help` lists the flags")
}
