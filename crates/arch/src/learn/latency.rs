//! The latencies of requests and answers, from the spans of clients and servers.

use super::fit;
use super::invocation::{Invocation, Invocations};
use super::pauses::Pauses;
use super::policies::Policies;
use crate::Distribution;

/// An endpoint has the latency of its service if it has fewer samples than the first number, or a smaller
/// Kolmogorov–Smirnov distance than the second.
const OWN_LATENCY: (usize, f64) = (100, 0.1);

/// Returns the latency of an endpoint, if it differs from the latencies of its service, `all`, which are in ascending
/// order. For example, ring nodes are called from their own zone, and by clients from other zones.
pub(super) fn of_endpoint(
    invocations: &Invocations,
    of: &[u32],
    all: &[u64],
    policies: &Policies,
    pauses: &Pauses,
) -> Option<Distribution> {
    let mut times = travel_times(invocations, of, policies, pauses);
    let (least, far) = OWN_LATENCY;
    if times.is_empty() && !all.is_empty() {
        // The clients of an endpoint without samples are outside, so the recorded times include the travel time.
        return fitted(&mut times);
    }
    if times.len() < least || times.len() == all.len() {
        return None;
    }
    times.sort_unstable();
    let below = |nanos: f64| {
        let below = all.partition_point(|&time| time as f64 <= nanos);
        below as f64 / all.len() as f64
    };
    if fit::distance(&times, below) < far {
        return None;
    }
    fitted(&mut times)
}

/// Returns the travel times of requests and of their answers, one sample for each invocation with a recorded client
/// span. If clocks differ too much, each invocation gives one sample, which is half of the travel time in both
/// directions.
pub(super) fn travel_times(
    invocations: &Invocations,
    mine: &[u32],
    policies: &Policies,
    pauses: &Pauses,
) -> Vec<u64> {
    let (mut one_way, mut halves) = (Vec::new(), Vec::new());
    let mut backwards = 0;
    for &made in mine {
        let about = &invocations.all[made as usize];
        let is_other = about.incomplete || about.given_up || policies.waited_inside.contains(&made);
        let Some((sent, received)) = about.client.filter(|_| !is_other) else {
            continue;
        };
        if is_paused(invocations, about, pauses) {
            continue;
        }
        if about.one_way {
            one_way.extend(about.begin.checked_sub(sent));
            continue;
        }
        let there = about.begin.checked_sub(sent);
        let back = received.checked_sub(about.end);
        match (there, back) {
            (Some(there), Some(back)) => one_way.extend([there, back]),
            _ => backwards += 1,
        }
        let lasted = (received - sent).saturating_sub(about.end - about.begin);
        halves.push(lasted / 2);
    }
    // If the clocks of two machines differ, only the sum of both directions is known.
    if backwards * 1_000 > mine.len() {
        halves
    } else {
        one_way
    }
}

/// True if the server pauses while the request travels, or its client while the answer travels.
fn is_paused(invocations: &Invocations, about: &Invocation, pauses: &Pauses) -> bool {
    let (sent, received) = about.seen();
    let caller = about.caller.map(|caller| &invocations.all[caller as usize]);
    let is_between = |of: &Invocation, from: u64, to: u64| {
        pauses.is_between(of.service, of.instance, from.min(to), to)
    };
    is_between(about, sent, about.begin)
        || caller.is_some_and(|caller| is_between(caller, about.end, received))
}

/// Sorts these times, and returns their distribution.
pub(super) fn fitted(samples: &mut [u64]) -> Option<Distribution> {
    samples.sort_unstable();
    if samples.iter().all(|&nanos| nanos <= 2_000) {
        // The travel time is zero or was included elsewhere: use the shortest possible one.
        return Some(Distribution::Constant(fit::span(0)));
    }
    fit::fit(samples).map(|fit| fit.distribution)
}
