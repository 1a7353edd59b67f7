//! The arrivals of requests: their rate over time and their regularity.

use super::fit::span;
use crate::definition::{Arrivals, Rate, RatePoint};

/// The maximum number of steps of a rate that changes, and the minimum number of arrivals in each.
const MOST_STEPS: usize = 60;
const LEAST_IN_STEP: usize = 100;

/// An arrival process, with the maximum distance between its distribution of gaps and the recorded one.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) rate: Rate,
    pub(super) arrivals: Arrivals,
    pub(super) distance: f64,
}

/// Estimates the arrival process from sorted times in nanoseconds; `sampled` is the recorded share of the arrivals.
pub(super) fn process(times: &[u64], sampled: f64) -> Process {
    let (first, last) = (times[0], times[times.len() - 1]);
    let lasted = ((last - first) as f64 / 1e9).max(1e-6);
    // The first arrival starts the measured time, so it is not counted.
    let rate = ((times.len() - 1).max(1) as f64 / lasted / sampled).clamp(1e-3, 1e6);
    let steps = (times.len() / LEAST_IN_STEP).min(MOST_STEPS);
    let width = lasted / steps.max(1) as f64;
    let mut counts = vec![0u64; steps.max(1)];
    for &time in times {
        let place = ((time - first) as f64 / 1e9 / width) as usize;
        let place = place.min(counts.len() - 1);
        counts[place] += 1;
    }
    let is_steady = steps < 4 || is_steady(&counts);
    if is_steady {
        counts = vec![times.len() as u64];
    }
    let width = lasted / counts.len() as f64;
    // Gaps are measured in a scaled time in which the mean gap is one at every rate.
    let rates: Vec<f64> = counts.iter().map(|&count| count as f64 / width).collect();
    let gap = |pair: &[u64]| {
        let [from, to] = [pair[0], pair[1]].map(|time| (time - first) as f64 / 1e9);
        let place = |time: f64| ((time / width) as usize).min(rates.len() - 1);
        let (begin, end) = (place(from), place(to));
        if begin == end {
            return (to - from) * rates[begin];
        }
        let between: f64 = (begin + 1..end).map(|step| rates[step] * width).sum();
        let (after, before) = ((begin + 1) as f64 * width - from, to - end as f64 * width);
        after * rates[begin] + between + before * rates[end]
    };
    let mut gaps: Vec<f64> = times.windows(2).map(gap).collect();
    gaps.sort_by(f64::total_cmp);
    let (arrivals, distance) = regularity(&gaps);
    let point = |(step, &rate): (usize, &f64)| RatePoint {
        at: span((step as f64 * width * 1e9) as u64),
        rate: (rate / sampled * 1e3).round() / 1e3,
        ramp: false,
    };
    Process {
        rate: if is_steady {
            Rate::Constant((rate * 1e3).round() / 1e3)
        } else {
            Rate::Profile(rates.iter().enumerate().map(point).collect())
        },
        arrivals,
        distance,
    }
}

/// True if the counts vary no more than the counts of a Poisson process with a constant rate: their index
/// of dispersion exceeds 1 by less than four standard errors.
fn is_steady(counts: &[u64]) -> bool {
    let number = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / number;
    let squares: f64 = counts.iter().map(|&c| (c as f64 - mean).powi(2)).sum();
    let dispersion = squares / (number - 1.0) / mean;
    dispersion < 1.0 + 4.0 * (2.0 / (number - 1.0)).sqrt()
}

/// Returns the distribution of sorted gaps with a mean of one, and its distance from the data.
fn regularity(gaps: &[f64]) -> (Arrivals, f64) {
    let count = gaps.len() as f64;
    if gaps.is_empty() {
        return (Arrivals::Poisson, 0.0);
    }
    let mean = gaps.iter().sum::<f64>() / count;
    let squares: f64 = gaps.iter().map(|gap| (gap - mean).powi(2)).sum();
    if (squares / count).sqrt() < 0.1 * mean {
        return (Arrivals::Constant, 0.0);
    }
    let distance = |function: &dyn Fn(f64) -> f64| {
        let mut most = 0.0f64;
        for (place, &gap) in gaps.iter().enumerate() {
            let expected = function(gap);
            let off = (expected - place as f64 / count).abs();
            most = most
                .max(off)
                .max(((place + 1) as f64 / count - expected).abs());
        }
        most
    };
    let poisson = distance(&|gap| 1.0 - libm::exp(-gap));
    let uniform = distance(&|gap| (gap / 2.0).min(1.0));
    if uniform < poisson {
        (Arrivals::Uniform, uniform)
    } else {
        (Arrivals::Poisson, poisson)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Random;

    fn learned(mut gap: impl FnMut(&mut Random, u64) -> f64) -> Process {
        let (mut random, mut now, mut times) = (Random::new(5), 0.0, vec![0]);
        for _ in 0..20_000 {
            now += gap(&mut random, times[times.len() - 1]) * 1e7;
            times.push(now as u64);
        }
        process(&times, 1.0)
    }

    fn exponential(random: &mut Random) -> f64 {
        -libm::log(crate::distribution::unit(random.bits()))
    }

    #[test]
    fn regular_independent_and_uniform_arrivals_are_distinguished() {
        let all = [
            learned(|_, _| 1.0),
            learned(|random, _| exponential(random)),
            learned(|random, _| 2.0 * crate::distribution::unit(random.bits())),
        ];
        let wanted = [Arrivals::Constant, Arrivals::Poisson, Arrivals::Uniform];
        for (found, arrivals) in all.iter().zip(wanted) {
            assert_eq!(found.arrivals, arrivals);
            let Rate::Constant(rate) = found.rate else {
                panic!("{found:?}");
            };
            assert!((rate / 100.0 - 1.0).abs() < 0.03 && found.distance < 0.02);
        }
    }

    #[test]
    fn a_rate_that_changes_is_a_profile() {
        let slow_after = 50_000_000_000;
        let found =
            learned(|random, now| exponential(random) * if now > slow_after { 4.0 } else { 1.0 });
        let Rate::Profile(points) = &found.rate else {
            panic!("{found:?}");
        };
        let (first, last) = (points[0].rate, points[points.len() - 1].rate);
        assert!((first / 100.0 - 1.0).abs() < 0.2 && (last / 25.0 - 1.0).abs() < 0.3);
        assert_eq!(found.arrivals, Arrivals::Poisson);
    }
}
