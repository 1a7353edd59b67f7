//! A process, with threads for its three streams. All buffers are bounded.

use super::Program;
use crate::TestError;
use crate::body::MOST_BYTES;
use crate::client::lock;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The largest number of lines that wait to be written to a process.
const MOST_WAITING: usize = 100_000;
/// The largest number of bytes that wait to be written to a process.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// The number of lines of standard error that are shown if a process ends early.
const LAST_LINES: usize = 10;
/// The maximum number of bytes that are read of a line of standard error.
const MOST_STDERR: u64 = 4_096;

/// A message from the threads of a process.
pub(super) enum FromChild {
    /// A line of standard output.
    Line(u32, Vec<u8>),
    /// Standard output has ended.
    Ended(u32),
}

type LastLines = Arc<Mutex<VecDeque<String>>>;

/// A running process, which is ended when it is dropped.
pub(super) struct Child {
    pub(super) name: String,
    process: std::process::Child,
    writer: Writer,
    last_lines: LastLines,
    started: Instant,
}

impl Child {
    pub(super) fn start(
        node: u32,
        name: String,
        program: &Program,
        lines: SyncSender<FromChild>,
    ) -> Result<Child, TestError> {
        let shown = program.bin.display().to_string();
        let failed = |problem| TestError::Start {
            program: shown.clone(),
            problem,
        };
        let bin = program.bin.canonicalize().map_err(failed)?;
        let mut process = Command::new(bin)
            .args(&program.args)
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipes = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        );
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let last_lines = LastLines::default();
        let (sender, receiver) = sync_channel(MOST_WAITING);
        let bytes = Arc::new(AtomicUsize::new(0));
        let (written, last, log) = (
            Arc::clone(&bytes),
            Arc::clone(&last_lines),
            program.log_stderr,
        );
        let prefix = name.clone();
        // The threads end with the process, because they wait only for its streams.
        std::thread::spawn(move || write_lines(stdin, &receiver, &written));
        std::thread::spawn(move || read_lines(node, stdout, &lines));
        std::thread::spawn(move || read_errors(&prefix, BufReader::new(stderr), &last, log));
        Ok(Child {
            writer: Writer {
                name: name.clone(),
                lines: sender,
                bytes,
            },
            name,
            process,
            last_lines,
            started: Instant::now(),
        })
    }

    pub(super) fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// Returns the error for a process that ended during the test.
    pub(super) fn ended(&mut self) -> TestError {
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut status = self.process.try_wait().ok().flatten();
        while status.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            status = self.process.try_wait().ok().flatten();
        }
        // The last lines of the process may still be on their way.
        std::thread::sleep(Duration::from_millis(50));
        let (name, elapsed) = (&self.name, self.started.elapsed());
        let what = match status {
            Some(status) => format!("ended ({status})"),
            None => "closed its standard output".to_owned(),
        };
        let last: Vec<String> = lock(&self.last_lines).iter().cloned().collect();
        let last = match last.is_empty() {
            true => "it wrote nothing to standard error".to_owned(),
            false => format!("its last lines on standard error:\n{}", last.join("\n")),
        };
        TestError::Node(format!("node {name} {what} after {elapsed:.1?}; {last}"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes to a process without waiting.
#[derive(Clone)]
pub(super) struct Writer {
    name: String,
    lines: SyncSender<Vec<u8>>,
    /// The number of bytes that wait to be written.
    bytes: Arc<AtomicUsize>,
}

impl Writer {
    pub(super) fn write(&self, line: Vec<u8>) -> Result<(), TestError> {
        let size = line.len();
        let waiting = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        let sent = match waiting > MOST_WAITING_BYTES {
            true => Err(TrySendError::Full(line)),
            false => self.lines.try_send(line),
        };
        match sent {
            Err(TrySendError::Full(_)) => Err(TestError::Node(format!(
                "node {} does not read its standard input: {waiting} bytes wait",
                self.name
            ))),
            // The process has ended; the end of its standard output reports that.
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
        }
    }
}

fn write_lines(mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>, bytes: &AtomicUsize) {
    while let Ok(line) = lines.recv() {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return;
        }
        bytes.fetch_sub(line.len(), Ordering::Relaxed);
    }
}

fn read_lines(node: u32, stdout: ChildStdout, lines: &SyncSender<FromChild>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        // Reads one byte more than a line may have, to detect a longer line.
        let read = stdout
            .by_ref()
            .take(MOST_BYTES as u64 + 2)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            // The test may be over.
            let _ = lines.send(FromChild::Ended(node));
            return;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if lines.send(FromChild::Line(node, line)).is_err() {
            return;
        }
    }
}

fn read_errors(name: &str, mut stderr: impl BufRead, last: &LastLines, is_shown: bool) {
    loop {
        let mut line = Vec::new();
        let read = stderr
            .by_ref()
            .take(MOST_STDERR)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if is_shown {
            // Nothing can be done about a closed terminal.
            let _ = writeln!(std::io::stderr(), "{name}: {text}");
        }
        let mut last = lock(last);
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(text.to_owned());
    }
}
