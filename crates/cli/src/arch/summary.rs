//! What the summary of a run says of services alone.

use super::spent::Spent;
use crate::options::Options;
use crate::summary::Subject;
use crate::text::{GoDuration, plural};
use corsair::{Executor, Report};
use corsair_arch::{EntryTotals, Percentile, Topology, Totals};
use corsair_observe::{Metric, Observed, ServiceTimes};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What is said of the topology after the run, which takes it.
#[derive(Debug)]
pub struct Described {
    /// What the command calls it.
    arch: String,
    instances: u32,
    services: Vec<String>,
    regions: u32,
    /// The names of all actors, if their totals are written.
    pub actors: Vec<String>,
    /// Which part of their slots or processors services have used.
    pub utilisations: Vec<(u32, f64)>,
    /// Virtual time has no date.
    is_undated: bool,
}

impl Described {
    /// What is said of this topology.
    pub fn new(options: &Options, topology: &Topology) -> Described {
        let services = topology.services.iter();
        let actors = options
            .per_actor
            .iter()
            .flat_map(|_| topology.actor_names());
        Described {
            arch: options.arch.clone(),
            instances: topology.len(),
            services: services.map(|service| service.name.clone()).collect(),
            regions: topology.regions,
            actors: actors.collect(),
            utilisations: Vec::new(),
            is_undated: is_undated(options),
        }
    }
}

/// Whether virtual time has no date: it begins in 1970, where who looks for the last hour finds nothing.
pub fn is_undated(options: &Options) -> bool {
    options.executor == Executor::Virtual && options.epoch.is_none()
}

/// What services have done.
#[derive(Clone, Debug, Serialize)]
pub struct ServicesSummary {
    #[serde(skip)]
    arch: String,
    instances: u32,
    services: usize,
    regions: u32,
    requests: u64,
    errors: u64,
    entries: BTreeMap<String, EntrySummary>,
    /// The service that adds most to a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    slowest: Option<Slowest>,
    /// Where the time goes, by service.
    #[serde(rename = "services_by_name")]
    spent: Spent,
    /// Messages that were lost by faults, dropped by full mailboxes, or sent to actors that had
    /// ended.
    dropped: u64,
    spans: u64,
    incomplete_spans: u64,
    /// Their dates are those of virtual time, which begins in 1970.
    #[serde(skip)]
    is_undated: bool,
    /// The times of each service, if they were measured.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    times: BTreeMap<String, TimesSummary>,
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
    kinds: BTreeMap<String, EntrySummary>,
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

/// The times of a service, in seconds.
#[derive(Clone, Debug, Serialize)]
struct TimesSummary {
    errors: u64,
    #[serde(flatten)]
    metrics: BTreeMap<&'static str, Percentiles>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Percentiles {
    count: u64,
    mean_seconds: f64,
    p50_seconds: f64,
    p90_seconds: f64,
    p99_seconds: f64,
    p999_seconds: f64,
    max_seconds: f64,
}

impl TimesSummary {
    fn new(times: &ServiceTimes) -> TimesSummary {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let metrics = Metric::ALL.into_iter().filter_map(|metric| {
            let histogram = times.histogram(metric)?;
            let at = |quantile| seconds(histogram.value_at_quantile(quantile));
            let percentiles = Percentiles {
                count: histogram.len(),
                mean_seconds: histogram.mean() / 1e9,
                p50_seconds: at(0.5),
                p90_seconds: at(0.9),
                p99_seconds: at(0.99),
                p999_seconds: at(0.999),
                max_seconds: seconds(histogram.max()),
            };
            Some((metric.name(), percentiles))
        });
        TimesSummary {
            errors: times.errors(),
            metrics: metrics.collect(),
        }
    }
}

impl ServicesSummary {
    pub(super) fn new(
        described: &Described,
        report: &Report,
        totals: &Totals,
        observed: &Observed,
    ) -> ServicesSummary {
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
        let times = observed.times.iter();
        ServicesSummary {
            arch: described.arch.clone(),
            instances: described.instances,
            services: described.services.len(),
            regions: described.regions,
            requests: totals.requests(),
            errors: totals.errors(),
            entries: entries.collect(),
            slowest,
            spent: Spent::new(&described.services, totals, &described.utilisations),
            dropped: totals.dropped + report.dropped + report.dead(),
            spans: observed.spans,
            incomplete_spans: observed.incomplete,
            is_undated: described.is_undated,
            times: times
                .filter(|(_, times)| {
                    let measured = |metric| times.histogram(metric).is_some();
                    Metric::ALL.into_iter().any(measured)
                })
                .map(|(service, times)| (service.clone(), TimesSummary::new(times)))
                .collect(),
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
                .map(|(kind, entry)| (kind.clone(), EntrySummary::new(entry)))
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

impl Subject for ServicesSummary {
    fn headline(&self, outcome: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "corsair: {} {outcome}, {} instances of {} services in {} region{}",
            self.arch,
            self.instances,
            self.services,
            self.regions,
            plural(self.regions.into()),
        )
    }

    fn results(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        let Some(slowest) = &self.slowest else {
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
        write!(f, "{}", self.spent)
    }

    fn losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  dropped      {}", self.dropped)?;
        if self.spans > 0 {
            writeln!(
                f,
                "  spans        {}, of which {} have only one end",
                self.spans, self.incomplete_spans
            )?;
            if self.is_undated {
                writeln!(f, "  dates        begin in 1970; --epoch now begins today")?;
            }
        }
        Ok(())
    }
}
