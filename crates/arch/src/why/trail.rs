//! The records of requests in an explained run: one for each visit, work and call, until the request from
//! outside is answered. Then its critical path is added to the sums, and its records are dropped.

use super::path::{self, Sums};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// A part of the life of a request. Times are in nanoseconds; a span names a visit of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// A service has answered.
    Visit {
        span: u64,
        service: u32,
        arrived: u64,
        began: u64,
        ended: u64,
    },
    /// Work during a visit, with the time of waiting for shared processors and the delay by a fault.
    Work {
        span: u64,
        from: u64,
        to: u64,
        waited: u64,
        slowed: u64,
    },
    /// An answered call, made during the visit `parent`.
    Call {
        parent: u64,
        span: u64,
        service: u32,
        sent: u64,
        received: u64,
    },
    /// A call that timed out, made during the visit `parent`.
    GivenUp {
        parent: u64,
        service: u32,
        sent: u64,
        until: u64,
    },
}

/// The criteria for explained requests.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The smallest response time in nanoseconds.
    pub(crate) least: u64,
    /// Kinds of requests by entry point and number; `None` for all.
    pub(crate) kinds: Option<Vec<(u32, u64)>>,
}

/// The requests of a run, and the sums of their critical paths.
#[derive(Debug)]
pub(crate) struct Trail {
    wanted: Wanted,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The records of open requests, by the span of the request from outside.
    open: FxHashMap<u64, Vec<Record>>,
    sums: Sums,
}

/// The maximum number of open requests that are recorded; further ones are not explained.
const MOST_OPEN: usize = 50_000;
/// A request with more records than this is not explained.
const MOST_RECORDS: usize = 4_096;

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
            state.sums.left_out += 1;
        }
    }

    /// Records that a service has answered a request from outside.
    pub(crate) fn close(&self, trace: u64, service: u32, sent: u64, received: u64) {
        let mut state = self.state.lock();
        let Some(records) = state.open.remove(&trace) else {
            return;
        };
        if received - sent >= self.wanted.least {
            path::add(
                &records,
                (trace, service),
                (sent, received),
                &mut state.sums,
            );
        }
    }

    /// Returns the sums of all requests that were answered.
    pub(crate) fn take(&self) -> Sums {
        std::mem::take(&mut self.state.lock().sums)
    }
}
