//! Checkpoints: runs that go on where they were saved, in this process or another.

use crate::error;
use corsair::{Snapshot, Time};
use corsair_observe::checkpoint::{self, Checkpoint, CheckpointError, Draft};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What writes these checkpoints. The command's are its own: it saves flags.
const PROGRAM: &str = "corsair for Python";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a run cannot be saved, or a checkpoint not be read.
fn failed(error: &CheckpointError) -> PyErr {
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

/// Writes a checkpoint below a directory and returns where it is. `about` is what Python wants to know again.
///
/// # Errors
/// If it cannot be written.
pub fn write(
    directory: &Path,
    time: Time,
    snapshot: Snapshot,
    about: &str,
    asked: bool,
) -> PyResult<PathBuf> {
    let (head, parts) = snapshot.into_parts();
    let parts = (1..).zip(parts);
    let parts = parts.map(|(number, part)| (format!("part-{number:04}"), part));
    let draft = Draft {
        program: PROGRAM.to_owned(),
        version: VERSION.to_owned(),
        configuration: String::new(),
        time: time.as_nanos(),
        asked,
        details: json!(about),
        files: std::iter::once(("head".to_owned(), head))
            .chain(parts)
            .collect(),
        outputs: Vec::new(),
    };
    checkpoint::write(directory, draft).map_err(|e| failed(&e))
}

/// A checkpoint that was read, and found to be whole.
#[pyclass(frozen, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Saved {
    checkpoint: Checkpoint,
}

#[pymethods]
impl Saved {
    /// The newest checkpoint below a directory, or the one that it is.
    #[new]
    fn new(directory: PathBuf) -> PyResult<Saved> {
        let found = checkpoint::find(&directory).map_err(|e| failed(&e))?;
        let checkpoint = checkpoint::read(&found, PROGRAM, VERSION).map_err(|e| failed(&e))?;
        Ok(Saved { checkpoint })
    }

    /// What was to be known again.
    #[getter]
    fn about(&self) -> PyResult<&str> {
        let about = self.checkpoint.manifest.details.as_str();
        about.ok_or_else(|| {
            PyValueError::new_err(format!(
                "{} does not say what was run; resume from an older checkpoint",
                self.checkpoint.directory.display()
            ))
        })
    }

    /// Where in virtual time the run was paused, in seconds.
    #[getter]
    fn time(&self) -> f64 {
        let time = Time::from_nanos(self.checkpoint.manifest.time);
        time.elapsed().as_secs_f64()
    }

    /// Below which directory it is.
    #[getter]
    fn below(&self) -> &Path {
        let parent = self.checkpoint.directory.parent();
        parent.unwrap_or(Path::new("."))
    }
}

impl Saved {
    /// The saved run, whose random numbers are those of another seed from here on, if one is given.
    ///
    /// # Errors
    /// If it is none.
    pub fn snapshot(&self, reseed: Option<u64>) -> PyResult<Snapshot> {
        let files = self.checkpoint.files.iter();
        let mut files = files.map(|(_, contents)| contents.clone());
        let head = files.next().unwrap_or_default();
        let mut snapshot = Snapshot::from_parts(head, files.collect()).map_err(error::value)?;
        if let Some(seed) = reseed {
            snapshot.reseed(seed).map_err(error::value)?;
        }
        Ok(snapshot)
    }
}
