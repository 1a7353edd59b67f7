//! What is said on the terminal: results on stdout, what went wrong and the log on stderr.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Prints a line.
pub(crate) fn say(line: impl Display) {
    print(&format!("{line}\n"));
}

/// Prints text as it is. A reader that closes stdout early (`| head -1`) ends the printing and
/// nothing else.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(format_args!("cannot write to stdout: {error}"));
        }
        _ => {}
    }
}

/// Says what went wrong.
pub(crate) fn complain(what: impl Display) {
    // If stderr is closed, there is no place left to say so.
    let _ = writeln!(io::stderr(), "corsair-stream: {what}");
}

/// Shows what the library logs, warnings and errors, on stderr.
pub(crate) fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(tracing::Level::WARN)
        .init();
}
