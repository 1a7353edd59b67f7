//! The results of a run, by entry point and by service.

use crate::message::Answer;
use crate::timeline::Timeline;
use corsair_observe::TimesHistogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// The entry points, by name.
    pub entries: BTreeMap<String, EntryTotals>,
    /// The services, by their index in the topology.
    pub services: BTreeMap<u32, ServiceTotals>,
    /// Messages that were lost by faults.
    pub dropped: u64,
    /// The number of instances that have said goodbye at the end of the run.
    pub goodbyes: u32,
    /// The timeline, if one was recorded.
    pub timeline: Option<Timeline>,
}

/// The requests of an entry point, and their outcomes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EntryTotals {
    /// The number of requests, not including puts.
    pub requests: u64,
    /// The number of values put, which are not answered.
    pub puts: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests for values that did not exist.
    pub missing: u64,
    /// Requests that failed at once, because there was no instance to send them to. They are included in the errors,
    /// and have no response time.
    pub unrouted: u64,
    /// Response times in nanoseconds.
    pub times: TimesHistogram,
    /// The ages of the requests that were unanswered at the end, in nanoseconds.
    pub ages: TimesHistogram,
    /// The totals by kind of request, if the entry point has its own load.
    pub kinds: BTreeMap<String, EntryTotals>,
}

/// A percentile of response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    /// The value of the percentile.
    pub time: Duration,
    /// True if the percentile is a lower bound, because some requests that were unanswered at the end had
    /// waited for less than this time.
    pub is_lower_bound: bool,
}

impl EntryTotals {
    /// Returns the number of requests that were unanswered at the end.
    pub fn unanswered(&self) -> u64 {
        self.requests
            .saturating_sub(self.times.len())
            .saturating_sub(self.unrouted)
    }

    /// Returns the quantile of the response times for the fraction `part`, from 0 to 1. Requests that were unanswered
    /// at the end count with the time for which they had waited, because they take at least that long.
    pub fn percentile(&self, part: f64) -> Percentile {
        let nanos = if self.ages.is_empty() {
            self.times.at_most(part)
        } else {
            let mut all = self.times.clone();
            all.merge(&self.ages);
            all.at_most(part)
        };
        let nanos = nanos.unwrap_or(0);
        Percentile {
            time: Duration::from_nanos(nanos),
            is_lower_bound: self.ages.least().is_some_and(|least| least <= nanos),
        }
    }

    /// Counts an answered request with its duration in nanoseconds.
    pub(crate) fn answered(&mut self, lasted: u64, answer: Answer) {
        self.times.record(lasted);
        self.errors += u64::from(answer.is_error());
        self.missing += u64::from(answer == Answer::Missing);
    }

    /// Counts an unanswered request with its age in nanoseconds.
    pub(crate) fn unanswered_at(&mut self, age: u64) {
        self.ages.record(age);
    }

    /// Adds the totals of another instance.
    pub(crate) fn add(&mut self, other: &EntryTotals) {
        self.requests += other.requests;
        self.puts += other.puts;
        self.errors += other.errors;
        self.missing += other.missing;
        self.unrouted += other.unrouted;
        self.times.merge(&other.times);
        self.ages.merge(&other.ages);
        for (kind, totals) in &other.kinds {
            self.kinds.entry(kind.clone()).or_default().add(totals);
        }
    }
}

/// The totals of a service's instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTotals {
    /// Requests that the service answered.
    pub requests: u64,
    /// Messages received that need no answer: values to store, and copies.
    pub one_way: u64,
    /// Requests that failed in the service itself.
    pub errors: u64,
    /// The total time of requests on their way to the service, in its queues and at work, in nanoseconds.
    pub nanos: u64,
    /// The longest queue of an instance.
    pub longest_queue: u64,
    /// The service's own requests that were unanswered at the end.
    pub unanswered: u64,
    /// Requests that the service refused because its queue was full, they had waited too long, or their deadline had
    /// passed.
    pub refused: u64,
    /// The travel time of requests to the service, in nanoseconds.
    pub travelled: u64,
    /// The travel time of the service's answers, in nanoseconds.
    pub returned: u64,
    /// The waiting time of requests in queues or for shared processors, in nanoseconds. This field and the next two
    /// fields exclude the warm-up.
    pub queued: u64,
    /// The time spent on work, in nanoseconds.
    pub worked: u64,
    /// The time in which slots were taken, summed over slots, in nanoseconds.
    pub busy: u64,
    /// Calls and attempts that the service did not make because of a limit, a breaker, a deadline, or the lack of an
    /// instance.
    pub rejected: u64,
    /// Attempts that exceeded their time-out.
    pub timeouts: u64,
    /// Attempts that were retries.
    pub retries: u64,
    /// Attempts that were hedges, made because earlier attempts were slow.
    pub hedges: u64,
    /// Failed steps that had a fallback.
    pub fallbacks: u64,
    /// The number of times that breakers of the service opened.
    pub opened: u64,
    /// The number of instances that an autoscaler has added.
    pub started: u64,
    /// The number of instances that an autoscaler has removed.
    pub stopped: u64,
    /// The number of times that a health check removed an instance from the registries.
    pub ejected: u64,
}

impl ServiceTotals {
    /// Returns the mean time in nanoseconds that the service adds to a request; 0 without requests.
    pub fn adds(&self) -> u64 {
        self.nanos.checked_div(self.requests).unwrap_or(0)
    }
}

impl Totals {
    /// Returns the requests of all entry points.
    pub fn requests(&self) -> u64 {
        self.entries.values().map(|entry| entry.requests).sum()
    }

    /// Returns the failed requests of all entry points.
    pub fn errors(&self) -> u64 {
        self.entries.values().map(|entry| entry.errors).sum()
    }

    /// Returns the service that adds most to a request, if any service has been asked.
    pub fn slowest(&self) -> Option<(u32, ServiceTotals)> {
        let asked = self
            .services
            .iter()
            .filter(|(_, totals)| totals.requests > 0);
        // If several services are equal, the first by index is returned.
        asked
            .rev()
            .max_by_key(|(_, totals)| totals.adds())
            .map(|(&service, totals)| (service, *totals))
    }

    /// Adds the totals of other actors of the same run.
    pub fn merge(&mut self, other: Totals) {
        for (name, entry) in &other.entries {
            self.add_entry_point(name, entry);
        }
        for (&service, done) in &other.services {
            self.add_instance(service, done, done.unanswered);
        }
        self.dropped += other.dropped;
        self.goodbyes += other.goodbyes;
        if let Some(timeline) = &other.timeline {
            self.timeline.get_or_insert_default().merge(timeline);
        }
    }

    pub(crate) fn add_instance(&mut self, service: u32, done: &ServiceTotals, unanswered: u64) {
        let totals = self.services.entry(service).or_default();
        totals.requests += done.requests;
        totals.one_way += done.one_way;
        totals.errors += done.errors;
        totals.nanos += done.nanos;
        totals.longest_queue = totals.longest_queue.max(done.longest_queue);
        totals.unanswered += unanswered;
        totals.refused += done.refused;
        totals.travelled += done.travelled;
        totals.returned += done.returned;
        totals.queued += done.queued;
        totals.worked += done.worked;
        totals.busy += done.busy;
        totals.rejected += done.rejected;
        totals.timeouts += done.timeouts;
        totals.retries += done.retries;
        totals.hedges += done.hedges;
        totals.fallbacks += done.fallbacks;
        totals.opened += done.opened;
        totals.started += done.started;
        totals.stopped += done.stopped;
        totals.ejected += done.ejected;
    }

    pub(crate) fn add_entry_point(&mut self, name: &str, done: &EntryTotals) {
        self.entries.entry(name.to_owned()).or_default().add(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: arch-5.
    #[test]
    fn unanswered_requests_count_in_percentiles_with_their_age() {
        let mut entry = EntryTotals {
            requests: 100,
            ..EntryTotals::default()
        };
        for _ in 0..60 {
            entry.answered(1_000_000, Answer::Found);
        }
        assert_eq!(entry.unanswered(), 40);
        for _ in 0..40 {
            entry.unanswered_at(2_000_000_000);
        }
        let millis = |part| {
            let percentile = entry.percentile(part);
            (percentile.time.as_millis(), percentile.is_lower_bound)
        };
        assert_eq!(millis(0.5), (1, false));
        assert_eq!(millis(0.99), (2_000, true));
    }
}
