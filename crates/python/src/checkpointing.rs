//! Checkpoints that are written during a run.

use crate::error;
use crate::recording::Recording;
use crate::saved::{PROGRAM, SPANS, failed};
use corsair::CancelToken;
use corsair_arch::live::ResumeError;
use corsair_observe::checkpoint::Program;
use corsair_observe::run::{Checkpointing, DriveError, SaveEvent};
use corsair_observe::{Recorder, SavedOutputs};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes checkpoints during a run on behalf of Python.
pub struct Owner<'a> {
    about: &'a str,
    recording: &'a Mutex<Option<Recording>>,
    cancel: CancelToken,
    /// Times that the run has not reached.
    missed: Mutex<Vec<f64>>,
    error: Mutex<Option<PyErr>>,
}

impl<'a> Owner<'a> {
    /// Creates the owner. `about` describes the run. An error cancels the run.
    pub fn new(
        about: &'a str,
        recording: &'a Mutex<Option<Recording>>,
        cancel: CancelToken,
    ) -> Owner<'a> {
        Owner {
            about,
            recording,
            cancel,
            missed: Mutex::default(),
            error: Mutex::default(),
        }
    }

    /// The recorder of the run.
    pub fn recorder(&self) -> Recorder {
        let recording = lock(self.recording);
        let recording = recording.as_ref();
        recording.map_or(Recorder::off(), Recording::recorder)
    }

    /// Returns the requested checkpoint times, in seconds, that the run did not reach.
    ///
    /// # Errors
    /// If a checkpoint could not be written.
    pub fn finish(self) -> PyResult<Vec<f64>> {
        let error = self.error.into_inner();
        match error.unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut *lock(&self.missed))),
        }
    }

    fn fail(&self, error: PyErr) {
        self.cancel.cancel();
        lock(&self.error).get_or_insert(error);
    }
}

impl Checkpointing for Owner<'_> {
    fn program(&self) -> Program {
        PROGRAM
    }

    fn details(&self) -> Value {
        json!(self.about)
    }

    fn files(&self, outputs: &SavedOutputs) -> Vec<(String, Vec<u8>)> {
        let recording = lock(self.recording);
        let spans = recording.as_ref().map(|recording| recording.spans(outputs));
        match spans.transpose() {
            Ok(spans) => spans
                .flatten()
                .map(|spans| (SPANS.to_owned(), spans))
                .into_iter()
                .collect(),
            Err(error) => {
                self.fail(error);
                Vec::new()
            }
        }
    }

    fn report(&self, event: SaveEvent<'_>) {
        match event {
            SaveEvent::Saved { .. } => {}
            SaveEvent::Failed(error) => self.fail(failed(&error)),
            SaveEvent::Missed { times, .. } => {
                let times = times.iter().map(|time| time.elapsed().as_secs_f64());
                lock(&self.missed).extend(times);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the exception for a run that failed while checkpoints were written.
pub fn not_driven(error: &DriveError<ResumeError>) -> PyErr {
    match error {
        DriveError::Workload(ResumeError::Simulate(error)) => error::simulate(error),
        DriveError::Workload(error) => error::value(error),
        DriveError::Checkpoint(error) => failed(error),
        error => PyOSError::new_err(error.to_string()),
    }
}
