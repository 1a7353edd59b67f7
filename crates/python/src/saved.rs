//! Checkpoints: runs that are resumed in this process or another.

use crate::arguments::Seed;
use crate::error;
use crate::spans::Spans;
use corsair::{Snapshot, Time};
use corsair_observe::checkpoint::{
    self, Checkpoint, CheckpointError, Draft, Program, RECORDER, RunId,
};
use corsair_observe::{ResumePoint, SavedOutputs};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The program that writes these checkpoints. The command line counts as another program, because it also saves flags.
pub const PROGRAM: Program = Program {
    name: "corsair for Python",
    version: env!("CARGO_PKG_VERSION"),
    build: env!("CORSAIR_BUILD"),
};

/// The name of the file with the spans, which a checkpoint has in addition to the run and the state of its recorder.
pub const SPANS: &str = "spans";

/// Returns the exception for a run that cannot be saved, or a checkpoint that cannot be read.
pub fn failed(error: &CheckpointError) -> PyErr {
    let said = error
        .to_string()
        .replace("--checkpoint-dir", "checkpoint_dir");
    match error {
        CheckpointError::None { .. } => PyFileNotFoundError::new_err(said),
        CheckpointError::Read { error, .. } if error.kind() == ErrorKind::NotFound => {
            PyFileNotFoundError::new_err(said)
        }
        CheckpointError::Read { .. } | CheckpointError::Write { .. } => PyOSError::new_err(said),
        _ => PyValueError::new_err(said),
    }
}

/// Writes a checkpoint below a directory and returns its path. `about` is returned to Python when the checkpoint is
/// read.
///
/// # Errors
/// If the checkpoint cannot be written.
pub fn write(
    directory: &Path,
    run: RunId,
    time: Time,
    snapshot: Snapshot,
    (outputs, spans): (SavedOutputs, Option<Vec<u8>>),
    about: &str,
    asked: bool,
) -> PyResult<PathBuf> {
    let mut files = checkpoint::files_of(snapshot).map_err(error::value)?;
    files.push((RECORDER.to_owned(), outputs.state));
    files.extend(outputs.copies);
    files.extend(spans.map(|spans| (SPANS.to_owned(), spans)));
    let draft = Draft {
        program: PROGRAM,
        run,
        time: time.as_nanos(),
        asked,
        details: json!(about),
        files,
        outputs: outputs.files,
    };
    checkpoint::write(directory, draft).map_err(|e| failed(&e))
}

/// A checkpoint that was read and is complete.
#[pyclass(frozen, module = "corsair._corsair")]
#[derive(Debug)]
pub struct SavedCheckpoint {
    checkpoint: Checkpoint,
}

#[pymethods]
impl SavedCheckpoint {
    /// The newest checkpoint below a directory, or the directory itself if it is a checkpoint.
    #[new]
    fn new(directory: PathBuf) -> PyResult<SavedCheckpoint> {
        let found = checkpoint::find(&directory).map_err(|e| failed(&e))?;
        let checkpoint = checkpoint::read(&found, PROGRAM).map_err(|e| failed(&e))?;
        Ok(SavedCheckpoint { checkpoint })
    }

    /// The description of the run.
    #[getter]
    fn about(&self) -> PyResult<&str> {
        let about = self.checkpoint.manifest.details.as_str();
        about.ok_or_else(|| {
            PyValueError::new_err(format!(
                "{} has no description of its run; resume from an older checkpoint",
                self.checkpoint.directory.display()
            ))
        })
    }

    /// The virtual time of the checkpoint in seconds.
    #[getter]
    fn time(&self) -> f64 {
        let time = Time::from_nanos(self.checkpoint.manifest.time);
        time.elapsed().as_secs_f64()
    }

    /// The directory that contains the checkpoint.
    #[getter]
    fn below(&self) -> &Path {
        let parent = self.checkpoint.directory.parent();
        parent.unwrap_or(Path::new("."))
    }

    /// The default directory for checkpoints and files of the branch with this seed and these fields.
    fn branch_directory(&self, seed: Option<Seed>, set: Vec<(String, String)>) -> PathBuf {
        let run = self.run(seed.map(|Seed(seed)| seed), &set);
        checkpoint::branch_directory(&self.checkpoint, run)
    }
}

impl SavedCheckpoint {
    /// Returns the identity of the saved run. If another seed or other fields are given, returns the identity of the
    /// branch with them.
    pub fn run(&self, reseed: Option<u64>, set: &[(String, String)]) -> RunId {
        let manifest = &self.checkpoint.manifest;
        let seed = reseed.map(|seed| format!("seed={seed}\n"));
        let set = set
            .iter()
            .map(|(field, value)| format!("{field}={value}\n"));
        let changes: String = seed.into_iter().chain(set).collect();
        match changes.is_empty() {
            true => manifest.run,
            false => manifest.run.branch(manifest.time, changes.as_bytes()),
        }
    }

    /// Returns the contents of a file of the checkpoint.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        let mut files = self.checkpoint.files.iter();
        let found = files.find(|(known, _)| known == name);
        found.map(|(_, contents)| contents.as_slice())
    }

    /// Returns the state of the recorder; `None` if nothing was recorded.
    pub fn outputs(&self) -> Option<ResumePoint> {
        let state = self.file(RECORDER)?.to_vec();
        Some(ResumePoint {
            directory: self.checkpoint.directory.clone(),
            state,
            population: None,
        })
    }

    /// Returns the recorded spans.
    ///
    /// # Errors
    /// If they were not recorded.
    pub fn spans(&self) -> PyResult<Spans> {
        let spans = self.file(SPANS).and_then(Spans::from_bytes);
        spans.ok_or_else(|| {
            PyValueError::new_err(format!(
                "{} has no flows; resume from an older checkpoint",
                self.checkpoint.directory.display()
            ))
        })
    }

    /// Returns the saved run. If a seed is given, later random numbers are drawn from that seed.
    ///
    /// # Errors
    /// If the checkpoint has no run.
    pub fn snapshot(&self, reseed: Option<u64>) -> PyResult<Snapshot> {
        let mut snapshot = self.checkpoint.snapshot().map_err(error::value)?;
        if let Some(seed) = reseed {
            snapshot.reseed(seed).map_err(error::value)?;
        }
        Ok(snapshot)
    }
}
