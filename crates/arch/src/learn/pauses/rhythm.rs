//! The period of events that repeat, of which some may be missing and some may be added.

/// The largest deviation of an interval from a multiple of the period, as a part of the period, and the largest multiple.
const TOLERANCE: f64 = 0.15;
pub(super) const MOST_MISSING: f64 = 4.0;

/// The least share of the intervals that are multiples of the period.
const LEAST_SHARE: f64 = 0.6;

/// The negative logarithm of the probability with which intervals by chance are multiples of some period.
const CLEAR: f64 = 18.0;

/// A period in nanoseconds, with the evidence for it: a negative logarithm of a probability, or 0 for the mean of irregular
/// intervals, whose squared coefficient of variation is `variation`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    pub(super) period: f64,
    pub(super) evidence: f64,
    pub(super) variation: f64,
}

/// Returns the multiple of the period that an interval is, if it is one.
pub(super) fn multiple(interval: u64, period: f64) -> Option<f64> {
    let turns = interval as f64 / period;
    let whole = turns.round();
    ((1.0..=MOST_MISSING).contains(&whole) && (turns - whole).abs() <= TOLERANCE).then_some(whole)
}

/// Finds the period of which most intervals are multiples; `None` if these may be multiples by chance. Changes the order
/// of the intervals.
pub(super) fn find(intervals: &mut [u64]) -> Option<Rhythm> {
    if intervals.is_empty() {
        return None;
    }
    intervals.sort_unstable();
    // The median is the period if most events are known, and a smaller interval if there are others between them.
    let tried = [0.5, 0.25].map(|part| intervals[(intervals.len() as f64 * part) as usize]);
    let found = tried.into_iter().filter_map(|start| of(intervals, start));
    found.max_by(|a, b| a.evidence.total_cmp(&b.evidence))
}

/// Finds the period near this one.
fn of(intervals: &[u64], start: u64) -> Option<Rhythm> {
    let mut period = start.max(1) as f64;
    let mut count = 0;
    for _ in 0..4 {
        let regular = intervals
            .iter()
            .filter_map(|&one| Some((one as f64, multiple(one, period)?)));
        let (mut time, mut turns) = (0.0, 0.0);
        count = 0;
        for (interval, multiple) in regular {
            (time, turns, count) = (time + interval, turns + multiple, count + 1);
        }
        if count == 0 {
            return None;
        }
        period = time / turns;
    }
    let share = count as f64 / intervals.len() as f64;
    // Random intervals are as near to a multiple with this probability. The bound is that of Chernoff.
    let chance = 2.0 * TOLERANCE;
    let other = (1.0 - share).max(1e-12);
    let relative = share * libm::log(share / chance) + other * libm::log(other / (1.0 - chance));
    let evidence = relative * intervals.len() as f64;
    (share >= LEAST_SHARE && evidence >= CLEAR).then_some(Rhythm {
        period,
        evidence,
        variation: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Random;

    fn unit(random: &mut Random) -> f64 {
        crate::distribution::unit(random.bits())
    }

    /// Intervals between events of a period of a second, of which some are missing and some are added.
    fn intervals(jitter: f64, missing: f64, added: usize, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let mut times: Vec<u64> = (1..=100)
            .filter_map(|turn| {
                let off = (unit(&mut random) - 0.5) * jitter;
                (unit(&mut random) > missing).then_some(((f64::from(turn) + off) * 1e9) as u64)
            })
            .collect();
        times.extend((0..added).map(|_| (unit(&mut random) * 1e11) as u64));
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn a_period_is_found_although_events_are_missing_or_added() {
        for (jitter, missing, added) in [(0.0, 0.0, 0), (0.15, 0.3, 0), (0.05, 0.1, 10)] {
            let found = find(&mut intervals(jitter, missing, added, 3)).unwrap();
            assert!((found.period / 1e9 - 1.0).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn events_at_random_times_have_no_period() {
        for seed in 0..200 {
            for count in [20, 100, 1_000] {
                let found = find(&mut intervals(0.0, 1.0, count, seed));
                assert!(found.is_none(), "{seed} {count}: {found:?}");
            }
        }
    }
}
