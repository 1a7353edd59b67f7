//! Requests of the page that have a single answer: a run, the search for a capacity, a comparison.

use corsair::{Config, Executor};
use corsair_arch::summary::{CapacitySummary, ComparedRow, EntrySummary};
use corsair_arch::{DefinitionText, Plan, Scale, Search, Setting, Setup, Slo, Topology, read_text};
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The name of the definition in error messages.
pub(crate) const FILE: &str = "definition";

/// The allowed durations of a run in seconds, so that a mistyped number does not block the page.
const SECONDS: std::ops::RangeInclusive<f64> = 0.001..=3600.0;

/// The largest number of instances of a definition, because a page has at most 4 GiB of memory.
const MOST_INSTANCES: u32 = 200_000;

pub(crate) fn config(seed: u64) -> Config {
    Config {
        seed,
        workers: NonZeroUsize::MIN,
        ..Config::default()
    }
}

pub(crate) fn duration(seconds: f64) -> Result<Duration, String> {
    if !SECONDS.contains(&seconds) {
        return Err(format!(
            "a duration of {seconds} s is out of range; give {} to {} s",
            SECONDS.start(),
            SECONDS.end()
        ));
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(crate) fn topology(definition: &str) -> Result<Topology, String> {
    let checked = read_text(definition, FILE).map_err(sentence)?;
    bounded(Topology::new(&checked, Scale::default()).map_err(sentence)?)
}

fn bounded(topology: Topology) -> Result<Topology, String> {
    if topology.len() > MOST_INSTANCES {
        return Err(format!(
            "the definition has {} instances; the playground runs at most {MOST_INSTANCES}, so install corsair for larger ones",
            topology.len()
        ));
    }
    Ok(topology)
}

pub(crate) fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string().trim_end().to_owned()
}

pub(crate) fn run(definition: &str, seed: u64, seconds: f64) -> Result<String, String> {
    let topology = topology(definition)?;
    let plan = Plan {
        duration: duration(seconds)?,
        ..Plan::default()
    };
    let config = corsair_arch::config(&topology, config(seed));
    let arch = topology.arch.clone();
    let (report, totals) =
        corsair_arch::simulate(Executor::Virtual, &config, topology, &plan).map_err(sentence)?;
    let entries: BTreeMap<&String, EntrySummary> = totals
        .entries
        .iter()
        .map(|(name, entry)| (name, EntrySummary::new(entry)))
        .collect();
    Ok(json!({
        "arch": arch,
        "seed": seed,
        "digest": report.digest.map(|digest| format!("{digest:016x}")),
        "entries": entries,
    })
    .to_string())
}

pub(crate) fn capacity(
    definition: &str,
    seed: u64,
    seconds: f64,
    limit: f64,
) -> Result<String, String> {
    if !(limit > 0.0 && limit <= 1e6) {
        return Err(format!(
            "a limit of {limit} ms is out of range; give more than 0 and at most 1000000 ms"
        ));
    }
    let topology = topology(definition)?;
    let plan = Plan {
        duration: duration(seconds)?,
        ..Plan::default()
    };
    let search = Search {
        slos: Slo::usual(Duration::from_secs_f64(limit / 1e3), 0.01),
        ..Search::default()
    };
    let found = corsair_arch::capacity(&config(seed), &topology, &plan, &search, |_| ());
    let found = found.map_err(sentence)?;
    let summary = CapacitySummary::new(&topology.arch, &search, &topology, &found);
    serde_json::to_string(&summary).map_err(sentence)
}

pub(crate) fn compare(
    definition: &str,
    settings: &str,
    seed: u64,
    seconds: f64,
    seeds: usize,
) -> Result<String, String> {
    if !(2..=100).contains(&seeds) {
        return Err(format!("{seeds} seeds are out of range; give 2 to 100"));
    }
    let settings = settings
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(setting)
        .collect::<Result<Vec<_>, _>>()?;
    if settings.is_empty() {
        return Err("there is nothing to compare; give a field and its value, for example services.web.count=4".to_owned());
    }
    let setup = Setup {
        scale: Scale::default(),
        duration: duration(seconds)?,
        warm_up: None,
        load: None,
        sized: false,
    };
    let text = DefinitionText::new(definition, FILE);
    let a = bounded(setup.topology(&text, &[], None).map_err(sentence)?)?;
    let b = bounded(setup.topology(&text, &settings, None).map_err(sentence)?)?;
    let plan = setup.plan().map_err(sentence)?;
    let rows = corsair_arch::compare(&config(seed), [&a, &b], &plan, seeds).map_err(sentence)?;
    let rows: Vec<ComparedRow> = rows.iter().flatten().map(ComparedRow::new).collect();
    serde_json::to_string(&rows).map_err(sentence)
}

fn setting(line: &str) -> Result<Setting, String> {
    let (path, value) = line.split_once('=').ok_or_else(|| {
        format!("'{line}' is not a setting; expected FIELD=VALUE, for example services.web.count=4")
    })?;
    Ok(Setting {
        path: path.trim().to_owned(),
        value: Setting::value(value.trim()),
    })
}
