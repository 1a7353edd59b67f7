//! How long the benchmarks measure: all together take minutes, not an hour.

/// A criterion that measures a row with a number of samples in about a given time. A macro, so that criterion stays a
/// dependency of the benchmarks alone: what this library depends on changes the build of the commands.
///
/// Confidence intervals come from 10,000 resamples. Criterion's own 100,000 would take more time than
/// the measurements, and tell nothing new of so few samples.
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
