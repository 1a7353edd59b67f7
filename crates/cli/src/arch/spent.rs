//! Lines about the time that requests spend in queues, in processing and in the network, by
//! service.

use crate::text::GoDuration;
use corsair_arch::summary::{ServiceSummaries, ServiceSummary};
use std::fmt;
use std::time::Duration;

/// The maximum number of services with a line. Services that take the least time are left out.
const MOST_LINES: usize = 5;

/// Formats the services that take most of the time of an average request from outside.
pub struct Lines<'a>(pub &'a ServiceSummaries);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut most: Vec<(&String, &ServiceSummary)> = self.0.services.iter().collect();
        most.retain(|(_, service)| service.seconds() > 0.0);
        most.sort_by(|a, b| b.1.seconds().total_cmp(&a.1.seconds()));
        if most.is_empty() || self.0.requests == 0 {
            return Ok(());
        }
        let average = |seconds: f64| {
            let average = seconds / self.0.requests as f64;
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
