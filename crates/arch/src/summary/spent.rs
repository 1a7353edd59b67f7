//! The time that requests spend in queues, at work and in the network, by service.

use crate::totals::{ServiceTotals, Totals};
use serde::Serialize;
use std::collections::BTreeMap;

/// The totals of a service's instances. Times are sums over all requests, in seconds.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "see `ServiceTotals`, whose fields these are")]
pub struct ServiceSummary {
    pub requests: u64,
    pub one_way: u64,
    pub errors: u64,
    pub refused: u64,
    pub unanswered: u64,
    pub longest_queue: u64,
    /// The time that requests waited for a slot, or for their share of processors.
    pub queue_seconds: f64,
    pub work_seconds: f64,
    /// The travel time of requests and answers.
    pub network_seconds: f64,
    /// The utilisation of slots or processors, if they are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// The non-zero counters of the service's policies.
    #[serde(flatten)]
    pub policies: BTreeMap<&'static str, u64>,
}

impl ServiceSummary {
    fn new(done: &ServiceTotals, utilisation: Option<f64>) -> ServiceSummary {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let policies = [
            ("rejected", done.rejected),
            ("timeouts", done.timeouts),
            ("retries", done.retries),
            ("hedges", done.hedges),
            ("fallbacks", done.fallbacks),
            ("opened", done.opened),
            ("started", done.started),
            ("stopped", done.stopped),
            ("ejected", done.ejected),
        ];
        ServiceSummary {
            requests: done.requests,
            one_way: done.one_way,
            errors: done.errors,
            refused: done.refused,
            unanswered: done.unanswered,
            longest_queue: done.longest_queue,
            queue_seconds: seconds(done.queued),
            work_seconds: seconds(done.worked),
            network_seconds: seconds(done.travelled + done.returned),
            utilisation,
            policies: policies
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .collect(),
        }
    }

    /// Returns the total time.
    pub fn seconds(&self) -> f64 {
        self.queue_seconds + self.work_seconds + self.network_seconds
    }
}

/// All services by name.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct ServiceSummaries {
    /// The services by name.
    pub services: BTreeMap<String, ServiceSummary>,
    /// Requests of all entry points.
    #[serde(skip)]
    pub requests: u64,
}

impl ServiceSummaries {
    /// Creates the summary of services with these names, by their index, with their utilisations.
    pub fn new(names: &[String], totals: &Totals, utilisations: &[(u32, f64)]) -> ServiceSummaries {
        let services = totals.services.iter();
        let services = services.map(|(&service, done)| {
            let used = utilisations.iter().find(|(number, _)| *number == service);
            let summary = ServiceSummary::new(done, used.map(|(_, part)| *part));
            (names[service as usize].clone(), summary)
        });
        ServiceSummaries {
            services: services.collect(),
            requests: totals.requests(),
        }
    }
}
