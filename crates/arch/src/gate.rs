//! The gate: decides whether a changed system meets its objectives, by runs from many seeds.
//!
//! The changed system and the system before the change run with the same random numbers, so that the confidence
//! intervals of their differences are narrow. After 4, 8, 16, … runs each objective is judged: it is met if the
//! complete interval of its value is within the limit, and missed if the complete interval is above the limit. The
//! permitted probability of an error is divided among all judgements, so that all intervals of a report are correct
//! together.
//!
//! ```
//! use corsair::Config;
//! use corsair_arch::{GateRules, Plan, Scale, Topology, Verdict, gate, read};
//!
//! let lamp = Topology::new(&read("lamp", ".".as_ref())?, Scale::default())?;
//! let rules = GateRules::new(vec!["p99 < 1s".parse()?]);
//! let judged = gate(&Config::default(), &lamp, None, &Plan::default(), &rules, |_| {})?;
//! assert_eq!(judged.map(|judged| judged.verdict), Some(Verdict::Met));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod changes;
mod interval;
mod report;
mod services;
mod side;
#[cfg(test)]
mod tests;

pub use changes::{FieldChange, changes};
#[cfg(feature = "pictures")]
pub(crate) use report::size;
pub(crate) use report::verdict_word;
pub use report::{GateReport, reason};
pub use services::{ServiceChange, ServiceUse};
pub use side::{GateSide, SideError};

use crate::capacity::{Slo, SloError, SloMeasure, measuring};
use crate::experiment::{Estimate, in_parallel, run_once};
use crate::package::Package;
use crate::plan::{Plan, SimulateError};
use crate::topology::Topology;
use crate::totals::Totals;
use corsair::Config;
use interval::Observed;
use std::collections::BTreeMap;
use std::time::Duration;

/// The objectives of a gate, and the parameters of its decision.
#[derive(Clone, Debug)]
pub struct GateRules {
    /// The objectives that the changed system must meet.
    pub slos: Vec<Slo>,
    /// The maximum number of runs of each system, from 2.
    pub most_runs: usize,
    /// The probability that any verdict is wrong.
    pub error: f64,
    /// True if runs last exactly as the plan says; false if runs of a steady load are extended until they have enough
    /// requests.
    pub is_fixed: bool,
}

impl GateRules {
    /// Creates rules with at most 32 runs and an error probability of 5 %.
    pub fn new(slos: Vec<Slo>) -> GateRules {
        GateRules {
            slos,
            most_runs: 32,
            error: 0.05,
            is_fixed: false,
        }
    }

    /// Returns the numbers of runs after which the objectives are judged.
    fn looks(&self) -> Vec<usize> {
        let doubling = std::iter::successors(Some(FIRST_LOOK), |runs| runs.checked_mul(2));
        let mut looks: Vec<usize> = doubling.take_while(|runs| *runs < self.most_runs).collect();
        looks.push(self.most_runs);
        looks
    }
}

/// The first judgement is made after this number of runs.
const FIRST_LOOK: usize = 4;
/// A run measures at least this number of requests of each objective.
const LEAST_REQUESTS: f64 = 1_000.0;
/// A run measures at least this number of requests beyond a percentile.
const LEAST_BEYOND: f64 = 20.0;
/// A run lasts at least this many times the longest limit, so that growing queues are noticed.
const LEAST_LIMITS: u32 = 50;
/// The maximum limit that is used to compute the length of a run.
const LONGEST: Duration = Duration::from_secs(3600);
/// A run is extended at most by this factor.
const MOST_EXTENSION: f64 = 100.0;

/// The result of one objective, or of all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval is within the limit.
    Met,
    /// The interval is above the limit.
    Missed,
    /// The interval includes the limit. Contains the number of further runs that would decide, if it is at most
    /// 100,000.
    Undecided(Option<u64>),
}

/// An objective and its measurements.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The objective that was judged.
    pub slo: Slo,
    /// The value of the changed system, with the interval that was judged; not a number if there were no requests.
    pub value: Estimate,
    /// The value before the change.
    pub base: Option<Estimate>,
    /// The change of the value, estimated from the differences of runs with the same seed.
    pub difference: Option<Estimate>,
    /// The number of requests in all runs of the changed system.
    pub requests: u64,
    /// The verdict for this objective.
    pub verdict: Verdict,
}

/// The result of a gate.
#[derive(Clone, Debug)]
pub struct GateResult {
    /// Missed if any objective is missed; otherwise undecided if any objective is undecided.
    pub verdict: Verdict,
    /// The objectives, in their order.
    pub objectives: Vec<Judged>,
    /// The time that requests spend at services, the largest increase first.
    pub services: Vec<ServiceChange>,
    /// The number of runs of each system.
    pub runs: usize,
    /// The measured duration of each run.
    pub measured: Duration,
}

/// The reasons why a gate cannot judge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// There are no objectives.
    #[error("there is no objective; give --slo, for example --slo 'p99 < 100ms'")]
    NoObjective,
    /// The number of runs is out of range; a single run has no interval.
    #[error("{0} runs are not possible; give 2 to 10000, because one run has no interval")]
    Runs(usize),
    /// The load contains no requests.
    #[error(
        "architecture {0} has no denominator: nothing sends requests; add a service of that package"
    )]
    NoEntryPoint(String),
    /// The load has no requests for an objective.
    #[error(transparent)]
    Objective(#[from] SloError),
    /// A run failed.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Judges a changed system by its objectives, and compares it with the system before the change if that is given. Calls
/// `seen` with the number of runs before each judgement. `None` if a run was cancelled.
///
/// The result depends on the seed of the configuration, and not on the number of its workers, which run in parallel.
///
/// # Errors
/// See [`GateError`].
pub fn gate(
    config: &Config,
    changed: &Topology,
    base: Option<&Topology>,
    plan: &Plan,
    rules: &GateRules,
    mut seen: impl FnMut(usize),
) -> Result<Option<GateResult>, GateError> {
    check(changed, rules)?;
    if let Some(base) = base.filter(|base| !sends(base)) {
        return Err(GateError::NoEntryPoint(base.arch.clone()));
    }
    let Some(plan) = extended(config, changed, plan, rules)? else {
        return Ok(None);
    };
    let sides: Vec<&Topology> = std::iter::once(changed).chain(base).collect();
    let looks = rules.looks();
    let level = 1.0 - rules.error / (looks.len() * rules.slos.len()) as f64;
    let mut runs: Vec<Vec<Measured>> = vec![Vec::new(); sides.len()];
    for look in looks {
        let first = runs[0].len();
        let count = (look - first) * sides.len();
        let made = in_parallel(config.workers.get(), count, |number| {
            let seed = config
                .seed
                .wrapping_add((first + number / sides.len()) as u64);
            measure(config, sides[number % sides.len()], &plan, rules, seed)
        });
        for (number, run) in made.into_iter().enumerate() {
            let Some(run) = run? else {
                return Ok(None);
            };
            runs[number % sides.len()].push(run);
        }
        seen(look);
        let result = result(rules, &runs, level, (changed, &plan));
        if !matches!(result.verdict, Verdict::Undecided(_)) || look >= rules.most_runs {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

fn sends(topology: &Topology) -> bool {
    let mut services = topology.services.iter();
    services.any(|service| service.package == Package::Denominator)
}

fn check(changed: &Topology, rules: &GateRules) -> Result<(), GateError> {
    if rules.slos.is_empty() {
        return Err(GateError::NoObjective);
    }
    if !(2..=10_000).contains(&rules.most_runs) {
        return Err(GateError::Runs(rules.most_runs));
    }
    if !sends(changed) {
        return Err(GateError::NoEntryPoint(changed.arch.clone()));
    }
    for slo in &rules.slos {
        slo.check(changed)?;
    }
    Ok(())
}

/// The measurements of a run.
#[derive(Clone, Debug)]
struct Measured {
    /// One observation for each objective.
    observed: Vec<Observed>,
    services: BTreeMap<String, ServiceUse>,
}

/// Returns the plan, with a duration that is long enough for the objectives if the load is steady. `None` if the
/// trial run was cancelled.
fn extended(
    config: &Config,
    changed: &Topology,
    plan: &Plan,
    rules: &GateRules,
) -> Result<Option<Plan>, GateError> {
    let limits = rules.slos.iter().filter(|slo| slo.is_time());
    let limit = limits.map(|slo| slo.most).fold(0.0, f64::max);
    let limit = Duration::from_secs_f64(limit).min(LONGEST);
    if rules.is_fixed || !changed.is_steady() {
        // At the end of the run, unanswered requests are older than every limit.
        return Ok(Some(Plan {
            drain: plan.drain.max(limit * 2),
            ..plan.clone()
        }));
    }
    let least = plan.duration.max((limit * LEAST_LIMITS).min(LONGEST));
    let trial = measuring(plan, least, limit);
    let Some(run) = measure(config, changed, &trial, rules, config.seed)? else {
        return Ok(None);
    };
    let lacking = rules.slos.iter().zip(&run.observed).map(|(slo, had)| {
        let wanted = match slo.measure {
            SloMeasure::Percentile(part) => LEAST_BEYOND / (1.0 - part),
            _ => 0.0,
        };
        wanted.max(LEAST_REQUESTS) / (had.requests.max(1) as f64)
    });
    let factor = lacking.fold(1.0, f64::max).min(MOST_EXTENSION);
    Ok(Some(measuring(plan, least.mul_f64(factor), limit)))
}

fn measure(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    rules: &GateRules,
    seed: u64,
) -> Result<Option<Measured>, SimulateError> {
    let Some((_, totals)) = run_once(config, topology.clone(), plan, seed)? else {
        return Ok(None);
    };
    let observed = rules.slos.iter().map(|slo| observed(slo, &totals));
    Ok(Some(Measured {
        observed: observed.collect(),
        services: services::used(topology, &totals, plan),
    }))
}

fn observed(slo: &Slo, totals: &Totals) -> Observed {
    Observed {
        value: slo.value(totals),
        requests: slo.requests(totals),
    }
}

/// Judges the measurements of all runs of the changed system and of the system before the change.
fn result(
    rules: &GateRules,
    runs: &[Vec<Measured>],
    level: f64,
    (changed, plan): (&Topology, &Plan),
) -> GateResult {
    let column = |side: &[Measured], place: usize| -> Vec<Observed> {
        side.iter().map(|run| run.observed[place]).collect()
    };
    let judge = |(place, slo): (usize, &Slo)| {
        let own = column(&runs[0], place);
        let base = runs.get(1).map(|base| column(base, place));
        let judged = interval::judge(slo, &own, level);
        let difference = base.as_ref().map(|base| {
            let pairs = own.iter().zip(base);
            let values: Vec<f64> = pairs.map(|(own, base)| own.value - base.value).collect();
            Estimate::at(&values, level)
        });
        Judged {
            slo: slo.clone(),
            value: judged.0,
            base: base.map(|base| interval::estimate(slo, &base, level)),
            difference,
            requests: own.iter().map(|run| run.requests).sum(),
            verdict: judged.1,
        }
    };
    let objectives: Vec<Judged> = rules.slos.iter().enumerate().map(judge).collect();
    GateResult {
        verdict: interval::all(objectives.iter().map(|judged| judged.verdict)),
        services: services::changes(runs, changed),
        objectives,
        runs: runs[0].len(),
        measured: plan.duration.saturating_sub(plan.warm_up),
    }
}
