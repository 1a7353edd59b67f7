//! Estimates the concurrency limit of an instance from the arrivals and ends of its requests.
//!
//! If an instance has `c` slots and serves requests in the order of arrival, a request begins when it arrives or, if
//! all slots are taken, when only `c - 1` of the earlier requests are left. For the true value of `c`, no request ends
//! before it begins, and a request that finds all slots taken lasts longer by its waiting time. If such requests do not
//! last longer, no limit is visible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The maximum number of slots that is considered.
const MOST: u32 = 4_096;

/// The number of standard errors by which requests that found all slots taken must have taken longer than others. For
/// services without a limit, this test succeeds by chance in one of a thousand cases.
const CLEAR: f64 = 3.0;

/// The inverse of the allowed fraction of requests that end before their computed begin. They occur at the
/// borders of resampled blocks, and with inexact clocks or queue orders.
const MOST_EARLY: usize = 500;

/// Minimum number of requests that found all slots taken.
const LEAST_WAITING: usize = 20;

/// A request to an instance: its arrival, its end, and the time until its first call or its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) first: u64,
}

/// Returns the start of each request of an instance with `slots` slots. Requests are in the order of arrival.
pub(super) fn starts(visits: &[Visit], slots: u32) -> Vec<u64> {
    // The times at which the slots become free.
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let begin = |visit: &Visit| {
        let mut begin = visit.begin;
        if ends.len() == slots as usize
            && let Some(Reverse(free)) = ends.pop()
        {
            begin = begin.max(free);
            ends.push(Reverse(free.max(visit.end)));
        } else {
            ends.push(Reverse(visit.end));
        }
        begin
    };
    visits.iter().map(begin).collect()
}

/// Estimates the number of slots of instances; `None` if no limit is visible.
pub(super) fn estimate(instances: &[Vec<Visit>]) -> Option<u32> {
    let is_possible = |slots: u32| {
        instances.iter().all(|visits| {
            let starts = starts(visits, slots);
            // Times from clocks that count microseconds vary by a microsecond at both ends.
            let early = |(visit, start): (&Visit, &u64)| visit.end + 2_000 < *start;
            let early = visits
                .iter()
                .zip(&starts)
                .filter(|pair| early(*pair))
                .count();
            early * MOST_EARLY <= visits.len()
        })
    };
    let mut beyond = 1;
    while !is_possible(beyond) {
        beyond *= 2;
        if beyond > MOST {
            return None;
        }
    }
    let mut least = beyond / 2 + 1;
    while least < beyond {
        let middle = (least + beyond) / 2;
        if is_possible(middle) {
            beyond = middle;
        } else {
            least = middle + 1;
        }
    }
    (beyond..=beyond + 8).find(|&slots| explains(instances, slots))
}

/// True if the requests that found all slots taken took longer than the others by the time for which they
/// waited, according to this number of slots.
fn explains(instances: &[Vec<Visit>], slots: u32) -> bool {
    let (mut waits, mut waiting, mut others) = (0.0, Vec::new(), Vec::new());
    for visits in instances {
        for (visit, start) in visits.iter().zip(starts(visits, slots)) {
            let wait = start - visit.begin;
            let took = visit.first as f64;
            if wait > 2_000 {
                waits += wait as f64;
                waiting.push(took);
            } else {
                others.push(took);
            }
        }
    }
    if waiting.len() < LEAST_WAITING || others.is_empty() {
        return false;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (longer, wait) = (mean(&waiting) - mean(&others), waits / waiting.len() as f64);
    let off = |values: &[f64]| {
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        squares / (values.len() as f64).powi(2)
    };
    let error = (off(&waiting) + off(&others)).sqrt();
    longer > CLEAR * error && (longer - wait).abs() < (0.1 * wait).max(3.0 * error).min(0.5 * wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Random;

    /// Returns requests of an instance with a number of slots, with times from `work`.
    fn visits(slots: usize, rate: f64, mut work: impl FnMut(&mut Random) -> u64) -> Vec<Visit> {
        let mut random = Random::new(3);
        let (mut now, mut free) = (0.0, vec![0u64; slots]);
        let mut visits: Vec<Visit> = Vec::new();
        for _ in 0..4_000 {
            now -= libm::log(crate::distribution::unit(random.bits())) / rate * 1e9;
            let begin = now as u64;
            free.sort_unstable();
            let end = begin.max(free[0]) + work(&mut random);
            free[0] = end;
            let first = end - begin;
            visits.push(Visit { begin, end, first });
        }
        visits
    }

    fn exponential(random: &mut Random) -> u64 {
        (-libm::log(crate::distribution::unit(random.bits())) * 1e6) as u64
    }

    #[test]
    fn slots_are_counted_where_requests_wait_for_them() {
        for slots in [1, 2, 5] {
            let rate = 800.0 * slots as f64;
            let random = visits(slots, rate, exponential);
            assert_eq!(estimate(&[random]), Some(slots as u32));
            // With constant work no request overtakes another.
            let constant = visits(slots, rate, |_| 1_000_000);
            assert_eq!(estimate(&[constant]), Some(slots as u32));
        }
    }

    #[test]
    fn where_nothing_waits_there_is_no_limit() {
        assert_eq!(estimate(&[visits(4_000, 3_000.0, exponential)]), None);
        assert_eq!(estimate(&[visits(4_000, 3_000.0, |_| 1_000_000)]), None);
        assert_eq!(estimate(&[visits(3, 1.0, exponential)]), None);
    }
}
