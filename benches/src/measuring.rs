//! The settings of criterion: the benchmarks together take minutes instead of an hour.

/// Expands to a `Criterion` that takes the given number of samples of each benchmark in about the given time. This is a
/// macro so that only the benchmarks depend on criterion, and this library does not.
///
/// Confidence intervals are computed from 10,000 resamples. Criterion's default of 100,000 would take longer than the
/// measurements, and would not help with so few samples.
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

/// Returns the simulated time of a run: all of it for a measurement, a tenth where the benchmark is only run once, to check
/// its result (`cargo test --bench '*'`).
pub fn simulated(time: std::time::Duration) -> std::time::Duration {
    let given = |flag: &str| std::env::args().any(|argument| argument == flag);
    match given("--bench") && !given("--test") {
        true => time,
        false => time / 10,
    }
}
