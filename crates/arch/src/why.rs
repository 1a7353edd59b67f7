//! Explains why a percentile is too long: on what the critical paths of the slow requests spend their time, and which
//! single change helps most.
//!
//! In the run of each seed, requests leave a trail ([`trail`]). The requests that take at least as long as the
//! percentile of the run are explained: their critical paths ([`path`]) are divided among services, queues, work,
//! network and policies. Then single changes ([`remedies`]) of the parts that take most time are run with the same
//! seeds.
//!
//! ```
//! use corsair::Config;
//! use corsair_arch::{DefinitionText, Plan, Scale, WhyRules, why};
//!
//! let lamp = DefinitionText::find("lamp", ".".as_ref())?;
//! let rules = WhyRules { seeds: 2, remedies: 0, ..WhyRules::new("p99".parse()?) };
//! let found = why(&Config::default(), &lamp, None, &Plan::default(), &rules)?.ok_or("stopped")?;
//! let share: f64 = found.contributions.iter().map(|part| part.share).sum();
//! assert!((share - 1.0).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod path;
pub(crate) mod record;
mod remedies;
#[cfg(test)]
mod tests;
pub(crate) mod trail;

pub use path::Part;

use crate::capacity::{Slo, SloError, SloMeasure, is_same_kind};
use crate::experiment::{Estimate, in_parallel, run_once};
use crate::load::LoadText;
use crate::package::Package;
use crate::plan::{Plan, SimulateError};
use crate::topology::{Scale, Topology};
use crate::totals::Totals;
use crate::variant::DefinitionText;
use crate::workload::Architecture;
use corsair::{Config, Executor, Outcome};
use path::{Key, Sums};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use trail::{Trail, Wanted};

/// The parameters of an explanation.
#[derive(Clone, Debug)]
pub struct WhyRules {
    /// The percentile or mean to explain, of all requests or of one kind; its limit is ignored.
    pub of: Measure,
    /// The number of seeds, at least 2.
    pub seeds: usize,
    /// The maximum number of single changes to try.
    pub remedies: usize,
    /// The scale of the architecture.
    pub scale: Scale,
}

impl WhyRules {
    /// Creates parameters with eight seeds and at most 16 changes.
    pub fn new(of: Measure) -> WhyRules {
        WhyRules {
            of,
            seeds: 8,
            remedies: 16,
            scale: Scale::default(),
        }
    }
}

/// A percentile or the mean of response times: `p99`, `mean`, `cart.list p95`.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure(Slo);

impl std::str::FromStr for Measure {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Measure, SloError> {
        let slo: Slo = format!("{text} < 1s").parse().map_err(|_| {
            SloError::new(format!(
                "'{}' is not a percentile or mean; write for example p99, mean or 'cart.list p95'",
                text.escape_debug()
            ))
        })?;
        Ok(Measure(slo))
    }
}

impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        f.write_str(text.split(" <").next().unwrap_or_default())
    }
}

/// A part of the response time of the slow requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The name of the service.
    pub service: String,
    /// The called service, if the part belongs to calls.
    pub called: Option<String>,
    /// The cause of the time: work, a queue, the network, and so on.
    pub part: Part,
    /// The mean number of seconds for each request, with the interval over seeds.
    pub seconds: Estimate,
    /// The share of the response time.
    pub share: f64,
}

/// A single change and its effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// The change, in words.
    pub what: String,
    /// The value with the change.
    pub value: Estimate,
    /// The change of the value, estimated from the differences of runs with the same seed.
    pub difference: Estimate,
    /// The change of the share of requests that fail. If this share grows, the value may be lower only because calls
    /// fail at once.
    pub errors: Estimate,
}

impl Remedy {
    /// True if the value is certainly lower, and requests do not certainly fail more often.
    pub fn helps(&self) -> bool {
        let fails_more = self.errors.mean > 0.0 && self.errors.is_clear();
        self.difference.mean < 0.0 && self.difference.is_clear() && !fails_more
    }
}

/// An explanation of a percentile or mean.
#[derive(Clone, Debug)]
pub struct Why {
    /// The value that is explained.
    pub value: Estimate,
    /// The number of explained requests of all seeds.
    pub requests: u64,
    /// The mean response time of these requests in seconds.
    pub mean: f64,
    /// The parts of the response time, the largest first.
    pub contributions: Vec<Contribution>,
    /// The changes that were tried, the most helpful first.
    pub remedies: Vec<Remedy>,
    /// The number of requests that are not explained, because they had too many calls or the trail was full.
    pub left_out: u64,
}

impl Why {
    /// Returns the change that helps most, if any certainly helps.
    pub fn best(&self) -> Option<&Remedy> {
        self.remedies.iter().find(|remedy| remedy.helps())
    }
}

/// The reasons why nothing can be explained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhyError {
    /// The number of seeds is out of range; a single run has no interval.
    #[error("{0} seeds are not possible; give 2 to 1000, because one run has no interval")]
    Seeds(usize),
    /// The measure is the share of errors, which has no critical path.
    #[error("errors have no critical path; give a percentile or the mean, for example p99")]
    Errors,
    /// The definition is invalid.
    #[error("{0}")]
    Definition(String),
    /// The load has no requests of this kind.
    #[error(transparent)]
    Objective(#[from] SloError),
    /// No request was answered.
    #[error(
        "no run had a request of {0} that was answered; make runs longer (-d), or the load smaller"
    )]
    NoRequests(String),
    /// The load contains no requests.
    #[error(
        "architecture {0} has no denominator: nothing sends requests; add a service of that package"
    )]
    NoEntryPoint(String),
    /// A run failed.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Explains a percentile of an architecture under its own load, or under the load that is given. `None` if
/// a run was cancelled.
///
/// The result depends on the seed of the configuration, and not on the number of its workers, which run in parallel.
///
/// # Errors
/// See [`WhyError`].
pub fn why(
    config: &Config,
    text: &DefinitionText,
    load: Option<&LoadText>,
    plan: &Plan,
    rules: &WhyRules,
) -> Result<Option<Why>, WhyError> {
    let slo = &rules.of.0;
    if !slo.is_time() {
        return Err(WhyError::Errors);
    }
    if !(2..=1000).contains(&rules.seeds) {
        return Err(WhyError::Seeds(rules.seeds));
    }
    let topology = topology(text, load, rules.scale)?;
    if !(topology.services.iter()).any(|one| one.package == Package::Denominator) {
        return Err(WhyError::NoEntryPoint(topology.arch));
    }
    slo.check(&topology)?;
    let explained = in_parallel(config.workers.get(), rules.seeds, |number| {
        explain(config, &topology, plan, rules, number)
    });
    let mut values = Vec::new();
    let mut sums = Vec::new();
    for run in explained {
        let Some((value, of)) = run? else {
            return Ok(None);
        };
        values.push(value);
        sums.push(of);
    }
    let before: Vec<f64> = values.iter().map(|of| of.time).collect();
    let value = Estimate::of(&before);
    let requests: u64 = sums.iter().map(|sums| sums.requests).sum();
    if value.is_empty() || requests == 0 {
        return Err(WhyError::NoRequests(rules.of.to_string()));
    }
    let contributions = contributions(&topology, &sums);
    let changes = remedies::candidates(text, &topology, &contributions);
    let mut tried = Vec::new();
    for (what, text) in changes.into_iter().take(rules.remedies) {
        // A change that makes the definition inconsistent cannot be tried.
        let Ok(changed) = self::topology(&text, load, rules.scale) else {
            continue;
        };
        match remedy(config, (what, &changed), plan, rules, &values)? {
            Some(remedy) => tried.push(remedy),
            None => return Ok(None),
        }
    }
    tried.sort_by(|a, b| a.difference.mean.total_cmp(&b.difference.mean));
    Ok(Some(Why {
        value,
        requests,
        mean: sums.iter().map(|sums| sums.nanos as f64).sum::<f64>() / 1e9 / requests as f64,
        contributions,
        remedies: tried,
        left_out: sums.iter().map(|sums| sums.left_out).sum(),
    }))
}

/// Tries a change with the same seeds as the runs without it. `None` if a run was cancelled.
fn remedy(
    config: &Config,
    (what, changed): (String, &Topology),
    plan: &Plan,
    rules: &WhyRules,
    before: &[RunValue],
) -> Result<Option<Remedy>, SimulateError> {
    let runs = in_parallel(config.workers.get(), before.len(), |number| {
        measure(config, changed, plan, &rules.of.0, number)
    });
    let runs: Result<Option<Vec<RunValue>>, SimulateError> = runs.into_iter().collect();
    let Some(runs) = runs? else {
        return Ok(None);
    };
    let difference = |of: fn(&RunValue) -> f64| {
        let pairs = runs.iter().zip(before);
        Estimate::of(&pairs.map(|(a, b)| of(a) - of(b)).collect::<Vec<_>>())
    };
    let values: Vec<f64> = runs.iter().map(|run| run.time).collect();
    Ok(Some(Remedy {
        what,
        value: Estimate::of(&values),
        difference: difference(|run| run.time),
        errors: difference(|run| run.errors),
    }))
}

/// The measurements of a run: the percentile or mean in seconds, and the share of requests that fail.
#[derive(Clone, Copy, Debug)]
struct RunValue {
    time: f64,
    errors: f64,
}

fn topology(
    text: &DefinitionText,
    load: Option<&LoadText>,
    scale: Scale,
) -> Result<Topology, WhyError> {
    let checked = text.with(&[]).map_err(WhyError::Definition)?;
    let topology = Topology::new(&checked, scale);
    let mut topology = topology.map_err(|error| WhyError::Definition(error.to_string()))?;
    if text.is_built_in() {
        topology.add_sizes();
    }
    if let Some(load) = load {
        let applied = load.apply(&mut topology);
        applied.map_err(|error| WhyError::Definition(error.to_string()))?;
    }
    Ok(topology)
}

fn seeded(config: &Config, number: usize) -> Config {
    Config {
        seed: config.seed.wrapping_add(number as u64),
        workers: NonZeroUsize::MIN,
        traces: true,
        ..config.clone()
    }
}

/// Measures a run. `None` if the run was cancelled.
fn measure(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    slo: &Slo,
    number: usize,
) -> Result<Option<RunValue>, SimulateError> {
    let config = seeded(config, number);
    let run = run_once(&config, topology.clone(), plan, config.seed)?;
    Ok(run.map(|(_, totals)| RunValue::new(slo, &totals)))
}

impl RunValue {
    fn new(slo: &Slo, totals: &Totals) -> RunValue {
        let errors = Slo {
            measure: SloMeasure::Errors,
            ..slo.clone()
        };
        RunValue {
            time: slo.value(totals),
            errors: errors.value(totals),
        }
    }
}

/// Returns the value of a run and the critical paths of its slow requests. `None` if a run was cancelled.
fn explain(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    rules: &WhyRules,
    number: usize,
) -> Result<Option<(RunValue, Sums)>, SimulateError> {
    let slo = &rules.of.0;
    let slow = matches!(slo.measure, SloMeasure::Percentile(_));
    let wanted = Wanted {
        kinds: slo.kind.as_deref().map(|kind| kinds(topology, kind)),
        slow,
    };
    let trail = Arc::new(Trail::new(wanted));
    let config = seeded(config, number);
    let run = Architecture::new(Executor::Virtual, &config, topology.clone(), plan)?;
    let (report, totals) = run
        .with_trail(Arc::clone(&trail))
        .simulate(Executor::Virtual)?;
    if report.outcome == Outcome::Cancelled {
        return Ok(None);
    }
    let value = RunValue::new(slo, &totals);
    // Histograms have three digits: the percentile's own request is one of the slow ones.
    let least = match slow && value.time.is_finite() {
        true => (value.time * 1e9 * 0.998) as u64,
        false => 0,
    };
    Ok(Some((value, trail.take(least))))
}

/// Returns the kinds of requests with a name, by entry point and number.
fn kinds(topology: &Topology, wanted: &str) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    for (entry, service) in (0..).zip(&topology.services) {
        let kinds = service.load.iter().flat_map(|load| load.kinds.iter());
        let kinds = (0..).zip(kinds);
        let same = kinds.filter(|(_, kind)| is_same_kind(wanted, &kind.name));
        found.extend(same.map(|(number, _)| (entry, number)));
    }
    found
}

/// Returns the mean contribution of each part over all runs, the largest first.
fn contributions(topology: &Topology, runs: &[Sums]) -> Vec<Contribution> {
    let mut parts: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
    let used: Vec<&Sums> = runs.iter().filter(|sums| sums.requests > 0).collect();
    for (number, sums) in used.iter().enumerate() {
        for (key, nanos) in &sums.parts {
            let values = parts.entry(*key).or_insert_with(|| vec![0.0; used.len()]);
            values[number] = *nanos as f64 / 1e9 / sums.requests as f64;
        }
    }
    let total: f64 = parts.values().flatten().sum();
    let name = |service: u32| topology.services[service as usize].name.clone();
    let part = |((service, called, part), values): (Key, Vec<f64>)| Contribution {
        service: name(service),
        called: called.map(name),
        part,
        seconds: Estimate::of(&values),
        share: values.iter().sum::<f64>() / total.max(f64::MIN_POSITIVE),
    };
    let mut all: Vec<Contribution> = parts.into_iter().map(part).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}
