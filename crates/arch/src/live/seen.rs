//! The visible history of an instance in a paused run.

use super::Times;
use crate::message::{Answer, Msg};
use crate::totals::ServiceTotals;
use corsair::Addr;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// The recorded history of an instance while it is watched.
#[derive(Debug, Default)]
pub(crate) struct InstanceHistory {
    /// The calls to each called instance, in the order of the first call, and an index by instance.
    pub(crate) calls: Vec<(u32, Calls)>,
    places: FxHashMap<u32, u32>,
    /// The last index by the low bits of the called instance, which saves most look-ups.
    near: [u32; 16],
    /// The period in which `spans` and `messages` were recorded; see [`Model::details`](crate::model::Model::details).
    pub(crate) period: u32,
    pub(crate) spans: RecentRing<SpanSeen, SPANS>,
    /// Received messages: time, sender and contents.
    pub(crate) messages: RecentRing<(u64, Addr, Msg), MESSAGES>,
}

/// The number of recent answers and messages stored for an instance. A small number saves memory traffic, because every
/// interval touches the histories of all instances.
const SPANS: usize = 32;
const MESSAGES: usize = 16;

/// A ring of the `N` most recent items; `N` is a power of two.
#[derive(Debug)]
pub(crate) struct RecentRing<T, const N: usize> {
    items: Vec<T>,
    /// The number of items added since the beginning.
    added: usize,
}

impl<T, const N: usize> Default for RecentRing<T, N> {
    fn default() -> RecentRing<T, N> {
        const { assert!(N.is_power_of_two()) };
        let items = Vec::new();
        RecentRing { items, added: 0 }
    }
}

impl<T, const N: usize> RecentRing<T, N> {
    #[inline]
    pub(crate) fn push(&mut self, new: T) {
        match self.items.get_mut(self.added % N) {
            Some(oldest) => *oldest = new,
            None => self.items.push(new),
        }
        self.added = self.added.wrapping_add(1);
    }

    fn clear(&mut self) {
        self.items.clear();
        self.added = 0;
    }

    /// Iterates over the stored entries, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let oldest = if self.items.len() < N {
            0
        } else {
            self.added % N
        };
        let (later, earlier) = self.items.split_at(oldest);
        earlier.iter().chain(later)
    }
}

impl InstanceHistory {
    /// Returns the index at which calls to an instance are counted.
    #[inline]
    pub(crate) fn place_of(&mut self, to: u32) -> u32 {
        let near = self.near[to as usize % self.near.len()];
        match self.calls.get(near as usize) {
            Some(calls) if calls.0 == to => near,
            _ => self.find_place(to),
        }
    }

    fn find_place(&mut self, to: u32) -> u32 {
        let place = *self.places.entry(to).or_insert_with(|| {
            self.calls.push((to, Calls::default()));
            self.calls.len() as u32 - 1
        });
        self.near[to as usize % self.near.len()] = place;
        place
    }

    /// Forgets the spans and messages of earlier periods, because those between the periods are missing.
    #[inline]
    pub(crate) fn enter(&mut self, period: u32) {
        if self.period != period {
            self.period = period;
            self.spans.clear();
            self.messages.clear();
        }
    }

    /// Returns the counters of calls to an instance. `place` is their index, unless the call was made before recording
    /// began.
    #[inline]
    pub(crate) fn calls_at(&mut self, place: u32, to: u32) -> &mut Calls {
        let known = self
            .calls
            .get(place as usize)
            .is_some_and(|calls| calls.0 == to);
        let place = if known { place } else { self.place_of(to) };
        &mut self.calls[place as usize].1
    }
}

/// Calls of one instance to another while it was watched.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Requests and values sent.
    pub sent: u64,
    /// The number of answered requests, including errors.
    pub answered: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// The response times before the current interval, and within the current interval.
    pub(super) earlier: Times,
    pub(super) recent: Times,
    pub(super) interval: u32,
    /// The counts at the start of the interval.
    before: [u64; 3],
}

/// Calls within the current interval.
#[derive(Clone, Copy, Debug)]
pub struct Recent<'a> {
    /// Requests and values sent.
    pub sent: u64,
    /// The number of answered requests, including errors.
    pub answered: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// The response times.
    pub times: &'a Times,
}

impl Calls {
    /// Switches to this interval.
    #[inline]
    pub(crate) fn enter(&mut self, interval: u32) {
        if self.interval != interval {
            self.interval = interval;
            self.before = [self.sent, self.answered, self.errors];
            self.earlier.merge(&self.recent);
            self.recent.clear();
        }
    }

    /// Counts an answer with its duration.
    #[inline]
    pub(crate) fn answer(&mut self, is_error: bool, lasted: u64) {
        self.answered += 1;
        self.errors += u64::from(is_error);
        self.recent.record(lasted);
    }

    /// Returns the counts of the last interval.
    pub(super) fn recent(&self) -> Recent<'_> {
        let [sent, answered, errors] = self.before;
        Recent {
            sent: self.sent - sent,
            answered: self.answered - answered,
            errors: self.errors - errors,
            times: &self.recent,
        }
    }

    /// Adds the response times to a histogram.
    pub fn add_times(&self, to: &mut Times) {
        to.merge(&self.earlier);
        to.merge(&self.recent);
    }
}

/// The state of an instance in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceState {
    /// True if the instance is killed.
    pub is_down: bool,
    /// True if the instance is paused.
    pub is_paused: bool,
    /// True if the instance is cut off from other zones.
    pub is_cut_off: bool,
    /// True if the instance is up but in no registry.
    pub is_away: bool,
    /// The duration of the instance's work, as a percentage of the usual duration.
    pub slow_percent: u32,
    /// Requests that wait for a slot.
    pub queue: u32,
    /// The number of slots in use.
    pub busy: u32,
    /// The number of pieces of work in progress.
    pub in_progress: u32,
    /// The number of the instance's own unanswered requests.
    pub under_way: u32,
    /// The time for which slots were in use, summed over slots, in nanoseconds.
    pub slot_nanos: u64,
    /// The total time of the instance's work in nanoseconds.
    pub worked_nanos: u64,
    /// The number of requests that the instance has refused.
    pub refused: u64,
    /// For an entry point: the number of requests without an available instance.
    pub unrouted: u64,
}

/// A request with its answer, as seen by its client. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanSeen {
    /// The trace; `span` is the request's span, `parent` the span that caused it, or 0.
    pub trace: u64,
    /// The span; see `trace`.
    pub span: u64,
    /// The parent span, or 0; see `trace`.
    pub parent: u64,
    /// The instance that was asked.
    pub server: u32,
    /// The send time of the request.
    pub sent: u64,
    /// The arrival time of the answer.
    pub received: u64,
    /// The kind of answer.
    pub answer: Answer,
}

/// A message that an instance has received.
#[derive(Clone, Debug, Serialize)]
pub struct MessageSeen {
    /// The time in nanoseconds.
    pub at: u64,
    /// The name of the sender.
    pub from: String,
    /// The kind of message.
    pub kind: &'static str,
    /// The contents of the message.
    pub what: String,
    /// The travel time in nanoseconds, if the message has one.
    pub travelled: Option<u64>,
}

/// A request that has no answer yet.
#[derive(Clone, Debug, Serialize)]
pub struct RequestSeen {
    /// The called instance.
    pub server: String,
    /// The send time in nanoseconds.
    pub sent: u64,
    /// The time since the request was sent, in nanoseconds when serialized.
    #[serde(serialize_with = "nanos")]
    pub age: Duration,
    /// The trace of the request.
    #[serde(serialize_with = "hex")]
    pub trace: u64,
}

/// All visible details of an instance.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "fields are named after what they are")]
pub struct Details {
    pub name: String,
    pub service: String,
    pub package: &'static str,
    pub region: String,
    pub zone: String,
    pub state: InstanceState,
    pub concurrency: Option<u32>,
    pub processors: Option<f64>,
    pub queue: usize,
    pub fields: BTreeMap<&'static str, u64>,
    pub totals: ServiceTotals,
    pub knows: Vec<String>,
    pub registries: Vec<String>,
    pub requests: Vec<RequestSeen>,
    pub messages: Vec<MessageSeen>,
}

fn nanos<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Serializes a number as hexadecimal text, because JavaScript cannot represent numbers beyond 2^53.
fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_in_order() {
        let mut last = RecentRing::<u32, 4>::default();
        for number in 0..11 {
            assert!(
                last.iter().copied().eq((number.max(4) - 4)..number),
                "{number}"
            );
            last.push(number);
        }
        assert!(last.iter().rev().copied().eq([10, 9, 8, 7]));
    }

    #[test]
    fn calls_are_distinguished_by_whom_they_go_to() {
        let mut seen = InstanceHistory::default();
        for to in [7, 7, 3, 7, 3, 9] {
            let place = seen.place_of(to);
            seen.calls_at(place, to).sent += 1;
            // An answer to a request that was sent before recording began has no valid index.
            seen.calls_at(u32::MAX, to).answered += 1;
        }
        let sent: Vec<_> = (seen.calls.iter())
            .map(|(to, calls)| (*to, calls.sent, calls.answered))
            .collect();
        assert_eq!(sent, [(7, 3, 3), (3, 2, 2), (9, 1, 1)]);
    }
}
