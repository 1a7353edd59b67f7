//! One run of an architecture, and its results.

use crate::arguments::{Arguments, Span, Workers, config, scale};
use crate::entry::Entry;
use crate::error;
use crate::interrupt::watched;
use crate::recording::{Recorded, Recording};
use crate::spans::Spans;
use crate::table::Table;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, Float64Array, UInt64Array};
use corsair::{Config, Executor, Outcome, Report};
use corsair_arch::summary::{ServicesSummary, TopologyNames};
use corsair_arch::{
    DefinitionText, Distribution, Geography, LEAST_TRAVEL, LoadText, Package, Places, Plan, Scale,
    Setting, Timeline, Topology, Totals, picture, simulate as simulate_topology,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The summary of a run, with the field names of the command's JSON.
#[derive(Serialize)]
struct Summary<'a> {
    arch: &'a str,
    executor: &'static str,
    seed: u64,
    workers: usize,
    outcome: &'static str,
    #[serde(flatten)]
    services: ServicesSummary,
    messages_total: u64,
    messages: BTreeMap<&'static str, u64>,
    timers: u64,
    spawned: u64,
    ended: u64,
    time_seconds: f64,
    wall_seconds: f64,
    windows: u64,
    digest: Option<String>,
}

/// The results of a run: texts, entry points and tables.
#[pyclass(frozen, module = "corsair._corsair")]
#[derive(Debug)]
pub struct RunResults {
    /// The summary as JSON.
    #[pyo3(get)]
    summary: String,
    totals: Totals,
    #[pyo3(get)]
    timeline: Option<Py<Table>>,
    #[pyo3(get)]
    flows: Option<Py<Table>>,
    /// The graph as GraphJSON.
    #[pyo3(get)]
    graph: Option<String>,
    #[pyo3(get)]
    files: Vec<String>,
    /// Remarks that are not errors.
    #[pyo3(get)]
    remarks: Vec<String>,
    arch: String,
    names: Vec<(String, bool)>,
}

#[pymethods]
impl RunResults {
    /// The entry points by name.
    #[getter]
    fn entries(&self) -> BTreeMap<String, Entry> {
        let entries = self.totals.entries.iter();
        entries
            .map(|(name, totals)| (name.clone(), Entry::new(totals.clone())))
            .collect()
    }

    /// The picture of the timeline, if one was recorded.
    fn svg(&self) -> PyResult<Option<String>> {
        let timeline = self.totals.timeline.as_ref();
        let drawn = timeline.map(|timeline| picture::timeline(&self.arch, timeline, &self.names));
        drawn.transpose().map_err(error::failed)
    }
}

/// The data from which a topology is created and run.
pub struct Job {
    pub config: Config,
    pub topology: Topology,
    pub plan: Plan,
}

/// Reads the parameters of a run from Python's arguments.
///
/// # Errors
/// If an argument or the definition is invalid. The error is about the first fault.
pub fn job(py: Python<'_>, text: &str, file: &str, arguments: &Arguments<'_, '_>) -> PyResult<Job> {
    let (mut config, scale) = (config(arguments)?, scale(arguments)?);
    let mut plan = Plan {
        duration: arguments.get::<Span>("duration")?.0,
        ..Plan::default()
    };
    if let Some(Span(warm_up)) = arguments.maybe("warm_up")? {
        plan.warm_up = warm_up;
    }
    if let Some(Span(chat)) = arguments.maybe("chat")? {
        plan.chat = chat;
    }
    if let Some(Span(poll)) = arguments.maybe("poll")? {
        plan.poll = poll;
    }
    if plan.warm_up > plan.duration {
        return Err(PyValueError::new_err(format!(
            "warm_up: {:?} is longer than the run, which lasts {:?}",
            plan.warm_up, plan.duration
        )));
    }
    plan.interval = match arguments.maybe::<Span>("interval")? {
        Some(Span(Duration::ZERO)) => None,
        Some(Span(interval)) => Some(interval),
        None => Some((plan.duration / 100).max(Duration::from_millis(1))),
    };
    let topology = topology((py, text, file), &[], arguments, scale)?;
    if arguments.maybe::<Workers>("workers")?.is_none() {
        config.workers = corsair_arch::default_workers(&topology);
    }
    Ok(Job {
        config,
        topology,
        plan,
    })
}

/// Returns the topology of a definition under a load, with some fields changed.
///
/// # Errors
/// If an argument or a part of the definition is invalid. The error is about the first fault.
pub fn topology(
    (py, text, file): (Python<'_>, &str, &str),
    set: &[Setting],
    arguments: &Arguments<'_, '_>,
    scale: Scale,
) -> PyResult<Topology> {
    let text = DefinitionText::new(text, file);
    let checked = text
        .with(set)
        .map_err(|said| error::definition_text(py, &said))?;
    let mut topology = Topology::new(&checked, scale).map_err(error::value)?;
    let connections = corsair_arch::connections(&topology);
    let needed = corsair_arch::memory_needed(topology.len(), connections);
    if let Some(most) = corsair::available_memory().filter(|&most| needed > most) {
        return Err(PyValueError::new_err(format!(
            "population: {} instances with {connections} connections need about {} MB, and {} MB are available; \
             reduce the population or the regions",
            topology.len(),
            needed / 1_000_000,
            most / 1_000_000
        )));
    }
    if let Some(Span(latency)) = arguments.maybe::<Span>("latency")? {
        if latency < Duration::from_nanos(LEAST_TRAVEL) {
            return Err(PyValueError::new_err(format!(
                "latency: {latency:?} is too short; give at least {:?}",
                Duration::from_nanos(LEAST_TRAVEL)
            )));
        }
        topology.geography = Geography::same_everywhere(&Distribution::uniform(latency, latency));
    }
    if let Some(load) = arguments.maybe::<String>("load")? {
        let load = LoadText::read(&load).map_err(|e| error::value(format_args!("load: {e}")))?;
        let applied = load.apply(&mut topology);
        applied.map_err(|e| error::value(format_args!("load: {e}")))?;
    }
    Ok(topology)
}

/// Runs an architecture.
#[pyfunction]
pub fn simulate(
    py: Python<'_>,
    text: &str,
    file: &str,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<RunResults> {
    let arguments = Arguments(arguments);
    let Job {
        config,
        topology,
        plan,
    } = job(py, text, file, &arguments)?;
    let recording = Recording::new(&arguments, &topology, &config, None)?;
    let plan = Plan {
        recorder: recording.recorder(),
        ..plan
    };
    let about = RunContext::new(&topology, &plan);
    let progress = arguments.progress()?;
    let so_far = || {
        let lasts = plan.duration.as_secs_f64().max(1e-9);
        (config.progress.time().elapsed().as_secs_f64() / lasts).min(1.0)
    };
    let run = || {
        let ran = simulate_topology(Executor::Virtual, &config, topology, &plan);
        ran.map_err(|e| error::simulate(&e))
    };
    let (report, totals) = watched(py, &config.cancel, progress.as_ref(), so_far, run)??;
    let recorded = recording.finish()?;
    about.leave(py, &report, totals, recorded)
}

/// The names of a topology, which are stored because the run consumes the topology.
#[derive(Debug)]
pub struct RunContext {
    topology: Topology,
    plan: Plan,
}

impl RunContext {
    pub fn new(topology: &Topology, plan: &Plan) -> RunContext {
        RunContext {
            topology: topology.clone(),
            plan: plan.clone(),
        }
    }

    /// Returns the results of a run.
    ///
    /// # Errors
    /// If Python has no memory for the results.
    pub fn leave(
        self,
        py: Python<'_>,
        report: &Report,
        mut totals: Totals,
        recorded: Recorded,
    ) -> PyResult<RunResults> {
        let RunContext { topology, plan } = self;
        let Recorded {
            observed,
            graph,
            spans,
        } = recorded;
        let names: Vec<(String, bool)> = topology
            .services
            .iter()
            .map(|service| {
                (
                    service.name.clone(),
                    service.package == Package::Denominator,
                )
            })
            .collect();
        // Like the command, this measures utilisation over the complete load.
        let utilisations = topology.utilisations(&totals, plan.duration);
        let named = TopologyNames::new(&topology);
        let services = ServicesSummary::new(&named, &utilisations, report, &totals, &observed);
        if plan.interval.is_none() {
            totals.timeline = None;
        }
        let timeline = totals.timeline.as_ref();
        let timeline = timeline
            .map(|timeline| timeline_table(timeline, &names, &topology.places))
            .transpose()?;
        let flows = spans.map(Spans::table).transpose()?;
        let table = |table: Option<Table>| table.map(|table| Py::new(py, table)).transpose();
        Ok(RunResults {
            summary: summary(&topology.arch, report, services)?,
            timeline: table(timeline)?,
            flows: table(flows)?,
            graph,
            files: observed
                .files
                .iter()
                .map(|file| file.path.display().to_string())
                .collect(),
            remarks: topology.remarks(plan.duration).collect(),
            totals,
            arch: topology.arch,
            names,
        })
    }
}

/// Returns the summary of a run, as in the command's JSON.
fn summary(arch: &str, report: &Report, services: ServicesSummary) -> PyResult<String> {
    let messages = report.messages.iter();
    let summary = Summary {
        arch,
        executor: "virtual",
        seed: report.seed,
        workers: report.workers,
        outcome: match report.outcome {
            Outcome::Cancelled => "cancelled",
            _ => "completed",
        },
        services,
        messages_total: report.delivered(),
        messages: messages.map(|kind| (kind.kind, kind.count)).collect(),
        timers: report.timers,
        spawned: report.spawned,
        ended: report.ended,
        time_seconds: report.time.elapsed().as_secs_f64(),
        wall_seconds: report.wall.as_secs_f64(),
        windows: report.windows,
        digest: report.digest.map(|digest| format!("{digest:016x}")),
    };
    serde_json::to_string(&summary).map_err(error::failed)
}

/// Returns the timeline by service and zone, with the columns of the command's CSV.
fn timeline_table(
    timeline: &Timeline,
    names: &[(String, bool)],
    places: &Places,
) -> PyResult<Table> {
    let mut words: [StringDictionaryBuilder<UInt32Type>; 3] = Default::default();
    for row in timeline.rows() {
        let name = &names[row.service as usize].0;
        let places = [
            name,
            row.zone.region_name(places),
            row.zone.zone_name(places),
        ];
        for (column, word) in words.iter_mut().zip(places) {
            column.append_value(word);
        }
    }
    let numbers = |of: &dyn Fn(&corsair_arch::TimelineRow) -> Option<f64>| {
        Arc::new(
            timeline
                .rows()
                .map(|row| of(&row))
                .collect::<Float64Array>(),
        ) as ArrayRef
    };
    let counts = |of: &dyn Fn(&corsair_arch::TimelineRow) -> u64| {
        Arc::new(
            timeline
                .rows()
                .map(|row| Some(of(&row)))
                .collect::<UInt64Array>(),
        ) as ArrayRef
    };
    let [service, region, zone] = words
        .each_mut()
        .map(|words| Arc::new(words.finish()) as ArrayRef);
    let percentile =
        |place: usize| numbers(&move |row| row.percentiles[place].map(|time| time.as_secs_f64()));
    let columns: [ArrayRef; 13] = [
        numbers(&|row| Some(row.begins.as_secs_f64())),
        service,
        region,
        zone,
        counts(&|row| row.requests),
        counts(&|row| row.errors),
        percentile(0),
        percentile(1),
        percentile(2),
        percentile(3),
        numbers(&|row| Some(row.queue)),
        counts(&|row| row.longest_queue.into()),
        numbers(&|row| row.utilisation),
    ];
    Table::of(
        corsair_arch::TimelineRow::COLUMNS
            .into_iter()
            .zip(columns)
            .collect(),
    )
}
