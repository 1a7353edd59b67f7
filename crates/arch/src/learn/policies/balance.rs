//! The choice of an instance for each call.
//!
//! If instances are called in turn, the instance of a call determines that of the next call. If the instance with the
//! fewest requests is called, it is chosen whenever one instance has fewer calls of this caller in flight than all others;
//! with two random instances to choose from, it is chosen in two of `n` such cases, and by chance in one of `n`.

use super::pool::{Use, Uses};
use crate::definition::Balance;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The minimum number of calls that can tell two rules apart.
const LEAST: usize = 50;

/// The number of calls of each caller that are examined.
const MOST: usize = 20_000;

/// The share of calls that must be in turn. Calls that begin at nearly the same time may be recorded in the other order.
const IN_TURN: f64 = 0.9;

/// Returns the rule by which instances are chosen; `None` if it is chance, or the recording does not show it.
pub(super) fn find(uses: &Uses) -> Option<Balance> {
    let calls = || {
        uses.by_caller()
            .map(|calls| &calls[..calls.len().min(MOST)])
    };
    let instances: FxHashSet<u32> = calls().flatten().map(|one| one.instance).collect();
    if instances.len() < 2 {
        return None;
    }
    if in_turn(calls()) {
        return Some(Balance::RoundRobin);
    }
    let (mut cases, mut chosen) = (0, 0);
    for calls in calls() {
        let of_caller = idlest(calls, &instances);
        cases += of_caller.0;
        chosen += of_caller.1;
    }
    if cases < LEAST {
        return None;
    }
    let share = chosen as f64 / cases as f64;
    let by_chance = 1.0 / instances.len() as f64;
    // Of two instances, two choices are the fewest requests.
    let rules = [
        (Some(Balance::LeastRequests), 1.0),
        (Some(Balance::TwoChoices), 2.0 * by_chance),
        (None, by_chance),
    ];
    let off = |(_, expected): &(Option<Balance>, f64)| (share - expected).abs();
    let nearest = rules.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)));
    nearest.and_then(|(rule, _)| rule)
}

/// True if each caller calls the instances in turn.
fn in_turn<'a>(callers: impl Iterator<Item = &'a [Use]>) -> bool {
    let (mut all, mut expected) = (0, 0);
    for calls in callers {
        let mut next: FxHashMap<u32, FxHashMap<u32, usize>> = FxHashMap::default();
        for pair in calls.windows(2) {
            let after = next.entry(pair[0].instance).or_default();
            *after.entry(pair[1].instance).or_default() += 1;
        }
        let followers: Vec<(u32, u32, usize)> = (next.iter())
            .filter_map(|(&from, after)| {
                let (&to, &count) = after.iter().max_by_key(|(to, count)| (**count, **to))?;
                Some((from, to, count))
            })
            .collect();
        let different: FxHashSet<u32> = followers.iter().map(|(_, to, _)| *to).collect();
        if different.len() < followers.len() || followers.iter().any(|(from, to, _)| from == to) {
            return false;
        }
        all += calls.len().saturating_sub(1);
        expected += followers.iter().map(|(.., count)| count).sum::<usize>();
    }
    all >= LEAST && expected as f64 >= IN_TURN * all as f64
}

/// Returns the number of calls of a caller for which one instance had fewer calls in flight than all others, and how
/// many of these calls went to this instance.
fn idlest(calls: &[Use], instances: &FxHashSet<u32>) -> (usize, usize) {
    let mut in_flight: FxHashMap<u32, u32> = instances.iter().map(|&one| (one, 0)).collect();
    let mut ends: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let (mut cases, mut chosen) = (0, 0);
    for call in calls {
        while let Some(&Reverse((end, instance))) = ends.peek()
            && end <= call.begin
        {
            ends.pop();
            *in_flight.entry(instance).or_default() -= 1;
        }
        let fewest = in_flight.values().min().copied().unwrap_or(0);
        let mut idle = in_flight.iter().filter(|(_, count)| **count == fewest);
        if let (Some((&instance, _)), None) = (idle.next(), idle.next()) {
            cases += 1;
            chosen += usize::from(call.instance == instance);
        }
        *in_flight.entry(call.instance).or_default() += 1;
        ends.push(Reverse((call.end, call.instance)));
    }
    (cases, chosen)
}
