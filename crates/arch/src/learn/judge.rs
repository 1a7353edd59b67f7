//! Comparison of the learned definition with the recording.

use super::fit::quantile;
use super::{LearnError, LearnReport};
use crate::definition::Rate;
use crate::plan::Plan;
use crate::topology::{Scale, Topology};
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

/// Simulates the learned definition for as long as the recording, and compares response times.
pub(super) fn judge(
    learned: &LearnReport,
    config: &Config,
) -> Result<Vec<Resemblance>, LearnError> {
    let topology = Topology::new(&learned.checked()?, Scale::default());
    let topology = topology.map_err(|error| LearnError::Scale(error.to_string()))?;
    let requests: usize = learned.recorded.iter().map(|kind| kind.times.len()).sum();
    let mut factor = MOST_INVOCATIONS / learned.spans.max(1) as f64;
    let mut loads = learned.definition.load.values();
    let is_steady = loads.all(|load| matches!(load.rate, Some(Rate::Constant(_))));
    factor = factor.min(if is_steady {
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
    let resemblance = |recorded: &RecordedKind| {
        let entry = totals.entries.get(&recorded.entry);
        let kind = entry.and_then(|entry| entry.kinds.get(&recorded.kind));
        let nanos = |part| kind.and_then(|kind| kind.times.at_most(part)).unwrap_or(0);
        Resemblance {
            entry: recorded.entry.clone(),
            kind: recorded.kind.clone(),
            recorded: recorded.times.len() as u64,
            simulated: kind.map_or(0, |kind| kind.requests),
            quantiles: PARTS
                .iter()
                .map(|&part| Quantile {
                    part,
                    recorded: Duration::from_nanos(quantile(&recorded.times, part)),
                    simulated: Duration::from_nanos(nanos(part)),
                })
                .collect(),
            distance: kind.map_or(1.0, |kind| distance(&recorded.times, &kind.times)),
        }
    };
    Ok(learned.recorded.iter().map(resemblance).collect())
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
