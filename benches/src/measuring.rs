//! How long the benchmarks measure: all together take minutes, not an hour.

use criterion::Criterion;
use std::time::Duration;

/// Measures a row with this many samples in about this time.
///
/// Confidence intervals come from 10,000 resamples. Criterion's own 100,000 would take more time than
/// the measurements, and tell nothing new of so few samples.
#[must_use]
pub fn for_about(samples: usize, time: Duration) -> Criterion {
    Criterion::default()
        .sample_size(samples)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(time)
        .nresamples(10_000)
}
