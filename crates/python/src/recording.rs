//! Records the connections and exchanges of a run, in addition to its totals.

use crate::arguments::Arguments;
use crate::error;
use crate::saved::SavedCheckpoint;
use crate::spans::Spans;
use corsair::{Config, Time};
use corsair_arch::{KINDS, Topology};
use corsair_observe::{
    Clock, FlowFormat, GraphFormat, Observer, OutputSummary, Recorder, SavedOutputs, Settings,
};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A recording in progress.
pub struct Recording {
    /// The observer; `None` if nothing is recorded, and then actors report nothing.
    observer: Option<Observer>,
    /// The temporary directory of the graph, if the graph is requested without a directory.
    directory: Option<tempfile::TempDir>,
    graph: bool,
    spans: Option<Arc<Mutex<Spans>>>,
}

/// The results of a recording.
#[derive(Default)]
pub struct Recorded {
    pub observed: OutputSummary,
    pub graph: Option<String>,
    pub spans: Option<Spans>,
}

impl Recording {
    /// Starts a recording, from the beginning or from a checkpoint.
    ///
    /// # Errors
    /// If an argument is invalid, or if files cannot be written.
    pub fn new(
        arguments: &Arguments<'_, '_>,
        topology: &Topology,
        config: &Config,
        saved: Option<&SavedCheckpoint>,
    ) -> PyResult<Recording> {
        let clock = Clock::Virtual(config.progress.clone());
        let mut settings = Settings::new(topology.arch.clone(), clock);
        settings.places = Arc::clone(&topology.places);
        settings.kinds = KINDS;
        settings.operations = topology.operations();
        settings.guesses = topology.guesses();
        settings.cancel = Some(config.cancel.clone());
        settings.times = false;
        settings.resumed = saved.and_then(SavedCheckpoint::outputs);
        let out: Option<PathBuf> = arguments.maybe("out")?;
        let format: String = arguments.get("flow_format")?;
        let format = FlowFormat::named(&format).ok_or_else(|| {
            let names = FlowFormat::ALL.map(FlowFormat::name).join(", ");
            PyValueError::new_err(format!(
                "flow_format: '{format}' does not exist; the formats are {names}"
            ))
        })?;
        let graph = arguments.get("graph")?;
        let mut directory = None;
        match &out {
            Some(out) => {
                settings.out.clone_from(out);
                settings.graphs.push(GraphFormat::Json);
                settings.flows.push(format);
            }
            None if graph => {
                let made = tempfile::tempdir().map_err(|error| {
                    PyOSError::new_err(format!("graph: cannot create a directory for it: {error}"))
                })?;
                settings.out = made.path().to_owned();
                settings.graphs.push(GraphFormat::Json);
                directory = Some(made);
            }
            None => {}
        }
        let mut spans = None;
        if arguments.get("flows")? {
            let begun = saved.map_or_else(|| Ok(Spans::default()), SavedCheckpoint::spans)?;
            let kept = Arc::new(Mutex::new(begun));
            let kept_by = Arc::clone(&kept);
            settings.spans = Some(Box::new(move |span| {
                kept_by
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(span);
            }));
            spans = Some(kept);
        }
        let is_wanted = settings.wants_records();
        let observer = is_wanted.then(|| Observer::start(settings)).transpose();
        Ok(Recording {
            observer: observer.map_err(failed)?,
            directory,
            graph,
            spans,
        })
    }

    /// Returns the recorder for actors.
    pub fn recorder(&self) -> Recorder {
        let observer = self.observer.as_ref();
        observer.map_or(Recorder::off(), Observer::recorder)
    }

    /// Returns the state from which a resumed run continues the output, and the spans up to now as bytes. `time` is the
    /// time at which the run is paused.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub fn save(&self, time: Time) -> PyResult<(SavedOutputs, Option<Vec<u8>>)> {
        let outputs = self.recorder().save(time).map_err(failed)?;
        let spans = self.spans(&outputs)?;
        Ok((outputs, spans))
    }

    /// Returns the spans that belong to these outputs, as bytes; `None` if spans are not recorded.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn spans(&self, outputs: &SavedOutputs) -> PyResult<Option<Vec<u8>>> {
        let spans = self.spans.as_ref().map(|spans| {
            let spans = spans.lock().unwrap_or_else(PoisonError::into_inner);
            spans.to_bytes(outputs.spans)
        });
        spans.transpose().map_err(error::failed)
    }

    /// Ends the recording and returns its results.
    ///
    /// # Errors
    /// If they could not be written.
    pub fn finish(self) -> PyResult<Recorded> {
        let observed = self.observer.map(Observer::finish).transpose();
        let mut observed = observed.map_err(failed)?.unwrap_or_default();
        let is_graph = |path: &std::path::Path| {
            path.parent()
                .is_some_and(|directory| directory.ends_with("json"))
        };
        let written = observed.files.iter().find(|file| is_graph(&file.path));
        let graph = match written {
            Some(file) if self.graph => Some(std::fs::read_to_string(&file.path).map_err(failed)?),
            _ => None,
        };
        if self.directory.is_some() {
            observed.files.clear();
        }
        let spans = self.spans.map(|spans| {
            std::mem::take(&mut *spans.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Ok(Recorded {
            observed,
            graph,
            spans,
        })
    }
}

fn failed(error: impl ToString) -> PyErr {
    PyOSError::new_err(error.to_string())
}
