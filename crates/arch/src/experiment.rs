//! Measured and compared runs: many seeds, on all cores, with confidence intervals.

use crate::plan::{Plan, SimulateError};
use crate::topology::Topology;
use crate::totals::{EntryTotals, Totals};
use crate::workload::simulate;
use corsair::{Config, Executor, Outcome, Report};
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The measurements of one run. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The number of requests, including puts, that arrived after the warm-up.
    pub requests: u64,
    /// Completed requests per second.
    pub throughput: f64,
    /// The fraction of requests that failed or stayed unanswered. This fraction and all times are NaN if there were no
    /// requests.
    pub errors: f64,
    /// The mean response time of answered requests.
    pub mean: f64,
    /// The median of response times. Unanswered requests count with the time for which they have waited.
    pub p50: f64,
    /// The 90th percentile; see `p50`.
    pub p90: f64,
    /// The 95th percentile; see `p50`.
    pub p95: f64,
    /// The 99th percentile; see `p50`.
    pub p99: f64,
    /// The 99.9th percentile; see `p50`.
    pub p999: f64,
}

impl Measurement {
    /// The names of the numbers, in the order of the columns of tables.
    pub const NAMES: [&str; 9] = [
        "requests",
        "throughput",
        "errors",
        "mean_seconds",
        "p50_seconds",
        "p90_seconds",
        "p95_seconds",
        "p99_seconds",
        "p999_seconds",
    ];

    /// Returns the measurements with their names, in the order of table columns.
    pub fn columns(&self) -> [(&'static str, f64); 9] {
        let values = [
            self.requests as f64,
            self.throughput,
            self.errors,
            self.mean,
            self.p50,
            self.p90,
            self.p95,
            self.p99,
            self.p999,
        ];
        std::array::from_fn(|number| (Measurement::NAMES[number], values[number]))
    }
}

/// Runs a topology once on one thread. `None` if the run was cancelled.
///
/// # Errors
/// See [`SimulateError`].
pub fn measure(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    seed: u64,
) -> Result<Option<Measurement>, SimulateError> {
    let counted = plan.duration.saturating_sub(plan.warm_up);
    let run = run_once(config, topology.clone(), plan, seed)?;
    Ok(run.map(|(_, totals)| measured(&totals, counted)))
}

/// Runs a topology once on one thread. `None` if the run was cancelled.
pub(crate) fn run_once(
    config: &Config,
    topology: Topology,
    plan: &Plan,
    seed: u64,
) -> Result<Option<(Report, Totals)>, SimulateError> {
    let config = Config {
        seed,
        workers: NonZeroUsize::MIN,
        ..config.clone()
    };
    let run = simulate(Executor::Virtual, &config, topology, plan)?;
    Ok((run.0.outcome != Outcome::Cancelled).then_some(run))
}

/// Computes the measurements of a run from its totals. `counted` is the time during which requests
/// were counted.
pub fn measured(totals: &Totals, counted: Duration) -> Measurement {
    let mut all = EntryTotals::default();
    for entry in totals.entries.values() {
        all.add(entry);
    }
    let has_times = !all.times.is_empty() || !all.ages.is_empty();
    let at = |part| match has_times {
        true => all.percentile(part).time.as_secs_f64(),
        false => f64::NAN,
    };
    let failed = all.errors + all.unanswered();
    let answered = all.times.len() - (all.errors - all.unrouted).min(all.times.len());
    Measurement {
        requests: all.requests + all.puts,
        throughput: (answered + all.puts) as f64 / counted.as_secs_f64().max(1e-9),
        errors: match all.requests {
            // A put has no answer, so it cannot fail.
            0 if all.puts > 0 => 0.0,
            requests => failed as f64 / requests as f64,
        },
        mean: all.times.mean().map_or(f64::NAN, |nanos| nanos / 1e9),
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
    }
}

/// Calls `work` with every number below `count` on `threads` threads, and returns the results in the order of
/// the numbers.
pub fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(count));
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = work(number);
            results.lock().push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(run);
        }
        run();
    });
    let mut results = results.into_inner();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A mean with half the width of its 95 % confidence interval, which is `None` for a single value. The mean of no
/// values is NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the values.
    pub mean: f64,
    /// Half the width of the interval.
    pub within: Option<f64>,
}

impl Estimate {
    /// Computes the estimate from independent values. NaNs, from runs without requests, are ignored.
    pub fn of(values: &[f64]) -> Estimate {
        Estimate::at(values, 0.95)
    }

    /// Computes the estimate with an interval of the given confidence, between 0 and 1.
    pub(crate) fn at(values: &[f64], confidence: f64) -> Estimate {
        let numbers: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
        if numbers.is_empty() {
            return Estimate {
                mean: f64::NAN,
                within: None,
            };
        }
        let estimate = corsair::Estimate::of(numbers.iter().copied());
        let mean = estimate.mean();
        let within = (numbers.len() > 1).then(|| estimate.half_width(confidence));
        Estimate { mean, within }
    }

    /// True if there were no values.
    pub fn is_empty(&self) -> bool {
        self.mean.is_nan()
    }

    /// True if the interval excludes zero.
    pub fn is_clear(&self) -> bool {
        self.within.is_some_and(|within| self.mean.abs() > within)
    }
}

/// A quantity in two architectures, and its difference between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The name of the quantity.
    pub name: &'static str,
    /// The value in the first architecture and in the second.
    pub of: [Estimate; 2],
    /// The second minus the first, seed by seed, so random variation that both share cancels out.
    pub difference: Estimate,
}

/// Runs two topologies with the same seeds, and compares their measurements. `None` if a run was cancelled.
///
/// ```
/// use corsair::Config;
/// use corsair_arch::{DefinitionText, Plan, Scale, Setting, Topology, compare};
/// use std::path::Path;
///
/// let lamp = DefinitionText::find("lamp", Path::new("json_arch"))?;
/// let slower = lamp.with(&[Setting {
///     path: "services.webserver.service_time".to_owned(),
///     value: Setting::value("20ms"),
/// }])?;
/// let before = Topology::new(&lamp.with(&[])?, Scale::default())?;
/// let after = Topology::new(&slower, Scale::default())?;
/// let compared = compare(&Config::default(), [&before, &after], &Plan::default(), 3)?;
/// let rows = compared.expect("the run was not cancelled");
/// let median = rows.iter().find(|row| row.name == "p50_seconds").unwrap();
/// assert!(median.difference.mean > 0.019);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`SimulateError`].
pub fn compare(
    config: &Config,
    topologies: [&Topology; 2],
    plan: &Plan,
    seeds: usize,
) -> Result<Option<Vec<Compared>>, SimulateError> {
    let runs = in_parallel(config.workers.get(), 2 * seeds, |number| {
        let seed = config.seed.wrapping_add((number / 2) as u64);
        measure(config, topologies[number % 2], plan, seed)
    });
    let mut measured: [Vec<Measurement>; 2] = Default::default();
    for (number, run) in runs.into_iter().enumerate() {
        let Some(run) = run? else {
            return Ok(None);
        };
        measured[number % 2].push(run);
    }
    let [a, b] = measured;
    Ok(Some(compared(&a, &b)))
}

/// Compares measurements of two architectures, from the same seeds in the same order.
pub fn compared(a: &[Measurement], b: &[Measurement]) -> Vec<Compared> {
    let columns = Measurement::NAMES.into_iter().enumerate();
    let compare = columns.map(|(column, name)| {
        let [a, b] = [a, b].map(|runs| -> Vec<f64> {
            let values = runs.iter().map(|run| run.columns()[column].1);
            values.collect()
        });
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        Compared {
            name,
            of: [Estimate::of(&a), Estimate::of(&b)],
            difference: Estimate::of(&differences),
        }
    });
    compare.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_clear_when_its_interval_leaves_zero_out() {
        let some = Estimate::of(&[1.0, 2.0, 3.0]);
        // The deviation is 1, and 4.303 / √3 is 2.484.
        assert!((some.within.unwrap() - 2.484).abs() < 0.001 && !some.is_clear());
        assert!(Estimate::of(&[1.0, 1.1, 0.9]).is_clear());
        assert!(!Estimate::of(&[5.0]).is_clear());
        let none = Estimate::of(&[f64::NAN; 3]);
        assert!(none.is_empty() && !none.is_clear());
        assert_eq!(Estimate::of(&[f64::NAN, 2.0]).mean, 2.0);
    }

    #[test]
    fn results_are_in_the_order_of_their_numbers() {
        let squares = in_parallel(3, 50, |number| number * number);
        assert_eq!(squares, (0..50).map(|n| n * n).collect::<Vec<_>>());
        assert!(in_parallel(3, 0, |number| number).is_empty());
    }
}
