//! Comparison of the learned definition with the recording.

use super::fit::quantile;
use super::{LearnError, LearnReport};
use crate::definition::{CheckedDefinition, Rate, read_text};
use crate::plan::Plan;
use crate::topology::{Scale, Topology};
use crate::totals::Totals;
use crate::workload::simulate;
use corsair::{Config, Executor};
use corsair_observe::TimesHistogram;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The quantiles that are compared.
const PARTS: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// The maximum number of simulated invocations.
const MOST_INVOCATIONS: f64 = 2e6;
const LEAST_REQUESTS: f64 = 20_000.0;

/// The maximum share of these invocations for each resampled recording, and the minimum number of resampled recordings
/// for an interval.
const RESAMPLED: f64 = 0.2;
const LEAST_RESAMPLED: usize = 5;

/// The response times of a kind of request, sorted, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct RecordedKind {
    pub(super) entry: String,
    pub(super) kind: String,
    pub(super) times: Vec<u64>,
}

/// A quantile of response times: recorded and simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The fraction of requests below the quantile, from 0 to 1.
    pub part: f64,
    /// The recorded response time.
    pub recorded: Duration,
    /// The simulated response time.
    pub simulated: Duration,
    /// The interval that contains 95 % of the simulated response times of definitions learned from resampled
    /// recordings; `None` without such definitions.
    pub between: Option<(Duration, Duration)>,
}

/// The similarity of recorded and simulated response times of a kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Resemblance {
    /// The entry point.
    pub entry: String,
    /// The kind of request: an endpoint of a service.
    pub kind: String,
    /// The number of recorded requests.
    pub recorded: u64,
    /// The number of simulated requests.
    pub simulated: u64,
    /// The quantiles side by side.
    pub quantiles: Vec<Quantile>,
    /// The maximum distance of the distribution functions (Kolmogorov–Smirnov).
    pub distance: f64,
}

/// Simulates the learned definition for as long as the recording, and compares response times. The definitions of
/// resampled recordings give the intervals of the simulated times.
pub(super) fn judge(
    learned: &LearnReport,
    config: &Config,
) -> Result<Vec<Resemblance>, LearnError> {
    let totals = simulate_recorded(learned, &learned.checked()?, config, 1.0)?;
    let mut others = Vec::new();
    for (number, definition) in (1..).zip(&learned.resampled) {
        if config.cancel.is_cancelled() {
            break;
        }
        let checked = read_text(&definition.to_text(), "a resampled recording")?;
        let config = Config {
            seed: config.seed.wrapping_add(number),
            ..config.clone()
        };
        let part = RESAMPLED.min(2.0 / learned.resampled.len() as f64);
        others.push(simulate_recorded(learned, &checked, &config, part)?);
    }
    let compare = |recorded: &RecordedKind| resemblance(recorded, &totals, &others);
    Ok(learned.recorded.iter().map(compare).collect())
}

/// Simulates a definition for as long as the recording, or for this part of the maximum number of invocations.
fn simulate_recorded(
    learned: &LearnReport,
    definition: &CheckedDefinition,
    config: &Config,
    part: f64,
) -> Result<Totals, LearnError> {
    let topology = Topology::new(definition, Scale::default());
    let topology = topology.map_err(|error| LearnError::Scale(error.to_string()))?;
    let requests: usize = learned.recorded.iter().map(|kind| kind.times.len()).sum();
    let mut factor = MOST_INVOCATIONS * part / learned.spans.max(1) as f64;
    let mut loads = learned.definition.load.values();
    let is_steady = loads.all(|load| matches!(load.rate, Some(Rate::Constant(_))));
    factor = factor.min(if is_steady && part == 1.0 {
        (LEAST_REQUESTS / requests.max(1) as f64).clamp(1.0, 100.0)
    } else {
        1.0
    });
    let plan = Plan {
        duration: learned.lasted.mul_f64(factor).max(Duration::from_millis(1)),
        drain: Duration::from_secs(5),
        ..Plan::default()
    };
    let config = Config {
        // A window of simulated time has so few events that a second thread would only add waiting.
        workers: NonZeroUsize::MIN,
        ..config.clone()
    };
    let (_, totals) = simulate(Executor::Virtual, &config, topology, &plan)?;
    Ok(totals)
}

/// Compares the recorded and the simulated response times of a kind of request.
fn resemblance(recorded: &RecordedKind, totals: &Totals, others: &[Totals]) -> Resemblance {
    let of = |totals: &Totals, part: f64| {
        let kind = totals
            .entries
            .get(&recorded.entry)?
            .kinds
            .get(&recorded.kind)?;
        kind.times.at_most(part).map(Duration::from_nanos)
    };
    let between = |part: f64| {
        let mut times: Vec<Duration> = others.iter().filter_map(|one| of(one, part)).collect();
        times.sort_unstable();
        let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
        (times.len() >= LEAST_RESAMPLED).then(|| (at(0.025), at(0.975)))
    };
    let entry = totals.entries.get(&recorded.entry);
    let kind = entry.and_then(|entry| entry.kinds.get(&recorded.kind));
    let quantiles = PARTS.iter().map(|&part| Quantile {
        part,
        recorded: Duration::from_nanos(quantile(&recorded.times, part)),
        simulated: of(totals, part).unwrap_or_default(),
        between: between(part),
    });
    Resemblance {
        entry: recorded.entry.clone(),
        kind: recorded.kind.clone(),
        recorded: recorded.times.len() as u64,
        simulated: kind.map_or(0, |kind| kind.requests),
        quantiles: quantiles.collect(),
        distance: kind.map_or(1.0, |kind| distance(&recorded.times, &kind.times)),
    }
}

/// Returns the maximum distance of two distribution functions.
fn distance(recorded: &[u64], simulated: &TimesHistogram) -> f64 {
    let mut most = 0.0f64;
    let mut seen = 0u64;
    // A histogram has only the count of each bucket, so both ends of a bucket are compared.
    for (bounds, count) in simulated.iter() {
        let (low, high) = bounds.into_inner();
        let part = |nanos: u64, or_equal: bool| {
            let below =
                recorded.partition_point(|&r| if or_equal { r <= nanos } else { r < nanos });
            below as f64 / recorded.len() as f64
        };
        let before = seen as f64 / simulated.len() as f64;
        seen += count;
        let after = seen as f64 / simulated.len() as f64;
        most = most.max((part(low, false) - before).abs());
        most = most.max((part(high, true) - after).abs());
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_samples_is_that_of_their_distribution_functions() {
        let mut simulated = TimesHistogram::default();
        for nanos in 1..=1_000u64 {
            simulated.record(nanos);
        }
        let same: Vec<u64> = (1..=1_000).collect();
        assert!(distance(&same, &simulated) < 0.002);
        let half: Vec<u64> = (501..=1_500).collect();
        assert!((distance(&half, &simulated) - 0.5).abs() < 0.002);
    }
}
