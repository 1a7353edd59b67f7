//! Terminal output: lines on stdout, progress on stderr.
//!
//! If a reader closes stdout early (`| head -1`), only the printing stops: the run continues, writes its files, and
//! reports no error.

use anyhow::{Context, Result, anyhow};
use corsair_observe::Replacement;
use parking_lot::Mutex;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The destination of lines.
#[derive(Debug)]
pub struct Console {
    /// True if lines are printed. If false, only [`Console::print`] prints.
    lines: bool,
    closed: AtomicBool,
    talk: Mutex<Option<Talk>>,
    bar: Mutex<Option<indicatif::ProgressBar>>,
}

impl Console {
    /// Creates a console that prints all lines, or only the output of [`Console::print`].
    pub fn new(lines: bool) -> Console {
        let (talk, bar) = (Mutex::new(None), Mutex::new(None));
        Console {
            lines,
            closed: AtomicBool::new(false),
            talk,
            bar,
        }
    }

    /// Prints a line, if this console prints lines.
    pub fn line(&self, line: impl Display) {
        if self.lines {
            self.print(|out| writeln!(out, "{line}"));
        }
    }

    /// Calls `write` with stdout.
    pub fn print(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let print = || {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out).and_then(|()| out.flush())
        };
        let bar = self.bar.lock();
        let printed = match &*bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        };
        drop(bar);
        if let Err(error) = printed {
            self.closed.store(true, Ordering::Relaxed);
            if error.kind() != io::ErrorKind::BrokenPipe {
                complain(format_args!("cannot write to stdout: {error}"));
            }
        }
    }

    /// Records that the talk begins, with its duration in the time of the run.
    pub fn talking(&self, talk: Duration) {
        *self.talk.lock() = Some(Talk::begins(talk));
    }

    /// Returns the talk, if it has begun.
    pub fn talk(&self) -> Option<Talk> {
        *self.talk.lock()
    }

    /// Sets the progress bar that must not be mixed with lines, or removes it.
    pub fn set_bar(&self, bar: Option<indicatif::ProgressBar>) {
        *self.bar.lock() = bar;
    }
}

/// The talk of a run: the time at which it started on the wall clock, and its duration in the time of the run.
#[derive(Clone, Copy, Debug)]
pub struct Talk {
    began: Instant,
    takes: Duration,
}

impl Talk {
    /// Creates a talk that begins now.
    pub fn begins(takes: Duration) -> Talk {
        let began = Instant::now();
        Talk { began, takes }
    }

    /// Returns the wall-clock time since the talk began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the duration of the talk in the time of the run.
    pub fn takes(&self) -> Duration {
        self.takes
    }
}

/// Buffered stdout. If its reader closes it, later output is dropped, and the run continues.
#[derive(Debug)]
pub struct Stdout {
    out: Option<BufWriter<io::Stdout>>,
}

impl Stdout {
    /// Creates a buffered stdout.
    pub fn new() -> Stdout {
        let out = Some(BufWriter::with_capacity(1 << 16, io::stdout()));
        Stdout { out }
    }

    fn when_open<T>(
        &mut self,
        nothing: T,
        act: impl FnOnce(&mut BufWriter<io::Stdout>) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(out) = &mut self.out else {
            return Ok(nothing);
        };
        match act(out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // Dropping the writer would try to write the buffer again.
                if let Some(out) = self.out.take() {
                    drop(out.into_parts());
                }
                Ok(nothing)
            }
            other => other,
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.when_open(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.when_open((), Write::flush)
    }
}

/// Writes a text to the file of `--out`, which it replaces, or prints it if no file is given.
///
/// # Errors
/// If the file cannot be written.
pub fn write_or_print(out: Option<&Path>, text: &str) -> Result<()> {
    match out {
        None => Console::new(true).print(|out| out.write_all(text.as_bytes())),
        Some(path) => {
            let mut file = Replacement::begin(path).context("--out")?;
            let written = file.writer().write_all(text.as_bytes());
            written.map_err(|error| anyhow!(file.failed(error)))?;
            file.finish().context("--out")?;
        }
    }
    Ok(())
}

/// Prints an error on stderr.
pub fn complain(what: impl Display) {
    // If stderr is closed, the error cannot be reported.
    let _ = writeln!(io::stderr(), "corsair: {what}");
}
