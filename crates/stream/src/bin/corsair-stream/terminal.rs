//! Terminal output: results on stdout, errors and the log on stderr.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

/// Prints a line.
pub(crate) fn say(line: impl Display) {
    print(&format!("{line}\n"));
}

/// Prints text unchanged. If a reader closes stdout early (`| head -1`), only printing ends.
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

/// Prints an error without waiting for the reader.
pub(crate) fn complain(what: impl Display) {
    stderr().send(format!("corsair-stream: {what}\n").into_bytes());
}

/// Shows warnings and errors of the library on stderr. A node that logs a warning about a point must not wait for a
/// pipe that is not read.
pub(crate) fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(tracing::Level::WARN)
        .init();
}

/// Waits a limited time until all errors are written.
pub(crate) fn flush() {
    let (written, all) = mpsc::channel();
    if stderr().0.try_send(Line::Flush(written)).is_ok() {
        let _ = all.recv_timeout(FLUSH);
    }
}

const FLUSH: Duration = Duration::from_secs(1);

/// The maximum number of lines that wait for stderr; further ones are left out.
const WAITING: usize = 1024;

enum Line {
    Text(Vec<u8>),
    /// Requests a reply when all earlier lines have been written.
    Flush(mpsc::Sender<()>),
}

/// The channel to the thread that writes to stderr.
#[derive(Clone)]
struct Stderr(SyncSender<Line>);

fn stderr() -> Stderr {
    static STDERR: OnceLock<Stderr> = OnceLock::new();
    let start = || {
        let (lines, waiting) = mpsc::sync_channel(WAITING);
        thread::spawn(move || {
            for line in waiting {
                match line {
                    // If stderr is closed, the error cannot be reported.
                    Line::Text(text) => drop(io::stderr().write_all(&text)),
                    Line::Flush(written) => drop(written.send(())),
                }
            }
        });
        Stderr(lines)
    };
    STDERR.get_or_init(start).clone()
}

impl Stderr {
    fn send(&self, text: Vec<u8>) {
        let _ = self.0.try_send(Line::Text(text));
    }
}

impl Write for Stderr {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.send(text.to_vec());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
