//! The records of requests in an explained run: one for each visit, work and call, until the request from
//! outside is answered. Then its critical path is added to the sums, and its records are dropped.

use super::path::{self, Sums};
use super::record::Record;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Selects the requests of a run whose critical paths are recorded.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Kinds of requests by entry point and number; `None` for all.
    pub(crate) kinds: Option<Vec<(u32, u64)>>,
    /// True if only slow requests are explained, which are known when the run has ended.
    pub(crate) slow: bool,
}

/// The requests of a run, and the sums of their critical paths.
///
/// The sums are kept separately by response time, because the percentile that separates slow requests from others is
/// known only at the end. The number of sums is bounded: if there are too many, the sums of the fastest requests are
/// dropped.
#[derive(Debug)]
pub(crate) struct Trail {
    wanted: Wanted,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The records of open requests, by the span of the request from outside.
    open: FxHashMap<u64, Vec<Record>>,
    /// The sums by [`bucket`].
    sums: BTreeMap<u64, Sums>,
    /// The number of parts of all sums.
    parts: usize,
    /// The number of requests whose sums were dropped, by bucket.
    dropped: BTreeMap<u64, u64>,
    /// The number of requests with too many records.
    left_out: u64,
}

/// The maximum number of open requests that are recorded; further ones are not explained.
const MOST_OPEN: usize = 50_000;
/// The maximum number of records of a request. Requests with more records are not explained.
const MOST_RECORDS: usize = 4_096;
/// The maximum number of parts of all sums.
const MOST_PARTS: usize = 1_000_000;

/// Returns the number of a range of response times, whose width is at most 1/4096 of them.
fn bucket(nanos: u64) -> u64 {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(13);
    (u64::from(shift) << 13) + (nanos >> shift)
}

impl Trail {
    pub(crate) fn new(wanted: Wanted) -> Trail {
        Trail {
            wanted,
            state: Mutex::default(),
        }
    }

    /// Records that an entry point sends a request of a kind.
    pub(crate) fn open(&self, trace: u64, entry: u32, kind: u64) {
        let kinds = self.wanted.kinds.as_ref();
        if kinds.is_some_and(|kinds| !kinds.contains(&(entry, kind))) {
            return;
        }
        let mut state = self.state.lock();
        if state.open.len() < MOST_OPEN {
            state.open.insert(trace, Vec::new());
        }
    }

    /// Adds a record to an open request.
    pub(crate) fn add(&self, trace: u64, record: Record) {
        let mut state = self.state.lock();
        let Some(records) = state.open.get_mut(&trace) else {
            return;
        };
        records.push(record);
        if records.len() > MOST_RECORDS {
            state.open.remove(&trace);
            state.left_out += 1;
        }
    }

    /// Records that a service has answered a request from outside.
    pub(crate) fn close(&self, trace: u64, service: u32, sent: u64, received: u64) {
        let mut state = self.state.lock();
        let Some(records) = state.open.remove(&trace) else {
            return;
        };
        let bucket = match self.wanted.slow {
            true => bucket(received - sent),
            false => 0,
        };
        state.explain(bucket, &records, (trace, service), (sent, received));
    }

    /// Returns the sums of the requests that took at least this number of nanoseconds.
    pub(crate) fn take(&self, least: u64) -> Sums {
        let state = std::mem::take(&mut *self.state.lock());
        let first = match self.wanted.slow {
            true => bucket(least),
            false => 0,
        };
        let mut all = Sums {
            left_out: state.left_out + state.dropped.range(first..).map(|(_, of)| of).sum::<u64>(),
            ..Sums::default()
        };
        state
            .sums
            .range(first..)
            .for_each(|(_, sums)| all.merge(sums));
        all
    }
}

impl State {
    /// Adds the critical path of a request to a bucket.
    fn explain(&mut self, bucket: u64, records: &[Record], from: (u64, u32), times: (u64, u64)) {
        if self
            .dropped
            .last_key_value()
            .is_some_and(|(last, _)| bucket <= *last)
        {
            *self.dropped.entry(bucket).or_default() += 1;
            return;
        }
        let sums = self.sums.entry(bucket).or_default();
        let before = sums.parts.len();
        path::add(records, from, times, sums);
        self.parts += sums.parts.len() - before;
        while self.parts > MOST_PARTS
            && let Some((lowest, sums)) = self.sums.pop_first()
        {
            self.parts -= sums.parts.len();
            *self.dropped.entry(lowest).or_default() += sums.requests;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_with_the_time_and_are_narrow() {
        let mut last = 0;
        for nanos in (0..20_000).chain((15..63).map(|bits| 1 << bits)) {
            let of = bucket(nanos);
            assert!(of >= last, "{nanos}");
            assert!(bucket(nanos + nanos / 4_000 + 1) > of, "{nanos}");
            last = of;
        }
    }

    #[test]
    fn what_does_not_fit_is_the_fastest_and_is_counted() {
        let mut state = State {
            parts: MOST_PARTS - 1,
            ..State::default()
        };
        let mut answer = |nanos: u64| state.explain(bucket(nanos), &[], (1, 0), (0, nanos));
        answer(5_000_000);
        answer(9_000_000);
        answer(1_000_000);
        answer(8_000_000);
        let trail = Trail {
            wanted: Wanted {
                kinds: None,
                slow: true,
            },
            state: Mutex::new(state),
        };
        let slow = trail.take(2_000_000);
        // The part that was counted before stands for others; one sum fits beside it.
        assert_eq!((slow.requests, slow.left_out), (1, 2));
        assert_eq!(slow.nanos, 9_000_000);
    }
}
