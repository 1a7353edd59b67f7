//! The load at which an architecture is too slow: found by simulation.
//!
//! The load doubles until the 99th percentile of the response time passes the limit, or requests
//! fail; then the interval is halved until it is narrow enough. Every point is a whole run in
//! virtual time from the same seed, so the answer repeats.

use crate::simulate::{Plan, SimulateError, simulate};
use crate::topology::Topology;
use crate::totals::Entry;
use corsair::{Config, Executor, Outcome};
use std::time::Duration;

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The 99th percentile of the response time must not pass this.
    pub limit: Duration,
    /// At most this part of all requests may fail or stay unanswered.
    pub errors: f64,
    /// The load to begin with, in requests per second and entry point.
    pub from: f64,
    /// The highest load to try.
    pub to: f64,
    /// How narrow the answer is, as a part of it.
    pub precision: f64,
}

impl Default for Search {
    /// At most 100 ms and one failure in a hundred, from 10 requests a second up to 100,000, to a
    /// fiftieth.
    fn default() -> Self {
        Search {
            limit: Duration::from_millis(100),
            errors: 0.01,
            from: 10.0,
            to: 100_000.0,
            precision: 0.02,
        }
    }
}

/// One load that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Requests per second and entry point.
    pub load: f64,
    /// Requests that were answered, per second, at all entry points.
    pub throughput: f64,
    /// Half of the response times are shorter, at the slowest entry point.
    pub p50: Duration,
    /// 99 of 100 response times are shorter, at the slowest entry point.
    pub p99: Duration,
    /// The part of all requests that failed or stayed unanswered.
    pub errors: f64,
    /// Whether this load is borne.
    pub holds: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Every load that was tried, in ascending order.
    pub points: Vec<Point>,
    /// The highest load that is borne, in requests per second and entry point; none if even the
    /// first is too much.
    pub load: Option<f64>,
    /// Whether the highest load to try is borne, so that the limit was not found.
    pub beyond: bool,
}

/// Looks for the highest load that an architecture bears. `tried` is told of every point.
///
/// # Errors
/// See [`SimulateError`].
pub fn capacity(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    search: &Search,
    mut tried: impl FnMut(&Point),
) -> Result<Capacity, SimulateError> {
    let mut points: Vec<Point> = Vec::new();
    let mut measure = |load: f64| -> Result<Option<bool>, SimulateError> {
        let Some(point) = point(config, topology, plan, search, load)? else {
            return Ok(None);
        };
        tried(&point);
        points.push(point);
        Ok(Some(point.holds))
    };
    let (mut good, mut bad) = (None, None);
    let mut load = search.from;
    while bad.is_none() {
        match measure(load)? {
            None => break,
            Some(false) => bad = Some(load),
            Some(true) => {
                good = Some(load);
                if load >= search.to {
                    break;
                }
                load = (load * 2.0).min(search.to);
            }
        }
    }
    while let (Some(low), Some(high)) = (good, bad) {
        let middle = (low + high) / 2.0;
        if high - low <= search.precision * high {
            break;
        }
        match measure(middle)? {
            None => break,
            Some(true) => good = Some(middle),
            Some(false) => bad = Some(middle),
        }
    }
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    Ok(Capacity {
        points,
        load: good,
        beyond: bad.is_none() && good.is_some_and(|good| good >= search.to),
    })
}

/// Runs one load. `None` if the run was cut.
fn point(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    search: &Search,
    load: f64,
) -> Result<Option<Point>, SimulateError> {
    let plan = Plan {
        chat: Duration::from_secs_f64(1.0 / load).max(Duration::from_micros(1)),
        ..plan.clone()
    };
    let (report, totals) = simulate(Executor::Virtual, config, topology.clone(), &plan)?;
    if report.outcome == Outcome::Cut {
        return Ok(None);
    }
    let slowest = |percentile: f64| {
        let at = |entry: &Entry| entry.times.value_at_quantile(percentile);
        Duration::from_nanos(totals.entries.values().map(at).max().unwrap_or(0))
    };
    let failed: u64 = totals
        .entries
        .values()
        .map(|e| e.errors + e.unanswered())
        .sum();
    let answered: u64 = totals.entries.values().map(|e| e.times.len()).sum();
    let (p50, p99) = (slowest(0.5), slowest(0.99));
    let errors = failed as f64 / totals.requests().max(1) as f64;
    Ok(Some(Point {
        load,
        throughput: answered as f64 / plan.duration.as_secs_f64().max(1e-9),
        p50,
        p99,
        errors,
        holds: p99 <= search.limit && errors <= search.errors,
    }))
}
