//! What a run has done, by entry point and by service.

use crate::node::{Load, Served, histogram};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// What a run has done.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The entry points, by name.
    pub entries: BTreeMap<String, Entry>,
    /// The services, by their index in the topology.
    pub services: BTreeMap<u32, ServiceTotals>,
    /// Messages that faults have swallowed.
    pub dropped: u64,
    /// Instances that have said goodbye.
    pub goodbyes: u32,
}

/// What came in at an entry point.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Requests made.
    pub requests: u64,
    /// Values put, which nobody answers.
    pub puts: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests for values that were not there.
    pub missing: u64,
    /// Response times in nanoseconds.
    pub times: Histogram<u64>,
}

impl Entry {
    /// Requests that were still under way at the end.
    pub fn unanswered(&self) -> u64 {
        self.requests.saturating_sub(self.times.len())
    }
}

/// What the instances of a service have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceTotals {
    /// Requests answered and messages taken.
    pub requests: u64,
    /// Requests that it failed by itself.
    pub errors: u64,
    /// Time on the way to it, in its queues and at work, in nanoseconds.
    pub nanos: u64,
    /// The longest queue of an instance.
    pub longest_queue: u64,
    /// Requests of its own that were still under way at the end.
    pub unanswered: u64,
}

impl ServiceTotals {
    /// What it adds to a request, in nanoseconds, on average; 0 without requests.
    pub fn adds(&self) -> u64 {
        self.nanos.checked_div(self.requests).unwrap_or(0)
    }
}

impl Totals {
    /// Requests made at all entry points.
    pub fn requests(&self) -> u64 {
        self.entries.values().map(|entry| entry.requests).sum()
    }

    /// Requests that failed at all entry points.
    pub fn errors(&self) -> u64 {
        self.entries.values().map(|entry| entry.errors).sum()
    }

    /// The service that adds most to a request, if any has been asked.
    pub fn slowest(&self) -> Option<(u32, ServiceTotals)> {
        let asked = self
            .services
            .iter()
            .filter(|(_, totals)| totals.requests > 0);
        // Of equals the first by index.
        asked
            .rev()
            .max_by_key(|(_, totals)| totals.adds())
            .map(|(&service, totals)| (service, *totals))
    }

    pub(crate) fn add_node(&mut self, service: u32, served: &Served, unanswered: u64) {
        let totals = self.services.entry(service).or_default();
        totals.requests += served.requests;
        totals.errors += served.errors;
        totals.nanos += served.nanos;
        totals.longest_queue = totals.longest_queue.max(served.longest_queue);
        totals.unanswered += unanswered;
    }

    pub(crate) fn add_entry(&mut self, name: &str, load: &Load) {
        let entry = self.entries.entry(name.to_owned());
        let entry = entry.or_insert_with(|| Entry {
            requests: 0,
            puts: 0,
            errors: 0,
            missing: 0,
            times: histogram(),
        });
        entry.requests += load.requests;
        entry.puts += load.puts;
        entry.errors += load.errors;
        entry.missing += load.missing;
        entry
            .times
            .add(&load.times)
            .expect("a histogram that grows takes any other");
    }
}
