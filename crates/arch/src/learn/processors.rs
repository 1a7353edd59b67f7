//! Estimates the processors that the work of an instance shares.
//!
//! If an instance has `c` processors and works on `n` requests at once, each of them is worked on at the speed
//! `min(1, c / n)`. For the true value of `c`, the work that a request receives does not depend on the number of
//! requests that it meets. Without sharing, this holds for the recorded times themselves.

use super::clock::Clock;
use super::invocation::Invocations;
use super::pauses::Pauses;
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of standard errors by which work must grow with the number of requests.
const CLEAR: f64 = 5.0;

/// The number of standard errors at which work seems to grow.
const HINT: f64 = 3.0;

/// The minimum number of pieces of work, and of those that begin while all processors are busy.
const LEAST: usize = 500;
const LEAST_SHARING: usize = 100;

/// The minimum share of the recorded time that must be due to sharing.
const LEAST_EFFECT: f64 = 0.02;

/// The number of pieces of work that are examined.
const MOST: usize = 300_000;

/// A recording is divided into this number of intervals, which are compared each by itself. So an instance that was
/// slow for some time does not look like one that shares its processors.
const INTERVALS: u64 = 50;

/// Larger numbers of requests at once count as this number.
const MOST_MET: f64 = 32.0;

/// A number of processors this close to a whole number is that number.
const WHOLE: f64 = 0.1;

/// The work of an invocation between two calls.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: u64,
    end: u64,
    /// The pieces of the same operation in the same interval.
    group: u32,
    /// The number of pieces that the instance works on when this piece begins, including this one.
    met: f64,
}

/// The times at which an instance begins and ends pieces of work: each with the number of pieces from then on.
type Load = Vec<(u64, u32)>;

/// Shared processors.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) processors: f64,
    clocks: FxHashMap<u32, Clock>,
}

impl Sharing {
    /// Returns the clock of the work at an instance.
    pub(super) fn clock(&self, instance: u32) -> Option<&Clock> {
        self.clocks.get(&instance)
    }
}

/// Returns the clock that advances by the work that each request at an instance receives.
fn clock(load: &Load, processors: f64) -> Clock {
    let speed = |busy: u32| (processors / f64::from(busy.max(1))).min(1.0);
    Clock::new(load.iter().map(|&(at, busy)| (at, speed(busy))))
}

/// The pieces of work at one instance.
#[derive(Debug, Default)]
struct Instance {
    number: u32,
    pieces: Vec<Piece>,
    load: Load,
}

/// Estimates the processors of a service from its invocations; `None` if no sharing is visible. Before some calls, their
/// callers waited for a connection. A number of slots may explain the recorded times, too. Times are those of the clocks
/// that stand still in pauses.
pub(super) fn estimate(
    invocations: &Invocations,
    mine: &[u32],
    waited_before: &FxHashSet<u32>,
    slots: Option<u32>,
    pauses: &Pauses,
) -> Option<Sharing> {
    let instances = instances(invocations, mine, waited_before, pauses);
    let count: usize = instances.iter().map(|one| one.pieces.len()).sum();
    if count < LEAST {
        return None;
    }
    // With slots, a request that finds one does not take longer because of other requests.
    let with_slot = slots.map_or(f64::INFINITY, f64::from);
    let slowed = slope(&instances, f64::INFINITY, with_slot);
    if slowed.value <= CLEAR * slowed.error {
        return None;
    }
    let all = f64::INFINITY;
    let alone = slope(&instances, f64::INFINITY, all);
    // The dependence grows with the number of processors. A part of a processor looks like a slow one.
    let (mut low, mut high) = (1.0, MOST_MET);
    for _ in 0..20 {
        let middle = (low + high) / 2.0;
        match slope(&instances, middle, all).value < 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    let mut processors = (low + high) / 2.0;
    let whole = processors.round();
    processors = match (processors / whole - 1.0).abs() < WHOLE {
        true => whole,
        false => (processors * 20.0).round() / 20.0,
    };
    let corrected = slope(&instances, processors, with_slot);
    if slots.is_some() && corrected.value.abs() > slowed.value.abs() {
        return None;
    }
    let found = slope(&instances, processors, all);
    let pieces = instances.iter().flat_map(|one| &one.pieces);
    let sharing = pieces.filter(|piece| piece.met > processors).count();
    let is_clear = sharing >= LEAST_SHARING && 1.0 - found.mean / alone.mean >= LEAST_EFFECT;
    is_clear.then(|| Sharing {
        processors,
        clocks: instances
            .iter()
            .map(|one| (one.number, clock(&one.load, processors)))
            .collect(),
    })
}

/// True if work seems to take longer the more requests an instance works on.
pub(super) fn seem_shared(invocations: &Invocations, mine: &[u32]) -> bool {
    let instances = instances(invocations, mine, &FxHashSet::default(), &Pauses::default());
    let slowed = slope(&instances, f64::INFINITY, f64::INFINITY);
    slowed.value > HINT * slowed.error
}

/// Returns the pieces of work of each instance.
fn instances(
    invocations: &Invocations,
    mine: &[u32],
    waited_before: &FxHashSet<u32>,
    pauses: &Pauses,
) -> Vec<Instance> {
    let mut by_instance: FxHashMap<u32, Instance> = FxHashMap::default();
    let mut groups: FxHashMap<(u32, u32, u64), u32> = FxHashMap::default();
    let begins = || {
        mine.iter()
            .map(|&made| invocations.all[made as usize].begin)
    };
    let (first, last) = (begins().min().unwrap_or(0), begins().max().unwrap_or(0));
    let width = ((last - first) / INTERVALS).max(1);
    for &made in mine {
        let about = &invocations.all[made as usize];
        if about.incomplete || about.one_way {
            continue;
        }
        let of = by_instance.entry(about.instance).or_default();
        of.number = about.instance;
        let interval = (about.begin - first) / width;
        let mut part = 0;
        let clock = pauses.clock(about.service, about.instance);
        let at = |time: u64| clock.map_or(time, |clock| clock.at(time));
        let mut add = |begin: u64, end: u64| {
            let (begin, end) = (at(begin), at(end));
            let next = groups.len() as u32;
            let group = *groups
                .entry((about.operation, part, interval))
                .or_insert(next);
            part += 1;
            if end > begin {
                of.pieces.push(Piece {
                    begin,
                    end,
                    group,
                    met: 0.0,
                });
            }
        };
        let mut from = about.begin;
        for number in invocations.call_numbers(made) {
            let call = invocations.call(number);
            if call.one_way {
                continue;
            }
            let (begin, end) = call.seen();
            // A wait for a connection is not work.
            if !waited_before.contains(&number) {
                add(from, begin.min(about.end));
            }
            from = from.max(end);
        }
        add(from, about.end);
    }
    let mut instances: Vec<Instance> = by_instance.into_values().collect();
    instances.sort_unstable_by_key(|one| one.number);
    let most = MOST / instances.len().max(1);
    for instance in &mut instances {
        instance.count();
        instance.pieces.truncate(most);
    }
    instances
}

impl Instance {
    /// Counts the pieces that are worked on at each time.
    fn count(&mut self) {
        self.pieces.sort_unstable_by_key(|one| (one.begin, one.end));
        let mut ends: Vec<u64> = self.pieces.iter().map(|one| one.end).collect();
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let mut busy = 0u32;
        for piece in &mut self.pieces {
            while let Some(end) = ends.next_if(|&end| end <= piece.begin) {
                busy -= 1;
                self.load.push((end, busy));
            }
            busy += 1;
            self.load.push((piece.begin, busy));
            piece.met = f64::from(busy);
        }
        for end in ends {
            busy -= 1;
            self.load.push((end, busy));
        }
    }
}

/// The growth of the work of a piece with the number of pieces that it meets, relative to the mean work of its group.
#[derive(Debug)]
struct Slope {
    value: f64,
    error: f64,
    /// The mean work in nanoseconds.
    mean: f64,
}

/// Computes the growth over the pieces that meet at most `most` others.
fn slope(instances: &[Instance], processors: f64, most: f64) -> Slope {
    let mut pieces: Vec<(u32, f64, f64)> = Vec::new();
    for instance in instances {
        let clock = clock(&instance.load, processors);
        let met = instance.pieces.iter().filter(|piece| piece.met <= most);
        pieces.extend(met.map(|piece| {
            let work = clock.at(piece.end) - clock.at(piece.begin);
            (piece.group, piece.met.min(MOST_MET), work as f64)
        }));
    }
    let mut sums: FxHashMap<u32, (f64, f64, f64)> = FxHashMap::default();
    for &(group, met, work) in &pieces {
        let of = sums.entry(group).or_default();
        *of = (of.0 + 1.0, of.1 + met, of.2 + work);
    }
    let (mut above, mut below, mut squares) = (0.0, 0.0, 0.0);
    for &(group, met, work) in &pieces {
        let (count, mets, works) = sums[&group];
        let (met, work) = (met - mets / count, work / (works / count).max(1.0) - 1.0);
        above += met * work;
        below += met * met;
        squares += (met * work).powi(2);
    }
    let total: f64 = pieces.iter().map(|(.., work)| work).sum();
    Slope {
        value: above / below.max(1e-9),
        error: squares.sqrt() / below.max(1e-9),
        mean: total / pieces.len().max(1) as f64,
    }
}
