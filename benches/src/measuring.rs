//! The duration of the measurements: all benchmarks together take minutes, not an hour.

/// Returns a criterion that measures a row with a number of samples in about a given time. It is a macro so that
/// criterion is a dependency only of the benchmarks: the dependencies of this library affect the build of the commands.
///
/// Confidence intervals are computed from 10,000 resamples. Criterion's default of 100,000 would take more time than
/// the measurements, without a benefit for so few samples.
#[macro_export]
macro_rules! for_about {
    ($samples:expr, $time:expr) => {
        ::criterion::Criterion::default()
            .sample_size($samples)
            .warm_up_time(::std::time::Duration::from_millis(300))
            .measurement_time($time)
            .nresamples(10_000)
    };
}
