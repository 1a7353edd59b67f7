//! The result of a test.

use crate::Test;
use crate::client::Collected;
use crate::history::{Record, to_json};
use crate::workload::{Findings, Workload};
use corsair_check::Outcome;
use std::collections::BTreeMap;
use std::fmt;

/// The result of a test. Its `Display` output is for human readers.
#[derive(Clone, Debug)]
pub struct Report {
    workload: String,
    /// The operations of all clients, ordered by the time of their calls.
    pub history: Vec<Record>,
    /// The findings of the checkers.
    pub findings: Findings,
    /// The number of messages of each kind.
    pub messages: Messages,
    /// The share of operations that succeeded, from 0 to 1.
    pub ok_fraction: f64,
    /// The digest of a run whose nodes are actors: the same for any number of workers.
    pub digest: Option<u64>,
    counts: BTreeMap<&'static str, [u64; 3]>,
}

/// The numbers of messages of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Messages that clients sent or received.
    pub clients: u64,
    /// Messages delivered between nodes and services.
    pub nodes: u64,
    /// Messages that the network lost.
    pub lost: u64,
}

impl Report {
    pub(crate) fn new(
        test: &Test,
        workload: &dyn Workload,
        collected: Collected,
        run: &corsair::Report,
        other: u64,
    ) -> Report {
        let mut history = collected.history;
        history.sort_by_key(|record| (record.call, record.process));
        let mut counts: BTreeMap<&'static str, [u64; 3]> = BTreeMap::new();
        for record in &history {
            let index = match &record.outcome {
                Outcome::Ok(_) => 0,
                Outcome::Failed(_) => 1,
                Outcome::Unknown => 2,
            };
            counts.entry(record.function).or_default()[index] += 1;
        }
        let sum = |index: usize| counts.values().map(|counts| counts[index]).sum::<u64>();
        let ok_fraction = sum(0) as f64 / (history.len() as f64).max(1.0);
        let mut findings = workload.check(&history);
        for (function, [ok, failed, unknown]) in &counts {
            if *ok == 0 && !workload.may_always_fail(function) {
                let text = format!(
                    "none of {} operations '{function}' succeeded",
                    failed + unknown
                );
                findings.violations.push(text);
            }
        }
        if let Some(least) = test.availability.filter(|least| ok_fraction < *least) {
            let text = format!("{ok_fraction:.4} of operations succeeded; expected {least}");
            findings.violations.push(text);
        }
        if history.is_empty() {
            findings.undecided = Some("there was no operation".to_owned());
        }
        Report {
            workload: test.workload.clone(),
            messages: Messages {
                clients: collected.messages,
                // Excludes the notifications of finished clients, and the messages from processes
                // to their actors.
                nodes: run.delivered().saturating_sub(collected.messages + other),
                lost: run.lost,
            },
            history,
            findings,
            ok_fraction,
            digest: run.digest,
            counts,
        }
    }

    /// Returns true if there is no violation, and the check could decide.
    pub fn is_valid(&self) -> bool {
        self.findings.violations.is_empty() && self.findings.undecided.is_none()
    }

    /// Returns the history as lines of JSON that `corsair check` reads.
    pub fn to_json(&self) -> String {
        to_json(&self.history)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} operations", self.workload, self.history.len())?;
        for (function, [ok, failed, unknown]) in &self.counts {
            writeln!(
                f,
                "  {function:<12} {ok} ok, {failed} failed, {unknown} unknown"
            )?;
        }
        let Messages {
            clients,
            nodes,
            lost,
        } = self.messages;
        let each = nodes as f64 / (self.history.len() as f64).max(1.0);
        writeln!(
            f,
            "  messages     {clients} of clients, {nodes} between nodes ({each:.2} an operation), {lost} lost"
        )?;
        for note in &self.findings.notes {
            writeln!(f, "  {note}")?;
        }
        for violation in &self.findings.violations {
            writeln!(f, "{violation}")?;
        }
        match &self.findings.undecided {
            _ if !self.findings.violations.is_empty() => writeln!(f, "INVALID"),
            Some(reason) => writeln!(f, "unknown: {reason}"),
            None => writeln!(f, "valid"),
        }
    }
}
