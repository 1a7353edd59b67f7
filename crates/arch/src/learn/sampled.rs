//! Estimates the concurrency limit of an instance from a sampled recording.
//!
//! Most requests that delay a recorded request are not recorded. But if slots are limited, requests that overlap
//! another recorded request take longer than others, because the instance was busier. The difference depends on the
//! number of slots, the total rate and the mean response time. For each number of slots the work is scaled until a
//! simulated queue has the recorded mean. Then the number of slots whose simulated difference equals the recorded one
//! is chosen. Without a difference no limit is visible.

use super::slots::Visit;
use corsair::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers of slots that are tried.
const SLOTS: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64];

/// The number of simulated requests for each number of slots.
const SIMULATED: usize = 40_000;

/// The number of standard errors by which the recorded difference must exceed zero.
const CLEAR: f64 = 4.0;

/// A number of slots, with the waiting time of each request of each instance.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) slots: u32,
    pub(super) waits: Vec<Vec<u64>>,
}

/// The response times of recorded requests, separately for requests that overlap another request and for those that do
/// not.
#[derive(Debug, Default)]
struct ResponseTimes {
    alone: Vec<f64>,
    together: Vec<f64>,
}

impl ResponseTimes {
    /// Adds the requests of an instance, which are in the order of arrival.
    fn add(&mut self, visits: impl Iterator<Item = (f64, f64)>) {
        let mut latest = f64::MIN;
        for (begin, end) in visits {
            match begin < latest {
                true => self.together.push(end - begin),
                false => self.alone.push(end - begin),
            }
            latest = latest.max(end);
        }
    }

    /// Returns the relative difference between the response times of overlapping and other requests, and its standard
    /// error.
    fn difference(&self) -> Option<(f64, f64)> {
        if self.alone.len() < 20 || self.together.len() < 20 {
            return None;
        }
        let (alone, together) = (mean(&self.alone), mean(&self.together));
        let error = |values: &[f64], mean: f64| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            squares / (values.len() as f64).powi(2)
        };
        let error = (error(&self.alone, alone) + error(&self.together, together)).sqrt();
        Some(((together - alone) / alone, error / alone))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Estimates the number of slots of instances; `sampled` is the recorded share of their requests. `None` if no limit is
/// visible.
pub(super) fn estimate(instances: &[Vec<Visit>], sampled: f64) -> Option<Limit> {
    let mut seen = ResponseTimes::default();
    let (mut times, mut rates) = (Vec::new(), 0.0);
    for visits in instances {
        let seconds = |visit: &Visit| (visit.begin as f64 / 1e9, visit.end as f64 / 1e9);
        seen.add(visits.iter().map(seconds));
        times.extend(
            visits
                .iter()
                .map(|visit| (visit.end - visit.begin) as f64 / 1e9),
        );
        let lasted = visits.last()?.begin.saturating_sub(visits.first()?.begin) as f64 / 1e9;
        rates += visits.len() as f64 / lasted.max(1e-9);
    }
    let (recorded, error) = seen.difference()?;
    if recorded < CLEAR * error {
        return None;
    }
    let rate = rates / instances.len() as f64 / sampled;
    let mut best: Option<(f64, u32, f64)> = None;
    for slots in SLOTS {
        let queue = Queue {
            slots,
            rate,
            works: &seen.alone,
        };
        let Some((factor, simulated)) = queue.fitted(mean(&times), sampled) else {
            continue;
        };
        let off = (simulated - recorded).abs();
        if best.is_none_or(|(least, ..)| off < least) {
            best = Some((off, slots, factor));
        }
    }
    let (off, slots, factor) = best?;
    (off < (CLEAR * error).max(0.5 * recorded)).then(|| Limit {
        slots,
        waits: waits(instances, &seen.alone, factor),
    })
}

/// Returns the estimated waiting times: the longest response time is matched with the longest work, the second longest
/// with the second longest, and so on.
fn waits(instances: &[Vec<Visit>], works: &[f64], factor: f64) -> Vec<Vec<u64>> {
    let mut works = works.to_vec();
    works.sort_by(f64::total_cmp);
    let mut times: Vec<u64> = (instances.iter().flatten())
        .map(|visit| visit.end - visit.begin)
        .collect();
    times.sort_unstable();
    let wait = |visit: &Visit| {
        let time = visit.end - visit.begin;
        let part = times.partition_point(|&other| other < time) as f64 / times.len() as f64;
        let work = works[((part * works.len() as f64) as usize).min(works.len() - 1)] * factor;
        // A request waits before its first call, so the wait ends there at the latest.
        time.saturating_sub((work * 1e9) as u64).min(visit.first)
    };
    let of_instance = |visits: &Vec<Visit>| visits.iter().map(wait).collect();
    instances.iter().map(of_instance).collect()
}

/// A queue with slots, Poisson arrivals, and work drawn from a sample.
struct Queue<'a> {
    slots: u32,
    rate: f64,
    works: &'a [f64],
}

impl Queue<'_> {
    /// Returns the factor for work that gives the recorded mean response time, and the resulting difference of
    /// overlapping requests. `None` if there is no such factor.
    fn fitted(&self, recorded: f64, sampled: f64) -> Option<(f64, f64)> {
        let most = f64::from(self.slots) / self.rate / mean(self.works) * 0.99;
        let (mut low, mut high) = (0.0, most.min(1.2));
        if self.run(high).1 < recorded {
            return None;
        }
        for _ in 0..12 {
            let middle = (low + high) / 2.0;
            match self.run(middle).1 < recorded {
                true => low = middle,
                false => high = middle,
            }
        }
        let (visits, _) = self.run(high);
        let mut random = Random::new(2);
        let mut seen = ResponseTimes::default();
        // Several random samples of the simulated requests are as good as a longer recording.
        for _ in 0..(0.3 / sampled).ceil().min(20.0) as usize {
            seen.add(
                visits
                    .iter()
                    .copied()
                    .filter(|_| crate::distribution::unit(random.bits()) <= sampled),
            );
        }
        Some((high, seen.difference()?.0))
    }

    /// Runs the queue with work multiplied by a factor. Returns the arrival and end of each request, and the mean
    /// response time.
    fn run(&self, factor: f64) -> (Vec<(f64, f64)>, f64) {
        let mut random = Random::new(1);
        let mut free: BinaryHeap<Reverse<u64>> = (0..self.slots).map(|_| Reverse(0)).collect();
        let (mut now, mut visits) = (0.0, Vec::with_capacity(SIMULATED));
        for _ in 0..SIMULATED {
            now -= libm::log(crate::distribution::unit(random.bits())) / self.rate;
            let work = self.works[random.below(self.works.len() as u32) as usize] * factor;
            let slot = free.pop().map_or(0, |Reverse(free)| free);
            let end = now.max(slot as f64 / 1e9) + work;
            free.push(Reverse((end * 1e9) as u64));
            visits.push((now, end));
        }
        let sum: f64 = visits.iter().map(|(begin, end)| end - begin).sum();
        (visits, sum / SIMULATED as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a queue, and returns the visits of a random share of its requests, as a recording would contain them.
    fn recorded(slots: u32, load: f64, share: f64) -> Vec<Visit> {
        let mut random = Random::new(9);
        let unit = |random: &mut Random| crate::distribution::unit(random.bits());
        let works: Vec<f64> = (0..5_000)
            .map(|_| -libm::log(unit(&mut random)) * 0.01)
            .collect();
        let rate = load * f64::from(slots) / 0.01;
        let (mut visits, mut begun) = (Vec::new(), 0.0);
        for _ in 0..3 {
            let (some, _) = Queue {
                slots,
                rate,
                works: &works,
            }
            .run(1.0);
            let last = some.last().unwrap().1;
            visits.extend(
                some.into_iter()
                    .map(|(from, to)| (begun + from, begun + to)),
            );
            begun += last;
        }
        let seen = visits.into_iter().filter(|_| unit(&mut random) <= share);
        seen.map(|(begin, end)| Visit {
            begin: (begin * 1e9) as u64,
            end: (end * 1e9) as u64,
            first: ((end - begin) * 1e9) as u64,
        })
        .collect()
    }

    // Guarantee: arch-18.
    #[test]
    fn slots_are_found_in_a_tenth_of_the_requests_where_they_are_busy() {
        for slots in [1, 2, 4] {
            let found = estimate(&[recorded(slots, 0.75, 0.1)], 0.1).unwrap();
            let ratio = f64::from(found.slots) / f64::from(slots);
            assert!((0.7..=1.5).contains(&ratio), "{slots}: {}", found.slots);
            let waits: u64 = found.waits[0].iter().sum();
            assert!(waits > 0);
        }
    }

    #[test]
    fn where_nothing_waits_no_limit_is_found() {
        assert!(estimate(&[recorded(64, 0.2, 0.1)], 0.1).is_none());
    }
}
