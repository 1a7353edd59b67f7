//! Silences of an instance: intervals in which work is open and the instance does nothing that its spans show.
//!
//! An instance shows that it runs when it ends a request, sends a call, or accepts an answer. The beginning of a request
//! shows it only if the instance itself records it, and not a proxy or a simulator; then a request that arrives in a pause
//! seems to be on its way until the pause ends. Each piece of open work ends at some time
//! with the hazard of its kind, so without pauses the hazard over a silence, summed over the open pieces, is exponential
//! with a mean of 1, whatever the distribution of the work is. During a pause all open pieces stay open, and the sum is
//! large.

use crate::learn::invocation::{Invocation, Invocations};
use crate::learn::policies::Policies;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The inverse of the share of the silences that are scored, the longest, and the number that is scored in any case.
const SCORED: usize = 32;
const LEAST_SCORED: usize = 256;

/// The number of open pieces that are considered at a time.
const MOST_OPEN: usize = 1_024;

/// The kind of an end that belongs to no piece, and of the beginning of a request.
const NONE: u32 = u32::MAX;
const BEGIN: u32 = u32::MAX - 1;

/// Work of an instance between two of its actions, or a request or an answer on its way to the instance.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: u64,
    end: u64,
    kind: u32,
}

/// An interval without an action of the instance, at the end of which work was open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// The last action before the silence.
    pub(super) after: u64,
    /// The time from which work was open.
    pub(super) open: u64,
    /// The first action after the silence.
    pub(super) until: u64,
    /// The negative logarithm of the probability that the open pieces do not end in this interval.
    pub(super) score: f64,
    /// The score without requests on their way.
    pub(super) work: f64,
    /// The mean time to the next end of an open piece at the end of the silence.
    pub(super) next: f64,
}

/// The silences of an instance that are scored, and the ends of all its pieces.
#[derive(Debug)]
pub(super) struct Silences {
    pub(super) instance: u32,
    pub(super) scored: Vec<Silence>,
    /// The times of the actions, in ascending order.
    pub(super) actions: Vec<u64>,
    /// The sums of the lengths of all silences during which work was open from the last action on, and of their squares.
    pub(super) lengths: (f64, f64),
}

/// The durations of the pieces of a kind, in ascending order, with their mean.
#[derive(Debug, Default)]
struct Kind {
    durations: Vec<u64>,
    mean: f64,
    /// True for requests on their way, which may wait in queues that the spans do not show.
    is_request: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    /// Work, by the operation and the position in its invocations.
    Work,
    /// An answer, by the called service.
    Answer,
    /// A request, by the operation.
    Request,
}

impl Kind {
    /// Returns the hazard until this age, estimated from all durations.
    fn hazard(&self, age: u64) -> f64 {
        let longer = self.durations.len() - self.durations.partition_point(|&one| one < age);
        libm::log(self.durations.len() as f64 / longer.max(1) as f64)
    }
}

/// Returns the silences of the instances of a service, whose requests are `mine`. Requests waited for a slot for the time
/// in `waited`. With `begins`, an instance shows that it runs when a request begins.
pub(super) fn of_service(
    invocations: &Invocations,
    mine: &[u32],
    waited: &[u64],
    policies: &Policies,
    begins: bool,
) -> Vec<Silences> {
    let mut pieces = Pieces::default();
    for &made in mine {
        let about = &invocations.all[made as usize];
        if !about.incomplete && !about.one_way {
            if begins {
                pieces.add_begin(about, policies.waited_inside.contains(&made));
            }
            let waited = waited[made as usize];
            pieces.add(invocations, made, waited, &policies.waited_before);
        }
    }
    let mut kinds: Vec<Kind> = Vec::new();
    kinds.resize_with(pieces.kinds.len(), Kind::default);
    for (&(what, ..), &kind) in &pieces.kinds {
        kinds[kind as usize].is_request = what == What::Request;
    }
    let mut by_instance: Vec<(u32, Vec<Piece>)> = pieces.by_instance.into_iter().collect();
    by_instance.sort_unstable_by_key(|(instance, _)| *instance);
    for piece in by_instance.iter().flat_map(|(_, pieces)| pieces) {
        if let Some(of) = kinds.get_mut(piece.kind as usize) {
            of.durations.push(piece.end - piece.begin);
        }
    }
    for kind in &mut kinds {
        kind.durations.sort_unstable();
        let total: f64 = kind.durations.iter().map(|&one| one as f64).sum();
        kind.mean = (total / kind.durations.len().max(1) as f64).max(1.0);
    }
    let silences = by_instance.into_iter();
    silences
        .map(|(instance, pieces)| silences_of(instance, pieces, &kinds))
        .collect()
}

/// The pieces of a service by instance, and the numbers of their kinds.
#[derive(Debug, Default)]
struct Pieces {
    by_instance: FxHashMap<u32, Vec<Piece>>,
    kinds: FxHashMap<(What, u32, u32), u32>,
}

impl Pieces {
    /// Adds the beginning of a request, as the end of its way if this time is known.
    fn add_begin(&mut self, about: &Invocation, has_waited: bool) {
        let sent = about.client.map(|(sent, _)| sent);
        let sent = sent.filter(|&sent| sent <= about.begin && !has_waited);
        let next = self.kinds.len() as u32;
        let kind = (What::Request, about.operation, 0);
        let piece = Piece {
            begin: sent.unwrap_or(about.begin),
            end: about.begin,
            kind: sent.map_or(BEGIN, |_| *self.kinds.entry(kind).or_insert(next)),
        };
        self.by_instance
            .entry(about.instance)
            .or_default()
            .push(piece);
    }

    fn add(
        &mut self,
        invocations: &Invocations,
        made: u32,
        waited: u64,
        waited_before: &FxHashSet<u32>,
    ) {
        let about = &invocations.all[made as usize];
        let of = self.by_instance.entry(about.instance).or_default();
        let kinds = &mut self.kinds;
        let mut add = |begin: u64, end: u64, kind: Option<(What, u32, u32)>| {
            let next = kinds.len() as u32;
            let kind = kind.filter(|_| begin <= end);
            let kind = kind.map_or(NONE, |kind| *kinds.entry(kind).or_insert(next));
            let begin = if kind == NONE { end } else { begin };
            of.push(Piece { begin, end, kind });
        };
        let (mut from, mut part) = (about.begin.saturating_add(waited), 0);
        for number in invocations.call_numbers(made) {
            let call = invocations.call(number);
            let (sent, received) = call.seen();
            // A wait for a connection is not work.
            let is_work = sent >= from && !waited_before.contains(&number);
            add(
                from,
                sent,
                is_work.then_some((What::Work, about.operation, part)),
            );
            part += 1;
            if !call.one_way {
                let is_answer = call.client.is_some() && !call.failed;
                add(
                    call.end,
                    received,
                    is_answer.then_some((What::Answer, call.service, 0)),
                );
                from = from.max(received);
            }
        }
        add(from, about.end, Some((What::Work, about.operation, part)));
    }
}

/// Returns the longest silences of an instance.
fn silences_of(instance: u32, mut pieces: Vec<Piece>, kinds: &[Kind]) -> Silences {
    pieces.sort_unstable_by_key(|one| (one.begin, one.end));
    let mut actions: Vec<u64> = pieces.iter().map(|one| one.end).collect();
    actions.sort_unstable();
    actions.dedup();
    let mut lengths: Vec<u64> = Vec::with_capacity(actions.len());
    // The open pieces in the order of their beginnings.
    let mut open: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let (mut next, mut sums) = (0, (0.0, 0.0));
    for pair in actions.windows(2) {
        while let Some(piece) = pieces.get(next).filter(|piece| piece.begin <= pair[1]) {
            open.push(Reverse((piece.begin, piece.end)));
            next += 1;
        }
        while open.peek().is_some_and(|one| one.0.1 < pair[1]) {
            open.pop();
        }
        let begin = open.peek().map_or(pair[1], |one| one.0.0);
        lengths.push(pair[1] - begin.max(pair[0]));
        if begin <= pair[0] {
            let length = (pair[1] - pair[0]) as f64;
            sums = (sums.0 + length, sums.1 + length * length);
        }
    }
    let number = (lengths.len() / SCORED)
        .max(LEAST_SCORED)
        .min(lengths.len());
    let mut least = lengths.clone();
    least.sort_unstable();
    let least = number
        .checked_sub(1)
        .map_or(u64::MAX, |last| least[least.len() - 1 - last]);
    let (mut scored, mut next) = (Vec::with_capacity(number), 0);
    let mut open: Vec<Piece> = Vec::new();
    for (pair, &length) in actions.windows(2).zip(&lengths) {
        while let Some(piece) = pieces.get(next).filter(|piece| piece.begin <= pair[1]) {
            next += 1;
            open.push(*piece);
            if open.len() > 2 * MOST_OPEN {
                open.retain(|one| one.end >= pair[1]);
                open.truncate(MOST_OPEN);
            }
        }
        if length >= least.max(1) {
            open.retain(|one| one.end >= pair[1]);
            scored.push(scored_silence(pair[0], pair[1], length, &open, kinds));
        }
    }
    Silences {
        instance,
        scored,
        actions,
        lengths: sums,
    }
}

fn scored_silence(after: u64, until: u64, length: u64, open: &[Piece], kinds: &[Kind]) -> Silence {
    let (mut score, mut work, mut rate) = (0.0, 0.0, 0.0);
    // A request that arrived in a pause begins at its end.
    let is_request = |kind: u32| kinds.get(kind as usize).is_some_and(|kind| kind.is_request);
    let begins = |piece: &Piece| piece.kind == BEGIN || is_request(piece.kind);
    if open.iter().any(|piece| piece.end == until && begins(piece)) {
        rate = f64::INFINITY;
    }
    for piece in open.iter().filter(|piece| piece.begin < until) {
        let Some(kind) = kinds.get(piece.kind as usize) else {
            continue;
        };
        let before = after.saturating_sub(piece.begin);
        let hazard = kind.hazard(until - piece.begin) - kind.hazard(before);
        score += hazard;
        work += if kind.is_request { 0.0 } else { hazard };
        rate += 1.0 / kind.mean;
    }
    Silence {
        after,
        open: until - length,
        until,
        score,
        work,
        next: 1.0 / f64::max(rate, 1e-9),
    }
}
