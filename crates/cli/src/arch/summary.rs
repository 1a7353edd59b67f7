//! What a run of an architecture has done, as lines for people or as one JSON object.

use super::Described;
use super::options::ArchOptions;
use crate::text::{GoDuration, bytes, rate};
use corsair::{Executor, KindCount, Outcome, Report};
use corsair_arch::{EntryTotals, Percentile, Totals};
use corsair_observe::Observed;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What a run has done. As JSON, times are in seconds and sizes in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    arch: String,
    executor: &'static str,
    seed: u64,
    workers: usize,
    instances: u32,
    services: usize,
    regions: u32,
    /// `completed` or `cut`.
    outcome: &'static str,
    requests: u64,
    errors: u64,
    entries: BTreeMap<String, EntrySummary>,
    /// The service that adds most to a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    slowest: Option<Slowest>,
    messages_total: u64,
    messages: BTreeMap<&'static str, u64>,
    messages_per_second: f64,
    timers: u64,
    /// Messages that were lost by faults, dropped by full mailboxes, or sent to actors that had
    /// ended.
    dropped: u64,
    spans: u64,
    incomplete_spans: u64,
    time_seconds: f64,
    wall_seconds: f64,
    peak_memory_bytes: Option<u64>,
    /// 16 hexadecimal digits; virtual time only.
    digest: Option<String>,
    files: Vec<String>,
    #[serde(skip)]
    kinds: Vec<KindCount>,
    #[serde(skip)]
    time: Duration,
    #[serde(skip)]
    wall: Duration,
}

/// What came in at an entry point.
#[derive(Clone, Debug, Serialize)]
struct EntrySummary {
    requests: u64,
    puts: u64,
    errors: u64,
    missing: u64,
    /// Failed at once: there was no instance to send them to.
    unrouted: u64,
    unanswered: u64,
    p50_seconds: f64,
    p99_seconds: f64,
    p999_seconds: f64,
    /// Which of these may be longer, because some requests were still unanswered at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at_least: Vec<&'static str>,
    /// By kind of request, where the entry point has a load of its own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kinds: BTreeMap<&'static str, EntrySummary>,
    #[serde(skip)]
    percentiles: [Percentile; 3],
}

#[derive(Clone, Debug, Serialize)]
struct Slowest {
    service: String,
    adds_seconds: f64,
    longest_queue: u64,
    #[serde(skip)]
    adds: Duration,
}

impl Summary {
    pub(super) fn new(
        options: &ArchOptions,
        described: &Described,
        report: &Report,
        totals: &Totals,
        observed: &Observed,
        files: Vec<String>,
    ) -> Summary {
        let entries = totals.entries.iter();
        let entries = entries.map(|(name, entry)| (name.clone(), EntrySummary::new(entry)));
        let slowest = totals.slowest().map(|(service, totals)| {
            let adds = Duration::from_nanos(totals.adds());
            Slowest {
                service: described.services[service as usize].clone(),
                adds_seconds: adds.as_secs_f64(),
                longest_queue: totals.longest_queue,
                adds,
            }
        });
        let kinds = report.messages.iter();
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
            instances: described.instances,
            services: described.services.len(),
            regions: described.regions,
            outcome: match report.outcome {
                Outcome::Completed => "completed",
                Outcome::Cut => "cut",
            },
            requests: totals.requests(),
            errors: totals.errors(),
            entries: entries.collect(),
            slowest,
            messages_total: report.delivered(),
            messages: kinds.map(|kind| (kind.kind, kind.count)).collect(),
            messages_per_second: report.rate(),
            timers: report.timers,
            dropped: totals.dropped + report.dropped + report.dead(),
            spans: observed.spans,
            incomplete_spans: observed.incomplete,
            time_seconds: report.time.elapsed().as_secs_f64(),
            wall_seconds: report.wall.as_secs_f64(),
            peak_memory_bytes: corsair::peak_memory().or(report.peak_memory),
            digest: report.digest.map(|digest| format!("{digest:016x}")),
            files,
            kinds: report.messages.clone(),
            time: report.time.elapsed(),
            wall: report.wall,
        }
    }
}

impl EntrySummary {
    fn new(entry: &EntryTotals) -> EntrySummary {
        let percentiles = [0.5, 0.99, 0.999].map(|part| entry.percentile(part));
        let seconds = percentiles.map(|percentile| percentile.time.as_secs_f64());
        let [p50_seconds, p99_seconds, p999_seconds] = seconds;
        let names = ["p50_seconds", "p99_seconds", "p999_seconds"];
        let at_least = names.into_iter().zip(&percentiles);
        let kinds = entry.kinds.iter();
        EntrySummary {
            requests: entry.requests,
            puts: entry.puts,
            errors: entry.errors,
            missing: entry.missing,
            unrouted: entry.unrouted,
            unanswered: entry.unanswered(),
            p50_seconds,
            p99_seconds,
            p999_seconds,
            at_least: at_least
                .filter(|(_, percentile)| percentile.is_lower_bound)
                .map(|(name, _)| name)
                .collect(),
            kinds: kinds
                .map(|(kind, entry)| (*kind, EntrySummary::new(entry)))
                .collect(),
            percentiles,
        }
    }
}

impl EntrySummary {
    /// A line about it.
    fn line(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {name:<12} ")?;
        if self.requests == 0 {
            return writeln!(f, "{} put", self.puts);
        }
        let [p50, p99, p999] = self.percentiles.map(Shown);
        write!(f, "p50 {p50}, p99 {p99}, p99.9 {p999}")?;
        if self.missing > 0 {
            write!(f, ", {} without a value", self.missing)?;
        }
        if self.unanswered > 0 {
            write!(
                f,
                ", {} unanswered, which count with their age",
                self.unanswered
            )?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "corsair: {}{}, {} instances of {} services in {} region{}",
            self.arch,
            if self.outcome == "cut" {
                " cut short by Ctrl-C"
            } else {
                " complete"
            },
            self.instances,
            self.services,
            self.regions,
            plural(self.regions.into()),
        )?;
        writeln!(
            f,
            "  requests     {}, of which {} failed",
            self.requests, self.errors
        )?;
        for (name, entry) in &self.entries {
            entry.line(name, f)?;
            for (kind, entry) in entry.kinds.iter().filter(|_| entry.kinds.len() > 1) {
                entry.line(&format!("  {kind}"), f)?;
            }
        }
        if let Some(slowest) = &self.slowest {
            let adds = GoDuration::rounded(slowest.adds);
            write!(
                f,
                "  slowest      {} adds {adds} to a request",
                slowest.service
            )?;
            if slowest.longest_queue > 0 {
                write!(f, ", its longest queue was {}", slowest.longest_queue)?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "  messages     {} ({} on {}, {} worker{})",
            self.messages_total,
            rate(self.messages_per_second),
            self.executor,
            self.workers,
            plural(self.workers as u64),
        )?;
        let kinds = self.kinds.iter().filter(|kind| kind.count > 0);
        let kinds: Vec<String> = kinds
            .map(|kind| format!("{} {}", kind.kind, kind.count))
            .collect();
        writeln!(f, "  by kind      {}", kinds.join(", "))?;
        writeln!(f, "  dropped      {}", self.dropped)?;
        if self.spans > 0 {
            writeln!(
                f,
                "  spans        {}, of which {} have only one end",
                self.spans, self.incomplete_spans
            )?;
        }
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
        for line in by_directory(&self.files) {
            writeln!(f, "  file         {line}")?;
        }
        match &self.digest {
            Some(digest) => writeln!(f, "  digest       {digest} (seed {})", self.seed),
            None => writeln!(f, "  seed         {}", self.seed),
        }
    }
}

/// A percentile for people.
struct Shown(Percentile);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at_least = if self.0.is_lower_bound {
            "at least "
        } else {
            ""
        };
        write!(f, "{at_least}{}", GoDuration::rounded(self.0.time))
    }
}

/// A line for each file, or for each directory that has more than a few of them.
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

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
