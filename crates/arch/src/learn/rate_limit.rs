//! Estimates the rate limit of a service from the requests that it admitted and those that it refused.
//!
//! A token bucket with `rate` tokens per second and a capacity of `burst` tokens admits a request for a token. Its debt,
//! the number of missing tokens, is at most the burst after each admitted request, and above the burst less one
//! before each refused one. For other rates than the true one, some refused requests would have found a token.

use super::invocation::Invocations;
use crate::definition::RateLimit;
use rustc_hash::{FxHashMap, FxHashSet};

/// The minimum number of refused requests.
const LEAST: usize = 20;

/// The largest share of refused requests that may have found a token, because of inexact clocks.
const MOST_UNEXPLAINED: f64 = 0.05;

/// The number of rates that are tried at once, the number of times that they are tried, and the number of requests.
const TRIED: usize = 100;
const ROUNDS: usize = 3;
const MOST_REQUESTS: usize = 100_000;

/// The part of a token that a refused request may have found, because of inexact clocks.
const NO_TOKEN: f64 = 0.02;

/// The inverse of the share of admitted requests whose debt may be above the burst, for the same reason.
const MOST_BEYOND: usize = 1_000;

/// The arrivals at an instance in order, each with whether it was refused.
type Arrivals = Vec<(u64, bool)>;

/// Estimates the rate limit of the instances of a service; `None` if no request was refused, or no rate explains it.
pub(super) fn estimate(invocations: &Invocations, mine: &[u32]) -> Option<RateLimit> {
    let all = || mine.iter().map(|&made| &invocations.all[made as usize]);
    if all().filter(|made| made.refused).count() < LEAST {
        return None;
    }
    // Refused requests without a server's span do not name their instance; then the instances share the limit.
    let serving: FxHashSet<u32> = all()
        .filter(|made| !made.refused)
        .map(|made| made.instance)
        .collect();
    let is_named = all().all(|made| serving.contains(&made.instance));
    let mut by_instance: FxHashMap<u32, Arrivals> = FxHashMap::default();
    for made in all() {
        let instance = if is_named { made.instance } else { 0 };
        let of = by_instance.entry(instance).or_default();
        of.push((made.begin, made.refused));
    }
    let of_busiest = by_instance.into_iter().max_by_key(|(instance, arrivals)| {
        let refused = arrivals.iter().filter(|(_, refused)| *refused).count();
        (refused, u32::MAX - instance)
    });
    let mut arrivals = of_busiest?.1;
    arrivals.sort_unstable();
    arrivals.truncate(MOST_REQUESTS);
    let (rate, burst) = search(&arrivals)?;
    let instances = if is_named { 1 } else { serving.len().max(1) };
    Some(RateLimit {
        rate: rounded(rate / instances as f64),
        burst: (burst > 1.0).then_some(burst),
    })
}

/// Rounds to four digits.
fn rounded(rate: f64) -> f64 {
    let unit = libm::pow(10.0, 3.0 - libm::floor(libm::log10(rate)));
    (rate * unit).round() / unit
}

/// Returns the rate per second and the burst that explain most refused requests.
fn search(arrivals: &Arrivals) -> Option<(f64, f64)> {
    let refused = arrivals.iter().filter(|(_, refused)| *refused).count();
    if refused < LEAST {
        return None;
    }
    let seconds = (arrivals.last()?.0 - arrivals[0].0) as f64 / 1e9;
    let rate_of = |count: usize| count as f64 / seconds.max(1e-9);
    // The limit is above the rate of admitted requests, unless they began with a burst.
    let mut low = rate_of(arrivals.len() - refused) * 0.5;
    let mut high = fastest(arrivals).max(low * 4.0);
    let mut best = (usize::MAX, 0.0, 0.0);
    for _ in 0..ROUNDS {
        let factor = libm::pow(high / low, 1.0 / TRIED as f64);
        let tried: Vec<(usize, f64, f64)> = (0..=TRIED)
            .map(|number| {
                let rate = low * libm::pow(factor, number as f64);
                let (wrong, burst) = unexplained(arrivals, rate);
                (wrong, rate, burst)
            })
            .collect();
        let least = tried.iter().map(|one| one.0).min()?;
        // Of the rates that explain the same number, the middle one is taken.
        let equal: Vec<_> = tried.iter().filter(|one| one.0 == least).collect();
        let middle = *equal[equal.len() / 2];
        if middle.0 < best.0 || equal.len() < TRIED / 2 {
            best = middle;
        }
        (low, high) = (equal[0].1 / factor, equal[equal.len() - 1].1 * factor);
    }
    let (wrong, rate, burst) = best;
    (wrong as f64 <= MOST_UNEXPLAINED * refused as f64).then_some((rate, burst.round().max(1.0)))
}

/// Returns the highest rate of admitted requests, over ten of them.
fn fastest(arrivals: &Arrivals) -> f64 {
    let admitted: Vec<u64> = (arrivals.iter().filter(|(_, refused)| !refused))
        .map(|(at, _)| *at)
        .collect();
    let windows = admitted.windows(10);
    let least = windows.map(|window| window[9] - window[0]).min();
    9e9 / least.unwrap_or(u64::MAX).max(1) as f64
}

/// Returns the number of refused requests that this rate does not explain, and the burst with this rate.
fn unexplained(arrivals: &Arrivals, rate: f64) -> (usize, f64) {
    let (mut debt, mut last) = (0.0f64, arrivals[0].0);
    let (mut admitted, mut refused) = (Vec::new(), Vec::new());
    for &(at, is_refused) in arrivals {
        // Without the bound at zero, the debt of a refused request shows by how much the rate is too high.
        let unbounded = debt - (at - last) as f64 / 1e9 * rate;
        debt = unbounded.max(0.0);
        last = at;
        match is_refused {
            true => refused.push(unbounded),
            false => {
                debt += 1.0;
                admitted.push(debt);
            }
        }
    }
    admitted.sort_unstable_by(f64::total_cmp);
    let place = admitted
        .len()
        .saturating_sub(1 + admitted.len() / MOST_BEYOND);
    let burst = admitted.get(place).copied().unwrap_or(1.0);
    let is_wrong = |debt: &&f64| **debt <= burst - 1.0 - NO_TOKEN;
    // A rate that is too low lets the debt grow without bound, and then explains few refused requests.
    (refused.iter().filter(is_wrong).count(), burst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Random;

    /// Poisson arrivals at a token bucket.
    fn arrivals(arriving: f64, rate: f64, burst: f64) -> Arrivals {
        let mut random = Random::new(5);
        let (mut now, mut tokens, mut last) = (0.0, burst, 0.0);
        let mut made = Vec::new();
        for _ in 0..20_000 {
            now -= libm::log(crate::distribution::unit(random.bits())) / arriving;
            tokens = burst.min(tokens + (now - last) * rate);
            last = now;
            let is_refused = tokens < 1.0;
            tokens -= if is_refused { 0.0 } else { 1.0 };
            made.push(((now * 1e9) as u64, is_refused));
        }
        made
    }

    #[test]
    fn the_rate_and_the_burst_of_a_bucket_are_found() {
        for (arriving, rate, burst) in [
            (120.0, 100.0, 1.0),
            (120.0, 100.0, 20.0),
            (90.0, 100.0, 5.0),
        ] {
            let (found, room) = search(&arrivals(arriving, rate, burst)).unwrap();
            assert!(
                (found / rate - 1.0).abs() < 0.02,
                "{arriving} {rate} {burst}: {found}"
            );
            assert_eq!(room, burst, "{arriving} {rate}");
        }
    }

    #[test]
    fn refusals_by_chance_have_no_rate() {
        let mut random = Random::new(6);
        let mut made = arrivals(100.0, 1e6, 1e6);
        for one in &mut made {
            one.1 = random.below(5) == 0;
        }
        assert_eq!(search(&made), None);
    }
}
