//! Stability maps. For each load and value of a second quantity, a map shows whether a system is stable, degraded or
//! metastable after a trigger, and how long it takes to recover.
//!
//! Each point of a grid is run from several seeds. The load is constant; a trigger begins at a set time and lasts for a
//! set length: a spike of the load, or a fault. Objectives are evaluated for each interval of the timeline:
//!
//! | class | before the trigger | after the trigger |
//! |---|---|---|
//! | stable | met | met again before the end of the run |
//! | metastable | met | missed until the end |
//! | degraded | missed | |

#[cfg(test)]
mod tests;

use crate::capacity::{Slo, SloMeasure};
use crate::definition::{Definition, Fault, Rate, RatePoint};
use crate::duration_text::TimeSpan;
use crate::experiment::{Estimate, in_parallel, run_once};
use crate::nearest::did_you_mean;
use crate::package::Package;
use crate::plan::{Plan, SimulateError};
use crate::timeline::Slice;
use crate::topology::{Scale, Topology};
use crate::totals::Totals;
use crate::variant::{DefinitionText, Setting};
use corsair::Config;
use serde::Serialize;
use std::time::Duration;

/// The disturbance of the system.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// The load is multiplied by this factor.
    Spike(f64),
    /// A service has a fault, whose time and length are set by the map.
    Fault(String, Fault),
}

/// The second axis of a map.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// The lengths of the trigger.
    Lengths(Vec<TimeSpan>),
    /// A field of the definition, such as a capacity, with its values, and the length of the trigger.
    Field(String, Vec<String>, TimeSpan),
}

impl Axis {
    /// Returns the number of points.
    pub fn len(&self) -> usize {
        match self {
            Axis::Lengths(lengths) => lengths.len(),
            Axis::Field(_, values, _) => values.len(),
        }
    }

    /// True if the axis has no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the axis.
    pub fn name(&self) -> &str {
        match self {
            Axis::Lengths(_) => "length of the trigger",
            Axis::Field(path, ..) => path,
        }
    }

    /// Returns a point of the axis as text.
    pub fn value(&self, place: usize) -> String {
        match self {
            Axis::Lengths(lengths) => lengths[place].to_string(),
            Axis::Field(_, values, _) => values[place].clone(),
        }
    }

    /// Returns the length of the trigger at a point.
    pub(crate) fn length(&self, place: usize) -> TimeSpan {
        match self {
            Axis::Lengths(lengths) => lengths[place],
            Axis::Field(.., length) => *length,
        }
    }
}

/// The parameters of a map.
#[derive(Clone, Debug)]
pub struct MapRules {
    /// The objectives of each interval: percentiles and errors of all requests.
    pub slos: Vec<Slo>,
    /// Requests per second at each entry point.
    pub loads: Vec<f64>,
    /// The second axis.
    pub axis: Axis,
    /// The disturbance of the system.
    pub trigger: Trigger,
    /// The time at which the trigger begins.
    pub at: Duration,
    /// The duration of the observation after the trigger.
    pub after: Duration,
    /// The length of an interval.
    pub interval: Duration,
    /// The number of seeds of each point.
    pub seeds: usize,
}

/// The behaviour of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stability {
    /// The system recovers from the trigger.
    Stable,
    /// The system misses its objectives even without the trigger.
    Degraded,
    /// The system does not recover from the trigger.
    Metastable,
}

/// A point of a map of stability: a load, a value on the second axis, and the behaviour of the runs there.
#[derive(Clone, Debug)]
pub struct MapPoint {
    /// Requests per second at each entry point.
    pub load: f64,
    /// The index of the point on the second axis.
    pub place: usize,
    /// The behaviour of most runs; the worse one if two are equally frequent.
    pub class: Stability,
    /// The shares of runs that are stable, degraded and metastable.
    pub shares: [f64; 3],
    /// The recovery time of the stable runs: seconds from the end of the trigger until the objectives are met again.
    pub recovery: Estimate,
}

/// A stability map.
#[derive(Clone, Debug)]
pub struct StabilityMap {
    /// The points, by load and then by the second axis.
    pub points: Vec<MapPoint>,
    /// The tested loads, in requests per second at each entry point.
    pub loads: Vec<f64>,
    /// The second axis.
    pub axis: Axis,
}

/// The maximum number of runs of a map.
pub const MOST_MAP_RUNS: usize = 100_000;
/// The number of consecutive intervals that are judged together, by majority.
const TOGETHER: usize = 5;

/// The reasons why a map cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The parameters or the definition are invalid.
    #[error("{0}")]
    Wrong(String),
    /// A run failed.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

fn wrong<T>(what: impl Into<String>) -> Result<T, MapError> {
    Err(MapError::Wrong(what.into()))
}

/// Makes a map of a definition. `None` if a run was cancelled. Runs are spread over `config.workers` threads, and the
/// result does not depend on their number.
///
/// # Errors
/// See [`MapError`].
pub fn stability(
    config: &Config,
    text: &DefinitionText,
    rules: &MapRules,
) -> Result<Option<StabilityMap>, MapError> {
    check(rules)?;
    let mut points: Vec<(f64, usize)> = Vec::new();
    for load in &rules.loads {
        points.extend((0..rules.axis.len()).map(|place| (*load, place)));
    }
    let mut topologies = Vec::new();
    for (load, place) in &points {
        topologies.push(topology(text, rules, *load, *place)?);
    }
    let runs = in_parallel(config.workers.get(), points.len() * rules.seeds, |number| {
        let point = number / rules.seeds;
        let seed = config.seed.wrapping_add((number % rules.seeds) as u64);
        let length = rules.axis.length(points[point].1).0;
        trial(config, &topologies[point], rules, length, seed)
    });
    let runs: Result<Option<Vec<Trial>>, SimulateError> = runs.into_iter().collect();
    let Some(runs) = runs? else {
        return Ok(None);
    };
    let made = points.iter().zip(runs.chunks(rules.seeds));
    let made = made.map(|(&(load, place), runs)| point(load, place, runs));
    Ok(Some(StabilityMap {
        points: made.collect(),
        loads: rules.loads.clone(),
        axis: rules.axis.clone(),
    }))
}

fn check(rules: &MapRules) -> Result<(), MapError> {
    let runs = rules.loads.len() * rules.axis.len() * rules.seeds;
    if !(1..=MOST_MAP_RUNS).contains(&runs) {
        return wrong(format!(
            "a map of {runs} runs is not possible; give 1 to {MOST_MAP_RUNS}: loads times values times seeds"
        ));
    }
    if let Some(load) = rules.loads.iter().find(|load| !(0.0..=1e6).contains(*load)) {
        return wrong(format!(
            "a load of {load} is out of range; give 0 to 1000000"
        ));
    }
    if let Trigger::Spike(factor) = rules.trigger
        && !(0.0..=1_000.0).contains(&factor)
    {
        return wrong(format!(
            "a spike of {factor} times the load is out of range; give 0 to 1000"
        ));
    }
    let is_known = |slo: &&Slo| slo.kind.is_none() && slo.measure != SloMeasure::Mean;
    if let Some(slo) = rules.slos.iter().find(|slo| !is_known(slo)) {
        return wrong(format!(
            "'{slo}' cannot be evaluated for each interval; give a percentile or errors of all requests"
        ));
    }
    if rules.slos.is_empty() {
        return wrong("there is no objective; give --slo, for example --slo 'errors < 10%'");
    }
    let whole = TOGETHER as u32 * rules.interval;
    if rules.interval.is_zero() {
        return wrong("an interval of 0s is not possible; give more");
    }
    if rules.at < whole || rules.after < whole {
        return wrong(format!(
            "an interval of {} is too long; there must be {TOGETHER} before the trigger and after it",
            TimeSpan(rules.interval)
        ));
    }
    Ok(())
}

/// Returns the topology of a point, including the spike of the load or the fault.
fn topology(
    text: &DefinitionText,
    rules: &MapRules,
    load: f64,
    place: usize,
) -> Result<Topology, MapError> {
    let settings = match &rules.axis {
        Axis::Lengths(_) => Vec::new(),
        Axis::Field(path, values, _) => vec![Setting {
            path: path.clone(),
            value: Setting::value(&values[place]),
        }],
    };
    let checked = text.with(&settings).map_err(MapError::Wrong)?;
    let mut definition = checked.definition().clone();
    let length = rules.axis.length(place);
    apply(&mut definition, rules, load, length)?;
    let changed = DefinitionText::new(definition.to_text(), text.file());
    let checked = changed.with(&[]).map_err(MapError::Wrong)?;
    let topology = Topology::new(&checked, Scale::default());
    let mut topology = topology.map_err(|error| MapError::Wrong(error.to_string()))?;
    if text.is_built_in() {
        topology.add_sizes();
    }
    Ok(topology)
}

fn apply(
    definition: &mut Definition,
    rules: &MapRules,
    load: f64,
    length: TimeSpan,
) -> Result<(), MapError> {
    let at = TimeSpan(rules.at);
    let point = |at, rate| RatePoint {
        at,
        rate,
        ramp: false,
    };
    let rate = match rules.trigger {
        Trigger::Spike(factor) if !length.0.is_zero() => Rate::Profile(vec![
            point(TimeSpan(Duration::ZERO), load),
            point(at, load * factor),
            point(TimeSpan(rules.at + length.0), load),
        ]),
        _ => Rate::Constant(load),
    };
    let entries = definition.services.iter();
    let entries = entries.filter(|one| one.package == Package::Denominator.name());
    let entries: Vec<String> = entries.map(|one| one.name.clone()).collect();
    if entries.is_empty() {
        return wrong(format!(
            "{} has no entry point, so that nothing sends requests; add a service of package denominator",
            definition.arch
        ));
    }
    for entry in entries {
        let load = definition.load.entry(entry.clone()).or_default();
        if load.users.is_some() || load.replay.is_some() {
            return wrong(format!("the load of '{entry}' is not a rate; give it one"));
        }
        load.rate = Some(rate.clone());
    }
    if let Trigger::Fault(name, fault) = &rules.trigger
        && !length.0.is_zero()
    {
        let place = definition.services.iter().position(|one| one.name == *name);
        let Some(place) = place else {
            let names = definition.services.iter().map(|one| one.name.as_str());
            let meant = did_you_mean(name, names);
            return wrong(format!(
                "there is no service '{}' for the fault{meant}",
                name.escape_debug()
            ));
        };
        let service = &mut definition.services[place];
        service.faults.push(Fault {
            at,
            lasting: Some(length),
            ..fault.clone()
        });
    }
    Ok(())
}

/// The result of a run: its class, and its recovery in seconds if it is stable.
type Trial = (Stability, Option<f64>);

/// Runs a point once. `None` if the run was cancelled.
fn trial(
    config: &Config,
    topology: &Topology,
    rules: &MapRules,
    length: Duration,
    seed: u64,
) -> Result<Option<Trial>, SimulateError> {
    let plan = Plan {
        duration: rules.at + length + rules.after,
        interval: Some(rules.interval),
        ..Plan::default()
    };
    let Some((_, totals)) = run_once(config, topology.clone(), &plan, seed)? else {
        return Ok(None);
    };
    let missed = missed(topology, &totals, &rules.slos);
    Ok(Some(class(&missed, rules, length)))
}

/// Returns, for each interval, whether it misses an objective.
fn missed(topology: &Topology, totals: &Totals, slos: &[Slo]) -> Vec<bool> {
    let mut slices: Vec<Slice> = Vec::new();
    let Some(timeline) = &totals.timeline else {
        return Vec::new();
    };
    for (index, service) in (0..).zip(&topology.services) {
        if service.package != Package::Denominator {
            continue;
        }
        let own = timeline.of_service(index);
        if slices.len() < own.len() {
            slices.resize_with(own.len(), Slice::default);
        }
        slices
            .iter_mut()
            .zip(&own)
            .for_each(|(sum, one)| sum.add(one));
    }
    let misses = |slice: &Slice, slo: &Slo| match slo.measure {
        SloMeasure::Percentile(part) => {
            let time = slice.percentile(part);
            time.is_some_and(|time| time.as_secs_f64() > slo.most)
        }
        _ => slice.errors as f64 > slo.most * slice.requests as f64,
    };
    let slices = slices.iter();
    slices
        .map(|slice| slice.requests > 0 && slos.iter().any(|slo| misses(slice, slo)))
        .collect()
}

/// Classifies a run by its intervals.
fn class(missed: &[bool], rules: &MapRules, length: Duration) -> Trial {
    let of = |time: Duration| (time.as_nanos() / rules.interval.as_nanos()) as usize;
    let most = |some: &[bool]| some.iter().filter(|missed| **missed).count() * 2 > some.len();
    let (begins, ends) = (of(rules.at), of(rules.at + length));
    // The first interval is skipped, because it contains the start of the system.
    let before = missed.get(1..begins).unwrap_or_default();
    if most(before) {
        return (Stability::Degraded, None);
    }
    let after = missed.get(ends..).unwrap_or_default();
    let windows: Vec<bool> = after.windows(TOGETHER).map(most).collect();
    let recovered = windows
        .iter()
        .rposition(|missed| *missed)
        .map_or(0, |last| last + 1);
    if recovered >= windows.len() {
        return (Stability::Metastable, None);
    }
    // Up to half of the intervals of the first window that is met may still miss their objectives.
    let first = &after[recovered..];
    let still = first.iter().take_while(|missed| **missed).count();
    let intervals = recovered + still;
    (
        Stability::Stable,
        Some(intervals as f64 * rules.interval.as_secs_f64()),
    )
}

fn point(load: f64, place: usize, runs: &[Trial]) -> MapPoint {
    let classes = [
        Stability::Stable,
        Stability::Degraded,
        Stability::Metastable,
    ];
    let shares = classes.map(|class| {
        let same = runs.iter().filter(|(of, _)| *of == class).count();
        same as f64 / runs.len() as f64
    });
    let mut class = Stability::Stable;
    for (number, of) in classes.into_iter().enumerate() {
        if shares[number] >= shares[class as usize] {
            class = of;
        }
    }
    let recovered: Vec<f64> = runs.iter().filter_map(|(_, time)| *time).collect();
    MapPoint {
        load,
        place,
        class,
        shares,
        recovery: Estimate::of(&recovered),
    }
}

impl MapPoint {
    /// Returns the label of tables and pictures: S with the mean time of recovery, D, or M with the share of runs.
    pub fn label(&self) -> String {
        match self.class {
            Stability::Stable => format!("S {:.1} s", self.recovery.mean),
            Stability::Degraded => "D".to_owned(),
            Stability::Metastable => format!("M {:.0} %", self.shares[2] * 100.0),
        }
    }
}

impl StabilityMap {
    /// Returns the point with these indices of the load and of the second axis.
    pub fn at(&self, load: usize, place: usize) -> &MapPoint {
        &self.points[load * self.axis.len() + place]
    }

    /// Returns the map as CSV.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "load,value,class,stable,degraded,metastable,recovery_seconds,recovery_within\n",
        );
        for point in &self.points {
            let number = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.3}"));
            let recovery = (!point.recovery.is_empty()).then_some(point.recovery.mean);
            let [stable, degraded, metastable] = point.shares;
            let class = format!("{:?}", point.class).to_lowercase();
            text += &format!(
                "{},{},{class},{stable:.3},{degraded:.3},{metastable:.3},{},{}\n",
                point.load,
                crate::csv::quoted(&self.axis.value(point.place)),
                number(recovery),
                number(point.recovery.within)
            );
        }
        text
    }

    /// Returns the map as Markdown: S for stable with the mean time of recovery, D for degraded, M for metastable.
    pub fn table(&self) -> String {
        let mut text = format!("| {} |", self.axis.name());
        self.loads
            .iter()
            .for_each(|load| text += &format!(" {load}/s |"));
        text += "\n|---|";
        self.loads.iter().for_each(|_| text += "---|");
        text.push('\n');
        for place in (0..self.axis.len()).rev() {
            text += &format!("| {} |", self.axis.value(place));
            for load in 0..self.loads.len() {
                text += &format!(" {} |", self.at(load, place).label());
            }
            text.push('\n');
        }
        text
    }
}
