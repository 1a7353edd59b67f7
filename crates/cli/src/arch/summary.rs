//! The part of a run's summary that is specific to services.

use super::spent::Lines;
use crate::options::Options;
use crate::summary::Subject;
use crate::text::{GoDuration, plural};
use corsair::{Executor, Report};
use corsair_arch::summary::{EntrySummary, ServicesSummary, TopologyNames};
use corsair_arch::{Percentile, Topology, Totals};
use corsair_observe::OutputSummary;
use serde::Serialize;
use std::fmt;

/// The names of the topology, kept for the summary because the run consumes the topology.
#[derive(Debug)]
pub struct SummaryNames {
    /// The name on the command line.
    arch: String,
    named: TopologyNames,
    /// The names of all actors, if their totals are written.
    pub actors: Vec<String>,
    /// The utilisation of slots or processors of services.
    pub utilisations: Vec<(u32, f64)>,
    /// True if dates are of virtual time, which starts in 1970.
    is_undated: bool,
}

impl SummaryNames {
    /// Copies the names of this topology.
    pub fn new(options: &Options, topology: &Topology) -> SummaryNames {
        let actors = options
            .per_actor
            .iter()
            .flat_map(|_| topology.actor_names());
        SummaryNames {
            arch: options.arch.clone(),
            named: TopologyNames::new(topology),
            actors: actors.collect(),
            utilisations: Vec::new(),
            is_undated: is_undated(options),
        }
    }
}

/// True if flows have dates of virtual time, which starts in 1970. A search for the last hour does not find such flows.
pub fn is_undated(options: &Options) -> bool {
    options.executor == Executor::Virtual && options.epoch.is_none()
}

/// The summary of services, with the fields that only the text form shows.
#[derive(Clone, Debug, Serialize)]
pub struct ServicesReport {
    #[serde(flatten)]
    summary: ServicesSummary,
    /// The name on the command line.
    #[serde(skip)]
    arch: String,
    /// True if dates are of virtual time, which starts in 1970.
    #[serde(skip)]
    is_undated: bool,
}

impl ServicesReport {
    pub(super) fn new(
        described: &SummaryNames,
        report: &Report,
        totals: &Totals,
        observed: &OutputSummary,
    ) -> ServicesReport {
        let (named, utilisations) = (&described.named, &described.utilisations);
        ServicesReport {
            summary: ServicesSummary::new(named, utilisations, report, totals, observed),
            arch: described.arch.clone(),
            is_undated: described.is_undated,
        }
    }
}

/// Writes a line about an entry point.
fn line(entry: &EntrySummary, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "  {name:<12} ")?;
    if entry.requests == 0 {
        return writeln!(f, "{} put", entry.puts);
    }
    match entry.percentiles.map(|all| all.map(DisplayPercentile)) {
        Some([p50, p95, p99, p999]) => {
            write!(f, "p50 {p50}, p95 {p95}, p99 {p99}, p99.9 {p999}")?;
        }
        None => write!(f, "no answers")?,
    }
    if entry.missing > 0 {
        write!(f, ", {} without a value", entry.missing)?;
    }
    if entry.unanswered > 0 {
        write!(
            f,
            ", {} unanswered, which count with their age",
            entry.unanswered
        )?;
    }
    writeln!(f)
}

/// A percentile in text form.
struct DisplayPercentile(Percentile);

impl fmt::Display for DisplayPercentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at_least = if self.0.is_lower_bound {
            "at least "
        } else {
            ""
        };
        write!(f, "{at_least}{}", GoDuration::rounded(self.0.time))
    }
}

impl Subject for ServicesReport {
    fn headline(&self, outcome: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "corsair: {} {outcome}, {} instances of {} services in {} region{}",
            self.arch,
            self.summary.instances,
            self.summary.services,
            self.summary.regions,
            plural(self.summary.regions.into()),
        )
    }

    fn results(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  requests     {}, of which {} failed",
            self.summary.requests, self.summary.errors
        )?;
        for (name, entry) in &self.summary.entries {
            line(entry, name, f)?;
            for (kind, entry) in entry.kinds.iter().filter(|_| entry.kinds.len() > 1) {
                line(entry, &format!("  {kind}"), f)?;
            }
        }
        let Some(slowest) = &self.summary.slowest else {
            return Ok(());
        };
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
        write!(f, "{}", Lines(&self.summary.spent))
    }

    fn losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  dropped      {}", self.summary.dropped)?;
        if self.summary.spans > 0 {
            writeln!(
                f,
                "  spans        {}, of which {} have only one end",
                self.summary.spans, self.summary.incomplete_spans
            )?;
            if self.is_undated {
                writeln!(f, "  dates        begin in 1970; --epoch now begins today")?;
            }
        }
        Ok(())
    }
}
