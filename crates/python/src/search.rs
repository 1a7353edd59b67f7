//! Searches and comparisons. Each makes many runs and returns one answer as JSON.

use crate::arguments::{Arguments, Count, Span, config, scale, setup};
use crate::error;
use crate::interrupt::watched;
use crate::run;
use corsair_arch::summary::{CapacitySummary, ComparedRow, InstancesSummary, LearnedSummary};
use corsair_arch::{
    DefinitionText, LearnOptions, LoadText, Plan, Recording, Search, Setting, Slo, Topology,
    picture,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(error::failed)
}

/// Converts the fields to set and their values, which are JSON, to settings.
pub fn settings(given: Vec<(String, String)>) -> PyResult<Vec<Setting>> {
    let setting = |(path, value): (String, String)| match serde_json::from_str(&value) {
        Ok(value) => Ok(Setting { path, value }),
        Err(what) => Err(PyValueError::new_err(format!("{path}: {what}"))),
    };
    given.into_iter().map(setting).collect()
}

/// Reads the limits of a search.
fn search(arguments: &Arguments<'_, '_>) -> PyResult<Search> {
    let (from, to) = (
        arguments.number("from_load", 1e-6, 1e6)?,
        arguments.number("to_load", 1e-6, 1e6)?,
    );
    if from > to {
        return Err(PyValueError::new_err(format!(
            "cannot search the loads from {from} to {to}; give a from_load that is not above to_load"
        )));
    }
    let precision = arguments.number("precision", 1e-6, 0.999_999)?;
    Ok(Search {
        slos: Slo::usual(
            arguments.get::<Span>("limit")?.0,
            arguments.number("errors", 0.0, 1.0)?,
        ),
        from,
        to,
        precision,
    })
}

fn search_plan(arguments: &Arguments<'_, '_>) -> PyResult<Plan> {
    let duration = arguments.get::<Span>("duration")?.0;
    if duration.is_zero() {
        return Err(PyValueError::new_err(
            "duration: a run of 0 seconds has no load; give 1 second or more",
        ));
    }
    Ok(Plan {
        duration,
        ..Plan::default()
    })
}

/// Estimates the progress of a search after `points` points. Because the total is unknown, each point reduces the
/// remaining progress by a tenth.
fn halves(points: usize) -> f64 {
    1.0 - 0.9_f64.powi(points as i32)
}

/// Searches for the highest load that an architecture sustains. Returns the result as JSON, and a picture.
#[pyfunction]
pub fn capacity(
    py: Python<'_>,
    text: &str,
    file: &str,
    arch: &str,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<(String, String)> {
    let arguments = Arguments(arguments);
    let (config, search) = (config(&arguments)?, search(&arguments)?);
    let plan = search_plan(&arguments)?;
    let topology = run::topology((py, text, file), &[], &arguments, scale(&arguments)?)?;
    let tried = AtomicUsize::new(0);
    let progress = arguments.progress()?;
    let so_far = || halves(tried.load(Ordering::Relaxed));
    let find = || {
        let count = |_: &_| {
            tried.fetch_add(1, Ordering::Relaxed);
        };
        corsair_arch::capacity(&config, &topology, &plan, &search, count)
    };
    let found =
        watched(py, &config.cancel, progress.as_ref(), so_far, find)?.map_err(error::value)?;
    let title = format!("{}: response time by load", topology.arch);
    let svg = picture::capacity(&title, &found, search.p99_limit()).map_err(error::failed)?;
    let summary = CapacitySummary::new(arch, &search, &topology, &found);
    Ok((json(&summary)?, svg))
}

/// Searches for the number of instances of a service that a load needs. Returns the result as JSON.
#[pyfunction]
pub fn instances(
    py: Python<'_>,
    text: &str,
    file: &str,
    arch: &str,
    service: &str,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let arguments = Arguments(arguments);
    let (config, search) = (config(&arguments)?, search(&arguments)?);
    let plan = search_plan(&arguments)?;
    let scale = scale(&arguments)?;
    let Count(most) = arguments.get("most")?;
    if !(1..=1_000_000).contains(&most) {
        return Err(PyValueError::new_err(format!(
            "most: {most} instances are out of range; give 1 to 1000000"
        )));
    }
    let load: Option<String> = arguments.maybe("load")?;
    let load = load.as_deref().map(LoadText::read).transpose();
    let load = load.map_err(|e| error::value(format_args!("load: {e}")))?;
    let text = DefinitionText::new(text, file);
    let checked = text
        .with(&[])
        .map_err(|said| error::definition_text(py, &said))?;
    let names: Vec<&str> = checked.services().map(|(known, _)| &*known.name).collect();
    if !names.contains(&service) {
        let meant = match corsair_arch::nearest(service, names.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("expected one of {}", names.join(", ")),
        };
        return Err(error::value(format_args!(
            "find: there is no service '{service}'; {meant}"
        )));
    }
    if load.is_none() && checked.definition().load.is_empty() {
        return Err(PyValueError::new_err(
            "find: without a load every number is enough; give load, such as 'poisson 500/s'",
        ));
    }
    let make = |count: u32| -> Result<Topology, String> {
        let checked = text.with(&[Setting {
            path: format!("services.{service}.count"),
            value: count.into(),
        }])?;
        let mut topology = Topology::new(&checked, scale).map_err(|error| error.to_string())?;
        if let Some(load) = &load {
            load.apply(&mut topology)
                .map_err(|error| error.to_string())?;
        }
        Ok(topology)
    };
    let tried = AtomicUsize::new(0);
    let progress = arguments.progress()?;
    let so_far = || halves(tried.load(Ordering::Relaxed));
    let find = || {
        corsair_arch::instances(&config, &plan, &search, most, make, |_, _| {
            tried.fetch_add(1, Ordering::Relaxed);
        })
    };
    let found =
        watched(py, &config.cancel, progress.as_ref(), so_far, find)?.map_err(error::value)?;
    let topology = make(1).map_err(error::value)?;
    let summary = InstancesSummary::new(arch, service, &search, &topology, &found);
    json(&summary)
}

/// Compares two definitions, the second with some fields changed: rows as JSON, and a picture.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    texts: [(String, String); 2],
    set: Vec<(String, String)>,
    load_b: Option<&str>,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<(String, String)> {
    let arguments = Arguments(arguments);
    let (config, setup) = (config(&arguments)?, setup(&arguments)?);
    let Count(seeds) = arguments.get("seeds")?;
    if !(2..=10_000).contains(&seeds) {
        return Err(PyValueError::new_err(format!(
            "seeds: {seeds} is out of range; give 2 to 10000"
        )));
    }
    let settings = settings(set)?;
    let [a, b] = texts.map(|(text, file)| DefinitionText::new(text, file));
    let a = setup
        .topology(&a, &[], None)
        .map_err(|e| error::setup(py, &e))?;
    let b = setup
        .topology(&b, &settings, load_b)
        .map_err(|e| error::setup(py, &e))?;
    let plan = setup.plan().map_err(|e| error::setup(py, &e))?;
    let progress = arguments.progress()?;
    let compared = watched(
        py,
        &config.cancel,
        progress.as_ref(),
        || 0.0,
        || corsair_arch::compare(&config, [&a, &b], &plan, seeds as usize),
    )?;
    let compared = compared.map_err(|e| error::simulate(&e))?;
    let compared = compared.ok_or_else(|| error::failed("stopped before all runs were made"))?;
    let rows: Vec<ComparedRow> = compared.iter().map(ComparedRow::new).collect();
    let svg = picture::compared(&compared).map_err(error::failed)?;
    Ok((json(&rows)?, svg))
}

/// Learns a definition from traces. Returns its text, and its similarity to the traces as JSON.
#[pyfunction]
pub fn learn(
    py: Python<'_>,
    files: Vec<PathBuf>,
    name: &str,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<(String, String)> {
    let arguments = Arguments(arguments);
    let config = config(&arguments)?;
    let resamples = arguments.maybe::<Count>("resamples")?;
    let resamples = resamples.map(|Count(resamples)| resamples as usize);
    let most = Recording::MOST_RESAMPLES;
    if let Some(resamples) = resamples.filter(|&resamples| resamples > most) {
        return Err(PyValueError::new_err(format!(
            "resamples: {resamples} is out of range; give 0 to {most}"
        )));
    }
    let progress = arguments.progress()?;
    let learned = watched(
        py,
        &config.cancel,
        progress.as_ref(),
        || 0.0,
        || {
            let recording = Recording::read(&files)?;
            let options = LearnOptions {
                resamples: resamples.unwrap_or_else(|| recording.usual_resamples()),
                seed: config.seed,
                ..LearnOptions::default()
            };
            let mut learned = recording.learn(name, &options)?;
            let shown: Vec<String> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            learned.definition.args = format!("[corsair learn {}]", shown.join(" "));
            let judged = learned.judge(&config)?;
            Ok((
                learned.definition.to_text(),
                LearnedSummary::new(&learned, &judged),
            ))
        },
    )?;
    let (text, summary) = learned.map_err(|e| error::learn(&e))?;
    Ok((text, json(&summary)?))
}
