//! Where the time of requests goes: in queues, at work and on the way, by service.

use crate::text::GoDuration;
use corsair_arch::{ServiceTotals, Totals};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Services that take least are left out of the lines.
const MOST_LINES: usize = 5;

/// What the instances of a service have done. Times are the sums over all requests, in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceSummary {
    requests: u64,
    one_way: u64,
    errors: u64,
    refused: u64,
    unanswered: u64,
    longest_queue: u64,
    /// Requests that waited for a slot.
    queue_seconds: f64,
    work_seconds: f64,
    /// Requests and answers on their way.
    network_seconds: f64,
    /// Which part of its slots or processors was in use, if their number is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    utilisation: Option<f64>,
    /// What its policies did, where that is not nothing.
    #[serde(flatten)]
    policies: BTreeMap<&'static str, u64>,
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

    fn seconds(&self) -> f64 {
        self.queue_seconds + self.work_seconds + self.network_seconds
    }
}

/// All services by their names.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Spent {
    services: BTreeMap<String, ServiceSummary>,
    /// Requests made at all entry points.
    #[serde(skip)]
    requests: u64,
}

impl Spent {
    pub fn new(names: &[String], totals: &Totals, utilisations: &[(u32, f64)]) -> Spent {
        let services = totals.services.iter();
        let services = services.map(|(&service, done)| {
            let used = utilisations.iter().find(|(number, _)| *number == service);
            let summary = ServiceSummary::new(done, used.map(|(_, part)| *part));
            (names[service as usize].clone(), summary)
        });
        Spent {
            services: services.collect(),
            requests: totals.requests(),
        }
    }
}

impl fmt::Display for Spent {
    /// The services that take most of the time, on average for a request from outside.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut most: Vec<(&String, &ServiceSummary)> = self.services.iter().collect();
        most.retain(|(_, service)| service.seconds() > 0.0);
        most.sort_by(|a, b| b.1.seconds().total_cmp(&a.1.seconds()));
        if most.is_empty() || self.requests == 0 {
            return Ok(());
        }
        let average = |seconds: f64| {
            let average = seconds / self.requests as f64;
            GoDuration::rounded(Duration::from_secs_f64(average)).to_string()
        };
        let line = |f: &mut fmt::Formatter<'_>, name: &str, parts: [f64; 3]| {
            let [queue, work, network] = parts.map(average);
            writeln!(
                f,
                "    {name:<22} queue {queue:<8} work {work:<8} network {network}"
            )
        };
        let parts = |service: &ServiceSummary| {
            let ServiceSummary {
                queue_seconds,
                work_seconds,
                network_seconds,
                ..
            } = service;
            [*queue_seconds, *work_seconds, *network_seconds]
        };
        writeln!(f, "  time goes to, per request from outside")?;
        for (name, service) in most.iter().take(MOST_LINES) {
            line(f, name, parts(service))?;
        }
        let rest = most.iter().skip(MOST_LINES);
        let rest = rest.map(|(_, service)| parts(service));
        let rest = rest.reduce(|a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
        match rest {
            Some(rest) => line(f, "other services", rest),
            None => Ok(()),
        }
    }
}
