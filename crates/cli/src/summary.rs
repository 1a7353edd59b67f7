//! The summary of a run, as lines of text or as one JSON object.

use crate::options::Options;
use crate::text::{GoDuration, bytes, plural, rate};
use corsair::{Executor, KindCount, Outcome, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The summary of a run, with the part `S` of its workload. In JSON, times are in seconds and sizes in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<S> {
    arch: String,
    executor: &'static str,
    seed: u64,
    workers: usize,
    /// The outcome: `completed` or `cancelled`.
    outcome: &'static str,
    #[serde(flatten)]
    subject: S,
    messages_total: u64,
    messages: BTreeMap<&'static str, u64>,
    messages_per_second: f64,
    timers: u64,
    spawned: u64,
    ended: u64,
    waiting: u64,
    panics: Vec<String>,
    time_seconds: f64,
    wall_seconds: f64,
    windows: u64,
    peak_memory_bytes: Option<u64>,
    /// The digest as 16 hexadecimal digits; only in virtual time.
    digest: Option<String>,
    files: Vec<String>,
    /// The statistics of each process, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<ProcessSummary>,
    #[serde(skip)]
    kinds: Vec<KindCount>,
    #[serde(skip)]
    time: Duration,
    #[serde(skip)]
    wall: Duration,
}

/// The exchange statistics of one process of a distributed run.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessSummary {
    /// The share of the run's time in which the process exchanged batches with the others, or waited for them.
    pub exchange_share: f64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub peak_memory_bytes: Option<u64>,
}

/// The workload's part of a summary.
pub trait Subject: Serialize {
    /// Writes the first line: the workload and its outcome.
    ///
    /// # Errors
    /// Returns the errors of the formatter, as all of these methods do.
    fn headline(&self, outcome: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Writes the lines about the results.
    fn results(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Returns details about the execution, which follow the executor and its workers.
    fn how(&self) -> String {
        String::new()
    }

    /// Writes the lines about losses.
    fn losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl<S: Subject> Summary<S> {
    /// Creates the summary of a run with these options.
    pub fn new(options: &Options, report: &Report, subject: S, files: Vec<String>) -> Summary<S> {
        let messages = report.messages.iter();
        Summary {
            arch: options.arch.clone(),
            executor: match report.executor {
                Executor::Virtual => "virtual",
                Executor::Tokio => "tokio",
                Executor::Threads => "threads",
                Executor::Pool => "pool",
            },
            seed: report.seed,
            workers: report.workers,
            outcome: match report.outcome {
                Outcome::Completed => "completed",
                Outcome::Cancelled => "cancelled",
                Outcome::Running => "running",
            },
            subject,
            messages_total: report.delivered(),
            messages: messages.map(|kind| (kind.kind, kind.count)).collect(),
            messages_per_second: report.rate(),
            timers: report.timers,
            spawned: report.spawned,
            ended: report.ended,
            waiting: report.waiting_total,
            panics: report.panics.iter().map(ToString::to_string).collect(),
            time_seconds: report.time.elapsed().as_secs_f64(),
            wall_seconds: report.wall.as_secs_f64(),
            windows: report.windows,
            peak_memory_bytes: corsair::peak_memory().or(report.peak_memory),
            digest: report.digest.map(|digest| format!("{digest:016x}")),
            files,
            processes: Vec::new(),
            kinds: report.messages.clone(),
            time: report.time.elapsed(),
            wall: report.wall,
        }
    }
}

impl<S> Summary<S> {
    /// Converts the summary to the summary of a run over several processes.
    pub fn over(mut self, processes: Vec<ProcessSummary>) -> Summary<S> {
        self.processes = processes;
        self
    }
}

impl<S: Subject> fmt::Display for Summary<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            "cancelled" => "cancelled by Ctrl-C",
            _ => "complete",
        };
        self.subject.headline(outcome, f)?;
        self.subject.results(f)?;
        writeln!(
            f,
            "  messages     {} ({} on {}, {} worker{}{})",
            self.messages_total,
            rate(self.messages_per_second),
            self.executor,
            self.workers,
            plural(self.workers as u64),
            self.subject.how(),
        )?;
        // Kinds without messages are left out, unless no kind has messages.
        let some = self.kinds.iter().any(|kind| kind.count > 0);
        let kinds = self.kinds.iter().filter(|kind| kind.count > 0 || !some);
        let kinds: Vec<String> = kinds
            .map(|kind| format!("{} {}", kind.kind, kind.count))
            .collect();
        writeln!(f, "  by kind      {}", kinds.join(", "))?;
        self.subject.losses(f)?;
        let time = match self.executor {
            "virtual" => "virtual",
            _ => "of the run",
        };
        let [lasted, wall] = [self.time, self.wall].map(GoDuration::rounded);
        writeln!(
            f,
            "  time         {lasted} {time}, {wall} on the wall clock"
        )?;
        if let Some(peak) = self.peak_memory_bytes {
            writeln!(f, "  peak memory  {}", bytes(peak))?;
        }
        for (number, process) in self.processes.iter().enumerate() {
            let percent = |share: f64| format!("{:.0} %", share * 100.0);
            write!(
                f,
                "  process {number}    {} of the time in exchange, {} sent, {} received",
                percent(process.exchange_share),
                bytes(process.sent_bytes),
                bytes(process.received_bytes)
            )?;
            match process.peak_memory_bytes {
                Some(peak) => writeln!(f, ", {} of memory", bytes(peak))?,
                None => writeln!(f)?,
            }
        }
        for panic in &self.panics {
            writeln!(f, "  panic        {panic}")?;
        }
        for line in by_directory(&self.files) {
            writeln!(f, "  file         {line}")?;
        }
        match &self.digest {
            Some(digest) => writeln!(f, "  digest       {digest} (seed {})", self.seed),
            None => writeln!(f, "  seed         {}", self.seed),
        }
    }
}

/// Returns a line for each file, or one line for a directory that has more than a few files.
fn by_directory(files: &[String]) -> Vec<String> {
    const FEW: usize = 3;
    let directory = |file: &str| {
        file.rsplit_once('/')
            .map(|(directory, _)| directory.to_owned())
    };
    let mut lines: Vec<String> = Vec::new();
    for file in files {
        let Some(here) = directory(file) else {
            lines.push(file.clone());
            continue;
        };
        let all = files
            .iter()
            .filter(|other| directory(other).as_ref() == Some(&here));
        let line = match all.count() {
            0..=FEW => file.clone(),
            many => format!("{here}/ ({many} files)"),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
