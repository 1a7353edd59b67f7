//! The results of a run of services, as JSON.

use super::spent::ServiceSummaries;
use crate::topology::Topology;
use crate::totals::{EntryTotals, Percentile, Totals};
use corsair::Report;
use corsair_observe::{Metric, OutputSummary, ServiceTimes};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The names of a topology, for reports after the run, which consumes the topology.
#[derive(Clone, Debug)]
pub struct TopologyNames {
    /// The number of instances.
    pub instances: u32,
    /// The names of the services, by their index.
    pub services: Vec<String>,
    /// The number of regions.
    pub regions: u32,
}

impl TopologyNames {
    /// Copies the names of a topology.
    pub fn new(topology: &Topology) -> TopologyNames {
        let services = topology.services.iter();
        TopologyNames {
            instances: topology.len(),
            services: services.map(|service| service.name.clone()).collect(),
            regions: topology.regions,
        }
    }
}

/// The totals of services.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ServicesSummary {
    pub instances: u32,
    pub services: usize,
    pub regions: u32,
    pub requests: u64,
    pub errors: u64,
    pub entries: BTreeMap<String, EntrySummary>,
    /// The service that adds most to a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
    /// The time spent in each service.
    #[serde(rename = "services_by_name")]
    pub spent: ServiceSummaries,
    /// Messages that were lost by faults, dropped by full mailboxes, or sent to actors that had
    /// ended.
    pub dropped: u64,
    pub spans: u64,
    pub incomplete_spans: u64,
    /// The times of each service, if they were measured.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub times: BTreeMap<String, TimesSummary>,
}

/// The requests of an entry point.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "see `EntryTotals`, whose fields these are")]
pub struct EntrySummary {
    pub requests: u64,
    pub puts: u64,
    pub errors: u64,
    pub missing: u64,
    /// Requests that failed at once because there was no instance to send them to.
    pub unrouted: u64,
    pub unanswered: u64,
    /// Percentiles of response times; `None` if there were no requests.
    pub p50_seconds: Option<f64>,
    pub p95_seconds: Option<f64>,
    pub p99_seconds: Option<f64>,
    pub p999_seconds: Option<f64>,
    /// The percentiles that are lower bounds, because some requests were unanswered at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<&'static str>,
    /// The totals by kind of request, if the entry point has its own load.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, EntrySummary>,
    #[serde(skip)]
    pub percentiles: Option<[Percentile; 4]>,
}

/// The service that adds most to a request.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Slowest {
    pub service: String,
    pub adds_seconds: f64,
    pub longest_queue: u64,
    #[serde(skip)]
    pub adds: Duration,
}

/// The times of a service, in seconds.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TimesSummary {
    pub errors: u64,
    #[serde(flatten)]
    pub metrics: BTreeMap<&'static str, Percentiles>,
}

/// Percentiles of times, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub count: u64,
    pub mean_seconds: f64,
    pub p50_seconds: f64,
    pub p90_seconds: f64,
    pub p95_seconds: f64,
    pub p99_seconds: f64,
    pub p999_seconds: f64,
    pub max_seconds: f64,
}

impl TimesSummary {
    fn new(times: &ServiceTimes) -> TimesSummary {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let metrics = Metric::ALL.into_iter().filter_map(|metric| {
            let histogram = times.histogram(metric)?;
            let at = |quantile| seconds(histogram.at_most(quantile).unwrap_or(0));
            let percentiles = Percentiles {
                count: histogram.len(),
                mean_seconds: histogram.mean().unwrap_or(0.0) / 1e9,
                p50_seconds: at(0.5),
                p90_seconds: at(0.9),
                p95_seconds: at(0.95),
                p99_seconds: at(0.99),
                p999_seconds: at(0.999),
                max_seconds: seconds(histogram.greatest().unwrap_or(0)),
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
    /// Summarises a run. `utilisations` contains, for services with a limit, the index and the utilisation of slots or
    /// processors.
    pub fn new(
        named: &TopologyNames,
        utilisations: &[(u32, f64)],
        report: &Report,
        totals: &Totals,
        observed: &OutputSummary,
    ) -> ServicesSummary {
        let entries = totals.entries.iter();
        let entries = entries.map(|(name, entry)| (name.clone(), EntrySummary::new(entry)));
        let slowest = totals.slowest().map(|(service, totals)| {
            let adds = Duration::from_nanos(totals.adds());
            Slowest {
                service: named.services[service as usize].clone(),
                adds_seconds: adds.as_secs_f64(),
                longest_queue: totals.longest_queue,
                adds,
            }
        });
        let times = observed.times.iter();
        ServicesSummary {
            instances: named.instances,
            services: named.services.len(),
            regions: named.regions,
            requests: totals.requests(),
            errors: totals.errors(),
            entries: entries.collect(),
            slowest,
            spent: ServiceSummaries::new(&named.services, totals, utilisations),
            dropped: totals.dropped + report.dropped + report.dead(),
            spans: observed.spans,
            incomplete_spans: observed.incomplete,
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
    /// Creates the summary of an entry point.
    pub fn new(entry: &EntryTotals) -> EntrySummary {
        let has_times = !entry.times.is_empty() || !entry.ages.is_empty();
        let parts = [0.5, 0.95, 0.99, 0.999];
        let percentiles = has_times.then(|| parts.map(|part| entry.percentile(part)));
        let seconds = percentiles.map(|all| all.map(|one| one.time.as_secs_f64()));
        let at = |place: usize| seconds.map(|seconds| seconds[place]);
        let names = ["p50_seconds", "p95_seconds", "p99_seconds", "p999_seconds"];
        let at_least = names.into_iter().zip(percentiles.iter().flatten());
        let kinds = entry.kinds.iter();
        EntrySummary {
            requests: entry.requests,
            puts: entry.puts,
            errors: entry.errors,
            missing: entry.missing,
            unrouted: entry.unrouted,
            unanswered: entry.unanswered(),
            p50_seconds: at(0),
            p95_seconds: at(1),
            p99_seconds: at(2),
            p999_seconds: at(3),
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
