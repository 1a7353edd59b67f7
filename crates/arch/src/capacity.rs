//! The load at which an architecture becomes too slow, found by simulation.
//!
//! The load is doubled until a service-level objective is missed; then the interval between the last two loads is
//! halved until it is narrow enough. If the first load is too high, it is halved until a load meets the objectives.
//! Every load is run several times with different seeds. Each run is long enough for some thousands of requests after a
//! warm-up that is not counted. The runs of a load end when the confidence interval of each objective is on one side of
//! its limit, or narrow enough. The answer depends only on the first seed.

mod sized;
mod slo;

pub use sized::{Sized, instances};
pub(crate) use slo::is_same_kind;
pub use slo::{Slo, SloError, SloMeasure};

use crate::experiment::{Estimate, in_parallel, run_once};
use crate::package::Package;
use crate::plan::{Plan, SimulateError};
use crate::topology::{Service, Topology};
use crate::totals::EntryTotals;
use corsair::Config;
use std::time::Duration;

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The objectives to meet.
    pub slos: Vec<Slo>,
    /// The first load, in requests per second and entry point.
    pub from: f64,
    /// The highest load to try.
    pub to: f64,
    /// The relative precision of the answer.
    pub precision: f64,
}

impl Default for Search {
    /// Returns the default goal: the 99th percentile is at most 100 ms and at most one request in a hundred fails. The
    /// search starts at 10 requests per second, ends at 100,000, and has a precision of one fiftieth.
    fn default() -> Self {
        Search {
            slos: Slo::usual(Duration::from_millis(100), 0.01),
            from: 10.0,
            to: 100_000.0,
            precision: 0.02,
        }
    }
}

impl Search {
    /// Returns the longest limit of a time, which determines the length of runs.
    fn longest_limit(&self) -> Duration {
        let times = self.slos.iter().filter(|slo| slo.is_time());
        let longest = times.map(|slo| slo.most).reduce(f64::max);
        longest.map_or(Duration::from_millis(100), Duration::from_secs_f64)
    }

    /// Returns the limit of the 99th percentile of all requests, if there is one.
    pub fn p99_limit(&self) -> Option<Duration> {
        let mut usual = self
            .slos
            .iter()
            .filter(|slo| slo.kind.is_none() && slo.measure == SloMeasure::Percentile(0.99));
        usual.next().map(|slo| Duration::from_secs_f64(slo.most))
    }
}

/// A simulated load.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Requests, including puts, per second and entry point.
    pub load: f64,
    /// Answered requests, including puts, per second, at all entry points.
    pub throughput: f64,
    /// The median of the response times at the slowest entry point.
    pub p50: Duration,
    /// The 95th percentile of the response times at the slowest entry point.
    pub p95: Duration,
    /// The 99th percentile of the response times at the slowest entry point. Unanswered requests count with the time
    /// for which they have waited.
    pub p99: Duration,
    /// Half the width of the 95 % confidence interval of `p99`; `None` after a single run, which is enough if it is far
    /// from the limit.
    pub p99_within: Option<Duration>,
    /// The fraction of requests that failed or stayed unanswered.
    pub errors: f64,
    /// The measured value of each objective, in the order of the objectives.
    pub objectives: Vec<Estimate>,
    /// The utilisation of the slots or processors of each service with a limit, with the service's index, the busiest
    /// service first.
    pub utilisations: Vec<(u32, f64)>,
    /// The number of runs.
    pub runs: u32,
    /// True if the architecture meets all objectives at this load.
    pub holds: bool,
    /// True if the result is certain: no confidence interval includes its limit.
    pub is_certain: bool,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// All simulated loads, in ascending order.
    pub points: Vec<Point>,
    /// The highest load that meets the objectives, in requests per second and entry point; `None` if no simulated load
    /// meets them.
    pub load: Option<f64>,
    /// The highest load that certainly meets the objectives, and the lowest that certainly does not, if there are any.
    pub between: (Option<f64>, Option<f64>),
    /// True if the maximum load of the search meets the objectives, so that the limit was not found.
    pub beyond: bool,
    /// False if the architecture has no limit that a load could reach. Then only the first load is simulated.
    pub limited: bool,
}

/// The minimum number of requests, including puts, that a run measures for each entry point.
const LEAST_REQUESTS: f64 = 3_000.0;
/// The minimum length of a run, as a multiple of the longest time limit of the objectives.
const LEAST_LIMITS: u32 = 50;
/// The number of runs in each group of runs after the first.
const GROUP: usize = 4;
/// The maximum number of runs of a load.
const MOST_RUNS: usize = 1 + 12 * GROUP;
/// The maximum number of further loads tried on each side of the limit. Each step is twice as wide as the one before.
const WIDER: usize = 4;
/// The factor by which a time must differ from its limit for a single run to decide.
const FAR: f64 = 2.0;
/// The lowest load that is tried, in requests per second.
const LEAST_LOAD: f64 = 0.01;
/// The utilisation above which a service may be the cause of a miss.
const BUSY: f64 = 0.3;
/// The relative improvement that a lower load must bring; otherwise all lower loads are equally bad.
const BETTER: f64 = 0.02;

/// The reasons for which a capacity cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The architecture has no entry point.
    #[error(
        "architecture {0} has no denominator: nothing drives load to it; add a service of that package"
    )]
    NoEntryPoint(String),
    /// The load has no requests to which an objective applies.
    #[error(transparent)]
    Objective(#[from] SloError),
    /// The load of an entry point is not a rate.
    #[error(
        "the load of '{0}' is not a rate, so no rate can be searched for; leave users and replay out"
    )]
    NoRate(String),
    /// The number of instances cannot be changed in this architecture.
    #[error("{0}")]
    Instances(String),
    /// A run failed.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Finds the highest load that an architecture sustains. Calls `tried` with the results of each load.
/// Runs are spread over `config.workers` threads. The chaos monkey does not kill its victim, because
/// capacity is measured with all instances running.
///
/// ```
/// use corsair::Config;
/// use corsair_arch::{Plan, Scale, Search, Slo, Topology, capacity, read_text};
/// use std::time::Duration;
///
/// // One instance serves one request at a time, each in 10 ms: at most 100 a second.
/// let definition = read_text(
///     r#"{"arch": "shop", "services": [
///         {"name": "api", "package": "karyon", "count": 1, "service_time": "10ms", "concurrency": 1},
///         {"name": "www", "package": "denominator", "dependencies": ["api"]}
///     ]}"#,
///     "shop.json",
/// )?;
/// let topology = Topology::new(&definition, Scale::default())?;
/// let search = Search {
///     slos: Slo::usual(Duration::from_millis(50), 0.01),
///     precision: 0.1,
///     ..Search::default()
/// };
/// let found = capacity(&Config::default(), &topology, &Plan::default(), &search, |_| {})?;
/// assert!((80.0..105.0).contains(&found.load.unwrap()), "{:?}", found.load);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`CapacityError`].
pub fn capacity(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    search: &Search,
    mut tried: impl FnMut(&Point),
) -> Result<Capacity, CapacityError> {
    let is_entry_point = |service: &Service| service.package == Package::Denominator;
    if !topology.services.iter().any(is_entry_point) {
        return Err(CapacityError::NoEntryPoint(topology.arch.clone()));
    }
    let mut topology = topology.clone();
    topology.victim = None;
    let loads = topology.services.iter().filter(|service| {
        let load = service.load.as_ref();
        load.is_some_and(|load| load.at_rate(1.0).is_none())
    });
    if let Some(service) = loads.into_iter().next() {
        return Err(CapacityError::NoRate(service.name.clone()));
    }
    for slo in &search.slos {
        slo.check(&topology)?;
    }
    let trial = Trial {
        config,
        topology: &topology,
        plan,
        search,
    };
    let mut loads = Loads {
        trial,
        points: Vec::new(),
        tried: &mut tried,
    };
    if !topology.is_limited() {
        let holds = loads.holds(search.from)?;
        return Ok(Capacity {
            points: loads.points,
            load: None,
            between: (None, None),
            beyond: holds == Some(true),
            limited: false,
        });
    }
    let (good, bad) = loads.bisect()?;
    if let (Some(low), Some(high)) = (good, bad) {
        loads.surround(low, high)?;
    }
    let mut points = loads.points;
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    Ok(Capacity {
        load: good,
        between: (
            certain(&points, true).reduce(f64::max),
            certain(&points, false).reduce(f64::min),
        ),
        beyond: bad.is_none() && good.is_some_and(|good| good >= search.to),
        limited: true,
        points,
    })
}

/// Returns the loads that certainly meet the objectives; if `holds` is false, the loads that certainly do not.
fn certain(points: &[Point], holds: bool) -> impl Iterator<Item = f64> {
    let points = points.iter();
    points
        .filter(move |point| point.is_certain && point.holds == holds)
        .map(|point| point.load)
}

/// The loads that a search has tried.
struct Loads<'a> {
    trial: Trial<'a>,
    points: Vec<Point>,
    tried: &'a mut dyn FnMut(&Point),
}

impl Loads<'_> {
    /// Returns whether a load meets the objectives; `None` if a run was cancelled.
    fn holds(&mut self, load: f64) -> Result<Option<bool>, SimulateError> {
        let Some(point) = self.trial.point(Some(load))? else {
            return Ok(None);
        };
        (self.tried)(&point);
        let holds = point.holds;
        self.points.push(point);
        Ok(Some(holds))
    }

    /// Finds a load that meets the objectives and one that does not, as close to each other as requested.
    fn bisect(&mut self) -> Result<(Option<f64>, Option<f64>), SimulateError> {
        let search = self.trial.search;
        let (mut good, mut bad) = (None, None);
        let mut load = search.from;
        while bad.is_none() {
            match self.holds(load)? {
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
        if good.is_none() && bad.is_some() {
            good = self.below(search.from)?;
            if let Some(good) = good {
                bad = Some(good * 2.0);
            }
        }
        while let (Some(low), Some(high)) = (good, bad) {
            if high - low <= search.precision * high {
                break;
            }
            let middle = (low + high) / 2.0;
            match self.holds(middle)? {
                None => break,
                Some(true) => good = Some(middle),
                Some(false) => bad = Some(middle),
            }
        }
        Ok((good, bad))
    }

    /// Halves a load until it meets the objectives; `None` if lower loads are no better.
    fn below(&mut self, from: f64) -> Result<Option<f64>, SimulateError> {
        let mut load = from / 2.0;
        while load >= LEAST_LOAD {
            match self.holds(load)? {
                None => return Ok(None),
                Some(true) => return Ok(Some(load)),
                Some(false) => {}
            }
            // While a service is busy, response times depend on the length of the run, so a lower load may still help.
            if let [.., above, here] = self.points.as_slice()
                && here
                    .utilisations
                    .first()
                    .is_none_or(|busiest| busiest.1 < BUSY)
                && !self.trial.is_better(here, above)
            {
                return Ok(None);
            }
            load /= 2.0;
        }
        Ok(None)
    }

    /// Tries loads below and above the limit until a load on each side has a certain result. The last loads of the
    /// bisection with certain results may be far from the limit.
    fn surround(&mut self, low: f64, high: f64) -> Result<(), SimulateError> {
        for (nearest, holds, mut step) in [
            (low, true, -self.trial.search.precision * low),
            (high, false, self.trial.search.precision * high),
        ] {
            let mut load = nearest;
            for _ in 0..WIDER {
                let reach = (load + step - nearest).abs();
                if certain(&self.points, holds).any(|known| (known - nearest).abs() <= reach) {
                    break;
                }
                load += step;
                step *= 2.0;
                if load <= 0.0 || self.holds(load)?.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Returns the plan of a run that measures for a time after a warm-up, and then waits for answers for up to twice a
/// limit.
pub(crate) fn measuring(plan: &Plan, measured: Duration, limit: Duration) -> Plan {
    let warm_up = (measured / 5).max(limit * 2);
    Plan {
        duration: warm_up + measured,
        warm_up,
        drain: plan.drain.max(limit * 2),
        ..plan.clone()
    }
}

/// The measurements of one run at a load.
#[derive(Clone, Debug)]
struct LoadMeasurement {
    offered: f64,
    utilisations: Vec<(u32, f64)>,
    throughput: f64,
    p50: Duration,
    p95: Duration,
    p99: Duration,
    objectives: Vec<f64>,
    requests: u64,
    failed: u64,
}

struct Trial<'a> {
    config: &'a Config,
    topology: &'a Topology,
    plan: &'a Plan,
    search: &'a Search,
}

impl Trial<'_> {
    /// Runs a load until it is clear whether it meets the objectives. `None` if a run was cancelled.
    fn point(&self, load: Option<f64>) -> Result<Option<Point>, SimulateError> {
        let mut runs: Vec<LoadMeasurement> = Vec::new();
        loop {
            let first = runs.len();
            let count = if first == 0 { 1 } else { GROUP };
            let Some(more) = self.runs(load, first, count)? else {
                return Ok(None);
            };
            runs.extend(more);
            let point = self.summary(load, &runs);
            let is_far = self.is_far(&point);
            if is_far || point.is_certain || self.is_narrow(&point) || runs.len() >= MOST_RUNS {
                let is_certain = point.is_certain || is_far;
                return Ok(Some(Point {
                    is_certain,
                    ..point
                }));
            }
        }
    }

    /// Iterates over the objectives with their measured values, without those that had no requests.
    fn measured<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = (&'a Slo, Estimate)> {
        let measured = point.objectives.iter().copied();
        let all = self.search.slos.iter().zip(measured);
        all.filter(|(_, estimate)| !estimate.is_empty())
    }

    /// True if one run is enough: all times are far below their limits, or one is far above.
    fn is_far(&self, point: &Point) -> bool {
        let is_low = |(slo, of): (&Slo, Estimate)| !slo.is_time() || of.mean * FAR <= slo.most;
        let is_high = |(slo, of): (&Slo, Estimate)| match slo.is_time() {
            true => of.mean >= slo.most * FAR,
            false => of.mean > FAR * slo.most && of.mean > 0.05,
        };
        self.measured(point).all(is_low) || self.measured(point).any(is_high)
    }

    /// True if the confidence intervals of all times are narrow. Times far below their limits are not checked.
    fn is_narrow(&self, point: &Point) -> bool {
        let mut times = self.measured(point).filter(|(slo, _)| slo.is_time());
        times.all(|(slo, of)| {
            let is_narrow = of
                .within
                .is_some_and(|within| within <= self.search.precision * slo.most);
            is_narrow || of.mean * FAR <= slo.most
        })
    }

    /// True if every objective that `here` misses has a clearly lower value at `here` than at `there`.
    fn is_better(&self, here: &Point, there: &Point) -> bool {
        let pairs = self
            .search
            .slos
            .iter()
            .zip(&here.objectives)
            .zip(&there.objectives);
        let mut missed = pairs.filter(|((slo, here), _)| here.mean > slo.most);
        missed.all(|((_, here), there)| here.mean < there.mean * (1.0 - BETTER))
    }

    fn summary(&self, load: Option<f64>, runs: &[LoadMeasurement]) -> Point {
        let count = runs.len() as f64;
        let mean = |of: &dyn Fn(&LoadMeasurement) -> f64| runs.iter().map(of).sum::<f64>() / count;
        let p99: Vec<f64> = runs.iter().map(|run| run.p99.as_secs_f64()).collect();
        let Estimate { mean: p99, within } = Estimate::of(&p99);
        let requests: u64 = runs.iter().map(|run| run.requests).sum();
        let failed: u64 = runs.iter().map(|run| run.failed).sum();
        let errors = failed as f64 / requests.max(1) as f64;
        let objectives: Vec<Estimate> = (self.search.slos.iter().enumerate())
            .map(|(place, slo)| match (&slo.kind, slo.measure) {
                (None, SloMeasure::Errors) => Estimate {
                    mean: errors,
                    within: None,
                },
                _ => {
                    let values: Vec<f64> = runs.iter().map(|run| run.objectives[place]).collect();
                    Estimate::of(&values)
                }
            })
            .collect();
        let measured = || self.search.slos.iter().zip(&objectives);
        let misses = |(slo, of): &(&Slo, &Estimate)| of.mean > slo.most;
        let is_clear = |(slo, of): &(&Slo, &Estimate)| {
            !slo.is_time()
                || of
                    .within
                    .is_some_and(|within| (of.mean - slo.most).abs() > within)
        };
        let holds = !measured().any(|pair| misses(&pair));
        let is_certain = match holds {
            true => measured()
                .filter(|(_, of)| !of.is_empty())
                .all(|pair| is_clear(&pair)),
            false => match measured().filter(misses).any(|(slo, _)| slo.is_time()) {
                true => (measured().filter(misses)).any(|pair| pair.0.is_time() && is_clear(&pair)),
                false => measured()
                    .filter(|(_, of)| !of.is_empty())
                    .all(|pair| is_clear(&pair)),
            },
        };
        let mut utilisations = Vec::with_capacity(runs[0].utilisations.len());
        for (place, &(service, _)) in runs[0].utilisations.iter().enumerate() {
            utilisations.push((service, mean(&|run| run.utilisations[place].1)));
        }
        utilisations.sort_by(|a, b| b.1.total_cmp(&a.1));
        Point {
            load: load.unwrap_or_else(|| mean(&|run| run.offered)),
            utilisations,
            throughput: mean(&|run| run.throughput),
            p50: Duration::from_secs_f64(mean(&|run| run.p50.as_secs_f64())),
            p95: Duration::from_secs_f64(mean(&|run| run.p95.as_secs_f64())),
            p99: Duration::from_secs_f64(p99),
            p99_within: within.map(Duration::from_secs_f64),
            errors,
            runs: runs.len() as u32,
            holds,
            is_certain: is_certain && runs.len() > 1,
            objectives,
        }
    }

    /// Runs a load from several seeds, on as many threads as there are workers.
    fn runs(
        &self,
        load: Option<f64>,
        first: usize,
        count: usize,
    ) -> Result<Option<Vec<LoadMeasurement>>, SimulateError> {
        let runs = in_parallel(self.config.workers.get(), count, |number| {
            self.run(load, (first + number) as u64)
        });
        runs.into_iter().collect()
    }

    /// Runs a load once. `None` if the run was cancelled.
    fn run(
        &self,
        load: Option<f64>,
        number: u64,
    ) -> Result<Option<LoadMeasurement>, SimulateError> {
        let limit = self.search.longest_limit();
        let least = load.map(|load| Duration::from_secs_f64(LEAST_REQUESTS / load));
        let least = least.unwrap_or_default();
        let measured = self.plan.duration.max(least).max(limit * LEAST_LIMITS);
        let plan = Plan {
            chat: load.map_or(self.plan.chat, |load| {
                Duration::from_secs_f64(1.0 / load).max(Duration::from_micros(1))
            }),
            ..measuring(self.plan, measured, limit)
        };
        let seed = self.config.seed.wrapping_add(number);
        let mut topology = self.topology.clone();
        for service in &mut topology.services {
            if let Some(load) = load {
                service.load = service.load.as_ref().and_then(|l| l.at_rate(load));
            }
        }
        let Some((_, totals)) = run_once(self.config, topology, &plan, seed)? else {
            return Ok(None);
        };
        let slowest = |part: f64| {
            let at = |entry: &EntryTotals| entry.percentile(part).time;
            totals.entries.values().map(at).max().unwrap_or_default()
        };
        let sum = |of: fn(&EntryTotals) -> u64| totals.entries.values().map(of).sum::<u64>();
        let done = sum(|entry| entry.times.len() + entry.puts);
        let utilisations = self.topology.utilisations(&totals, measured);
        let offered = sum(|entry| entry.requests + entry.puts);
        Ok(Some(LoadMeasurement {
            offered: offered as f64 / measured.as_secs_f64() / totals.entries.len().max(1) as f64,
            utilisations,
            throughput: done as f64 / measured.as_secs_f64(),
            p50: slowest(0.5),
            p95: slowest(0.95),
            p99: slowest(0.99),
            objectives: self
                .search
                .slos
                .iter()
                .map(|slo| slo.value(&totals))
                .collect(),
            requests: totals.requests(),
            failed: sum(|entry| entry.errors + entry.unanswered()),
        }))
    }
}
