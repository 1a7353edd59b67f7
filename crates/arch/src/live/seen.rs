//! The visible history of an instance in a paused run.

use super::{ResponseTimes, Times};
use crate::message::{Answer, Msg};
use crate::model::Model;
use crate::node::job::PendingRequest;
use crate::totals::ServiceTotals;
use corsair::{Addr, SpanId};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// The recorded history of an instance while it is watched. What each call needs comes first, in few cache lines.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct InstanceHistory {
    /// The calls to each called instance, in the order of the first call, and an index by instance.
    pub(crate) calls: Vec<Calls>,
    /// The period in which `spans` and `messages` were recorded; see [`Model::period`].
    pub(crate) period: u32,
    /// Received messages that are not responses: time, sender and contents. Responses are in `spans`.
    pub(crate) messages: RecentRing<(u64, Addr, Msg), MESSAGES>,
    pub(crate) spans: RecentRing<SpanSeen, SPANS>,
    /// The last index by the low bits of the called instance, which saves most look-ups.
    near: [u32; 32],
    places: FxHashMap<u32, u32>,
}

/// The number of recent answers and messages stored for an instance. A small number saves memory traffic, because every
/// interval touches the histories of all instances.
const SPANS: usize = 32;
pub(crate) const MESSAGES: usize = 16;

/// A ring of the `N` most recent items; `N` is a power of two.
#[derive(Debug)]
pub(crate) struct RecentRing<T, const N: usize> {
    /// `N` items, or none.
    items: Vec<Option<T>>,
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
    /// Adds an item after the first [`RecentRing::clear`].
    #[inline]
    pub(crate) fn push(&mut self, new: T) {
        if let Some(oldest) = self.items.get_mut(self.added % N) {
            *oldest = Some(new);
        }
        self.added = self.added.wrapping_add(1);
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.items.resize_with(N, || None);
    }

    /// Iterates over the stored entries, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let oldest = self.added % N.min(self.items.len()).max(1);
        let (later, earlier) = self.items.split_at(oldest);
        earlier.iter().chain(later).flatten()
    }
}

impl InstanceHistory {
    /// Counts a call to an instance in an interval. Returns the index of its counters.
    #[inline(never)]
    pub(crate) fn count_sent(&mut self, interval: u32, to: u32) -> u32 {
        let near = self.near[to as usize % self.near.len()];
        match self.calls.get_mut(near as usize) {
            Some(calls) if calls.to == to && calls.interval == interval => {
                calls.sent += 1;
                near
            }
            _ => self.find_and_count(interval, to),
        }
    }

    #[inline(never)]
    fn find_and_count(&mut self, interval: u32, to: u32) -> u32 {
        let place = self.place_of(to);
        let calls = &mut self.calls[place as usize];
        calls.enter(interval);
        calls.sent += 1;
        place
    }

    /// Records an answer to a call in an interval. The call lasted for this time in nanoseconds. `place` is the index of
    /// the counters, unless the call was made before recording began.
    #[inline]
    pub(crate) fn answer(
        &mut self,
        interval: u32,
        (place, to): (u32, u32),
        is_error: bool,
        lasted: u64,
    ) {
        match self.calls.get_mut(place as usize) {
            Some(calls) if calls.to == to && calls.interval == interval => {
                calls.answer(is_error, lasted);
            }
            _ => self.find_and_answer(interval, to, is_error, lasted),
        }
    }

    #[inline(never)]
    fn find_and_answer(&mut self, interval: u32, to: u32, is_error: bool, lasted: u64) {
        let place = self.place_of(to);
        let calls = &mut self.calls[place as usize];
        calls.enter(interval);
        calls.answer(is_error, lasted);
    }

    /// Returns the index at which calls to an instance are counted.
    fn place_of(&mut self, to: u32) -> u32 {
        let number = self.near.len();
        let near = &mut self.near[to as usize % number];
        let is_near = |calls: &Calls| calls.to == to;
        if !self.calls.get(*near as usize).is_some_and(is_near) {
            *near = *self.places.entry(to).or_insert_with(|| {
                self.calls.push(Calls {
                    to,
                    ..Calls::default()
                });
                self.calls.len() as u32 - 1
            });
        }
        *near
    }

    /// Records an answered request.
    #[inline]
    pub(crate) fn keep_span(
        &mut self,
        model: &Model,
        request: &PendingRequest,
        now: u64,
        answer: Answer,
    ) {
        if self.period != model.period() {
            self.enter_period(model);
        }
        let PendingRequest {
            ref job,
            server,
            sent,
            span,
            ..
        } = *request;
        let begins = job.trace == SpanId::NONE;
        self.spans.push(SpanSeen {
            trace: if begins { span } else { job.trace }.as_u64(),
            span: span.as_u64(),
            parent: job.span.as_u64(),
            server,
            sent,
            received: now,
            answer,
        });
    }

    /// Records a received message that is not a response.
    #[inline(never)]
    pub(crate) fn keep_message(&mut self, model: &Model, now: u64, from: Addr, message: &Msg) {
        if self.period != model.period() {
            self.enter_period(model);
        }
        self.messages.push((now, from, *message));
    }

    /// Forgets the spans and messages of earlier periods, because those between the periods are missing.
    #[cold]
    #[inline(never)]
    fn enter_period(&mut self, model: &Model) {
        self.period = model.period();
        self.spans.clear();
        self.messages.clear();
    }
}

/// Calls of one instance to another while it was watched. What each call needs is in one cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Calls {
    /// The called instance.
    pub to: u32,
    pub(super) interval: u32,
    /// Requests and values sent.
    pub sent: u64,
    /// The number of answered requests, including errors.
    pub answered: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// The response times within the current interval.
    recent: ResponseTimes,
    /// The counts at the start of the interval, and the response times before it.
    before: [u64; 3],
    earlier: ResponseTimes,
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
    pub times: &'a ResponseTimes,
}

impl Calls {
    #[inline]
    fn answer(&mut self, is_error: bool, lasted: u64) {
        self.answered += 1;
        self.errors += u64::from(is_error);
        self.recent.record(lasted);
    }

    /// Switches to this interval.
    fn enter(&mut self, interval: u32) {
        if self.interval != interval {
            self.interval = interval;
            self.before = [self.sent, self.answered, self.errors];
            self.earlier.merge(&self.recent);
            self.recent.clear();
        }
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
        self.earlier.add_to(to);
        self.recent.add_to(to);
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
        assert!(last.iter().next().is_none());
        last.clear();
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
        // Instances 7 and 39 have the same low bits.
        for (interval, to) in [(1, 7), (1, 7), (1, 3), (2, 7), (2, 39), (2, 7), (2, 39)] {
            let place = seen.count_sent(interval, to);
            seen.answer(interval, (place, to), false, 1_000);
            // An answer to a request that was sent before recording began has no valid index.
            seen.answer(interval, (u32::MAX, to), true, 1_000);
        }
        let counts = |calls: &Calls| [calls.sent, calls.answered, calls.errors];
        let all: Vec<_> = (seen.calls.iter())
            .map(|calls| (calls.to, counts(calls), calls.recent().sent))
            .collect();
        // The last calls to instance 3 were in the first interval.
        assert_eq!(
            all,
            [(7, [4, 8, 4], 2), (3, [1, 2, 1], 1), (39, [2, 4, 2], 2)]
        );
        let mut times = Times::default();
        seen.calls[0].add_times(&mut times);
        assert_eq!(times.len(), 8);
    }
}
