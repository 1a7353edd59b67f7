//! What a run has done, as lines for people or as one JSON object.

use crate::options::Options;
use crate::text::{GoDuration, bytes, rate};
use corsair::fsm::{Form, Tally};
use corsair::{Executor, KindCount, Outcome, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What a run has done. As JSON, times are in seconds and sizes in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    arch: String,
    executor: &'static str,
    form: &'static str,
    seed: u64,
    workers: usize,
    pirates: u32,
    /// `completed` or `cut`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<Delivery>,
    messages_total: u64,
    messages: BTreeMap<&'static str, u64>,
    messages_per_second: f64,
    timers: u64,
    dead_letters_total: u64,
    dead_letters: BTreeMap<&'static str, u64>,
    dropped: u64,
    spawned: u64,
    ended: u64,
    waiting: u64,
    panics: Vec<String>,
    time_seconds: f64,
    wall_seconds: f64,
    windows: u64,
    peak_memory_bytes: Option<u64>,
    /// 16 hexadecimal digits; virtual time only.
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gold: Option<Gold>,
    files: Vec<String>,
    #[serde(skip)]
    kinds: Vec<KindCount>,
    #[serde(skip)]
    time: Duration,
    #[serde(skip)]
    wall: Duration,
}

/// The FSM's first messages.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Delivery {
    /// How many.
    pub messages: u64,
    /// From the first sending until all were handled, by the wall clock.
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Gold {
    minted: u64,
    returned: u64,
    salvaged: u64,
    missing: i64,
    goodbyes: u32,
}

impl Summary {
    /// The summary of a run with these options.
    pub fn new(
        options: &Options,
        report: &Report,
        pirates: u32,
        delivered: Option<Delivery>,
        tally: Option<Tally>,
        files: Vec<String>,
    ) -> Summary {
        let counts =
            |kinds: &[KindCount]| kinds.iter().map(|kind| (kind.kind, kind.count)).collect();
        Summary {
            arch: options.arch.clone(),
            executor: match report.executor {
                Executor::Virtual => "virtual",
                Executor::Tokio => "tokio",
                Executor::Threads => "threads",
                Executor::Pool => "pool",
            },
            form: match options.form {
                Form::Async => "async",
                Form::Handler => "handler",
            },
            seed: report.seed,
            workers: report.workers,
            pirates,
            outcome: match report.outcome {
                Outcome::Completed => "completed",
                Outcome::Cut => "cut",
            },
            delivered,
            messages_total: report.delivered(),
            messages: counts(&report.messages),
            messages_per_second: report.rate(),
            timers: report.timers,
            dead_letters_total: report.dead(),
            dead_letters: counts(&report.dead_letters),
            dropped: report.dropped,
            spawned: report.spawned,
            ended: report.ended,
            waiting: report.waiting_total,
            panics: report.panics.iter().map(ToString::to_string).collect(),
            time_seconds: report.time.elapsed().as_secs_f64(),
            wall_seconds: report.wall.as_secs_f64(),
            windows: report.windows,
            peak_memory_bytes: corsair::peak_memory().or(report.peak_memory),
            digest: report.digest.map(|digest| format!("{digest:016x}")),
            gold: tally.map(|tally| Gold {
                minted: tally.minted,
                returned: tally.returned,
                salvaged: tally.salvaged,
                missing: tally.missing_gold(),
                goodbyes: tally.goodbyes,
            }),
            files,
            kinds: report.messages.clone(),
            time: report.time.elapsed(),
            wall: report.wall,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.workers == 1 { "" } else { "s" };
        writeln!(
            f,
            "  messages     {} ({} on {}, {} worker{plural}, {} form)",
            self.messages_total,
            rate(self.messages_per_second),
            self.executor,
            self.workers,
            self.form,
        )?;
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|kind| format!("{} {}", kind.kind, kind.count))
            .collect();
        writeln!(f, "  by kind      {}", kinds.join(", "))?;
        write!(f, "  dead letters {}", self.dead_letters_total)?;
        if self.dropped > 0 {
            write!(f, ", and {} dropped by full mailboxes", self.dropped)?;
        }
        let time = if self.executor == "virtual" {
            "virtual"
        } else {
            "of the run"
        };
        let (lasted, wall) = (
            GoDuration::rounded(self.time),
            GoDuration::rounded(self.wall),
        );
        writeln!(
            f,
            "\n  time         {lasted} {time}, {wall} on the wall clock"
        )?;
        if let Some(peak) = self.peak_memory_bytes {
            writeln!(f, "  peak memory  {}", bytes(peak))?;
        }
        for panic in &self.panics {
            writeln!(f, "  panic        {panic}")?;
        }
        if let Some(gold) = self
            .gold
            .filter(|gold| gold.missing != 0 || gold.goodbyes != self.pirates)
        {
            let missing = self.pirates - gold.goodbyes.min(self.pirates);
            writeln!(
                f,
                "  missing      {} gold, {missing} goodbyes",
                gold.missing
            )?;
        }
        for file in &self.files {
            writeln!(f, "  file         {file}")?;
        }
        match &self.digest {
            Some(digest) => writeln!(f, "  digest       {digest} (seed {})", self.seed),
            None => writeln!(f, "  seed         {}", self.seed),
        }
    }
}
