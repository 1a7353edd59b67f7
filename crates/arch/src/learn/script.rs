//! Derives the script of an endpoint from the targets and the times of the calls of its invocations.
//!
//! A call is identified by its target, and by its position among the calls of that target in one
//! invocation. Two calls that overlap in some invocations are parallel; other calls are sequential.
//! These relations determine a tree of sequential and parallel steps. The time between two calls is
//! work.

mod tree;
mod write;

use super::invocation::{Invocation, Invocations};
use super::pauses::Pauses;
use super::processors::Sharing;
use crate::definition::StepDefinition;
use rustc_hash::{FxHashMap, FxHashSet};
use tree::{CallTimes, Series, Times};

/// The maximum number of different calls of an endpoint; further calls are left out.
const MOST_CALLS: usize = 48;

/// The fraction of invocations in which two calls must overlap to count as concurrent.
const OVERLAPPING: f64 = 0.02;

/// A service and an operation, by their interned names.
pub(super) type Target = (u32, u32);

/// A call of an endpoint: the target, whether it is answered, and its occurrence among equal calls, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    target: Target,
    one_way: bool,
    occurrence: u32,
}

/// A script that was learned.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) steps: Vec<StepDefinition>,
    /// The number of calls that the script leaves out.
    pub(super) left_out: u64,
}

/// Invocations with the times that they waited.
pub(super) struct Measured<'a> {
    pub(super) invocations: &'a Invocations,
    /// The time that each invocation waited for a slot.
    pub(super) waited: &'a [u64],
    /// The processors that the work shares, if it shares some.
    pub(super) sharing: Option<&'a Sharing>,
    pub(super) pauses: &'a Pauses,
    /// The calls before which their callers waited for a connection.
    pub(super) waited_before: &'a FxHashSet<u32>,
}

/// The relations between the calls of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Relations {
    calls: Vec<Call>,
    /// For each call: the number of invocations that make it, of its failures, and of failures that did not fail the
    /// invocation.
    counts: Vec<u64>,
    failed: Vec<u64>,
    forgiven: Vec<u64>,
    /// The sums of the times from the start of an invocation to each call.
    offsets: Vec<f64>,
    /// For each pair: the number of invocations in which both calls overlap.
    both: Vec<u32>,
    overlapping: Vec<u32>,
    /// For each pair: the number of invocations in which the first call ended before the second began.
    before: Vec<u32>,
    invocations: u64,
}

impl Relations {
    fn at(&self, a: usize, b: usize) -> usize {
        a * MOST_CALLS + b
    }

    fn both(&self, a: usize, b: usize) -> u32 {
        self.both[self.at(a.min(b), a.max(b))]
    }

    /// Returns the fraction of invocations that make a call.
    fn part(&self, call: usize) -> f64 {
        self.counts[call] as f64 / self.invocations.max(1) as f64
    }

    fn offset(&self, call: usize) -> f64 {
        self.offsets[call] / self.counts[call].max(1) as f64
    }

    /// True if two calls of one invocation may overlap, or come in either order.
    fn at_once(&self, a: usize, b: usize) -> bool {
        let (a, b) = (a.min(b), a.max(b));
        let pair = self.at(a, b);
        let both = f64::from(self.both[pair]);
        if both == 0.0 {
            return false;
        }
        let (first, second) = (self.before[pair], self.before[self.at(b, a)]);
        let swapped = f64::from(first.min(second)) / both;
        f64::from(self.overlapping[pair]) / both > OVERLAPPING || swapped > OVERLAPPING
    }

    /// True if the first call comes before the second, unless they are concurrent.
    fn comes_before(&self, a: usize, b: usize) -> bool {
        let (ab, ba) = (self.before[self.at(a, b)], self.before[self.at(b, a)]);
        if ab == ba {
            return (self.offset(a), a) < (self.offset(b), b);
        }
        ab > ba
    }

    /// True if no invocation makes both calls.
    fn excludes(&self, a: usize, b: usize) -> bool {
        let expected = self.part(a) * self.part(b) * self.invocations as f64;
        self.both(a, b) == 0 && expected > 8.0
    }

    /// True if each invocation makes either both calls or none.
    fn goes_with(&self, a: usize, b: usize) -> bool {
        let most = self.counts[a].max(self.counts[b]) as f64;
        f64::from(self.both(a, b)) >= 0.995 * most
    }
}

/// Learns the script of an endpoint from its invocations and their waiting times. `name` returns the name of
/// a target.
pub(super) fn learn(measured: &Measured, mine: &[u32], name: &dyn Fn(Target) -> String) -> Script {
    let invocations = measured.invocations;
    // Failed invocations may lack calls; incomplete ones are not used.
    let is_good = |made: &&u32| {
        let made = &invocations.all[**made as usize];
        (!made.failed || made.given_up) && !made.incomplete
    };
    let mut good: Vec<u32> = mine.iter().filter(is_good).copied().collect();
    if good.is_empty() {
        good = mine.to_vec();
    }
    let mut numbers: FxHashMap<Call, usize> = FxHashMap::default();
    let mut relations = Relations {
        both: vec![0; MOST_CALLS * MOST_CALLS],
        overlapping: vec![0; MOST_CALLS * MOST_CALLS],
        before: vec![0; MOST_CALLS * MOST_CALLS],
        invocations: good.len() as u64,
        ..Relations::default()
    };
    let mut left_out = 0;
    // The calls of all invocations with their times, and for each invocation the end of its calls in that list.
    let (mut made, mut ends) = (Vec::new(), Vec::with_capacity(good.len()));
    for &invocation in &good {
        let begin = invocations.all[invocation as usize].begin;
        let first = made.len();
        for (kind, place, call) in numbered(invocations, invocation) {
            let next = numbers.len();
            if next == MOST_CALLS && !numbers.contains_key(&kind) {
                left_out += 1;
                continue;
            }
            let number = *numbers.entry(kind).or_insert(next);
            if number == next {
                relations.calls.push(kind);
                relations.counts.push(0);
                relations.failed.push(0);
                relations.forgiven.push(0);
                relations.offsets.push(0.0);
            }
            let (from, to) = call.seen();
            let to = if call.one_way { from } else { to };
            relations.counts[number] += 1;
            relations.offsets[number] += from.saturating_sub(begin) as f64;
            let is_late = measured.waited_before.contains(&place);
            made.push((number, from, to, is_late));
        }
        relate(&mut relations, &made[first..]);
        ends.push(made.len());
    }
    for &invocation in mine {
        forgive(&mut relations, &numbers, invocations, invocation);
    }
    let mut series = Series::of(&relations, (0..relations.calls.len()).collect());
    let mut times: Times = vec![None; relations.calls.len()];
    let mut first = 0;
    for (&invocation, &end) in good.iter().zip(&ends) {
        let about = &invocations.all[invocation as usize];
        // Pauses are no work.
        let clock = measured.pauses.clock(about.service, about.instance);
        let running = |time: u64| clock.map_or(time, |clock| clock.at(time));
        // Where processors are shared, time is the work that each request receives.
        let clock = measured
            .sharing
            .and_then(|sharing| sharing.clock(about.instance));
        let received = |time: u64| clock.map_or(time, |clock| clock.at(time));
        let at = |time: u64| received(running(time));
        for &(call, from, to, is_late) in &made[first..end] {
            let (from, to) = (at(from), at(to));
            times[call] = Some(CallTimes { from, to, is_late });
        }
        let begin = running(about.begin) + measured.waited[invocation as usize];
        let begin = begin.min(running(about.end.max(about.begin)));
        let until = (!about.one_way).then_some(at(about.end));
        series.measure(&times, received(begin), until);
        for &(call, ..) in &made[first..end] {
            times[call] = None;
        }
        first = end;
    }
    let writer = write::Writer {
        relations: &relations,
        name,
    };
    let steps = writer.series(series, relations.invocations);
    Script { steps, left_out }
}

/// Counts the pairs of calls of an invocation.
fn relate(relations: &mut Relations, calls: &[(usize, u64, u64, bool)]) {
    for (place, &(a, a_from, a_to, _)) in calls.iter().enumerate() {
        for &(b, b_from, b_to, _) in &calls[place + 1..] {
            let pair = relations.at(a.min(b), a.max(b));
            relations.both[pair] += 1;
            let (ab, ba) = (relations.at(a, b), relations.at(b, a));
            if a_to <= b_from {
                relations.before[ab] += 1;
            } else if b_to <= a_from {
                relations.before[ba] += 1;
            } else {
                relations.overlapping[pair] += 1;
            }
        }
    }
}

/// Returns the calls of an invocation. Calls to the same target are numbered in order, from 1.
fn numbered(
    invocations: &Invocations,
    made: u32,
) -> impl Iterator<Item = (Call, u32, Invocation)> + '_ {
    let mut occurrences: FxHashMap<(Target, bool), u32> = FxHashMap::default();
    invocations.call_numbers(made).map(move |number| {
        let call = invocations.call(number);
        let (target, one_way) = ((call.service, call.operation), call.one_way);
        let occurrence = occurrences.entry((target, one_way)).or_insert(0);
        *occurrence += 1;
        let kind = Call {
            target,
            one_way,
            occurrence: *occurrence,
        };
        (kind, number, call)
    })
}

/// Counts the failed calls of an invocation, and the failed calls after which the invocation succeeded.
fn forgive(
    relations: &mut Relations,
    numbers: &FxHashMap<Call, usize>,
    invocations: &Invocations,
    invocation: u32,
) {
    for (kind, _, call) in numbered(invocations, invocation) {
        if let Some(&number) = numbers.get(&kind).filter(|_| call.failed) {
            relations.failed[number] += 1;
            let has_failed = invocations.all[invocation as usize].failed;
            relations.forgiven[number] += u64::from(!has_failed);
        }
    }
}
