//! Checkpoints of the command's runs: how they are written, reported and read.

mod signal;

use crate::console::{Console, complain};
use crate::options::checkpoints::Checkpoints;
use crate::text::{self, GoDuration};
use anyhow::{Context, Result};
use corsair::{Snapshot, Time};
use corsair_observe::checkpoint::{self, Checkpoint, Program, RECORDER};
use corsair_observe::run::{Checkpointing, SaveEvent};
use corsair_observe::{Population, ResumePoint};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use signal::Signals;
use std::path::Path;
use std::sync::Arc;

/// The program that writes checkpoints, and the build that reads them.
pub const PROGRAM: Program = Program {
    name: "corsair",
    version: env!("CARGO_PKG_VERSION"),
    build: env!("CORSAIR_BUILD"),
};

/// Returns the data that a workload saves with each checkpoint besides the state of its actors.
pub type Details<'a> = dyn Fn() -> Value + Sync + 'a;

/// Returns the saved run in a checkpoint.
///
/// # Errors
/// If the checkpoint contains no run.
pub fn snapshot_of(checkpoint: &Checkpoint) -> Result<Snapshot> {
    let snapshot = checkpoint.snapshot();
    snapshot.with_context(|| checkpoint.directory.display().to_string())
}

/// Returns the position from which the output of a resumed run continues. `population` has the names of the run's
/// populations.
pub fn resumed(checkpoint: &Checkpoint, population: Option<Arc<dyn Population>>) -> ResumePoint {
    let mut files = checkpoint.files.iter();
    let state = files.find(|(name, _)| name == RECORDER);
    ResumePoint {
        directory: checkpoint.directory.clone(),
        state: state.map(|(_, state)| state.clone()).unwrap_or_default(),
        population,
    }
}

/// Returns the workload's own data in a checkpoint.
///
/// # Errors
/// If the data belong to another workload.
pub fn details<T: DeserializeOwned>(checkpoint: &Checkpoint) -> Result<T> {
    let details = checkpoint.manifest.details.get("run").cloned();
    serde_json::from_value(details.unwrap_or_default())
        .with_context(|| checkpoint.directory.display().to_string())
}

/// The command as the owner of checkpoints.
pub struct Owner<'a> {
    checkpoints: &'a Checkpoints,
    console: &'a Console,
    details: &'a Details<'a>,
    signals: Signals,
}

impl<'a> Owner<'a> {
    /// Starts to listen for SIGUSR1. `details` are saved with each checkpoint.
    pub fn new(
        checkpoints: &'a Checkpoints,
        console: &'a Console,
        details: &'a Details<'a>,
    ) -> Owner<'a> {
        Owner {
            checkpoints,
            console,
            details,
            signals: Signals::new(),
        }
    }
}

impl Checkpointing for Owner<'_> {
    fn program(&self) -> Program {
        PROGRAM
    }

    fn details(&self) -> Value {
        let flags = Value::Object(self.checkpoints.flags.clone());
        json!({ "flags": flags, "run": (self.details)() })
    }

    fn is_asked(&self) -> bool {
        self.signals.asked_for(self.checkpoints)
    }

    fn report(&self, event: SaveEvent<'_>) {
        match event {
            SaveEvent::Saved {
                place,
                time,
                bytes,
                paused,
            } => self.console.line(format_args!(
                "corsair: saved to {} at {time}: {}, paused for {}",
                place.display(),
                text::bytes(bytes),
                GoDuration::rounded(paused)
            )),
            SaveEvent::Failed(error) => complain(format_args!("--checkpoint-dir: {error}")),
            SaveEvent::Missed { times, end } => {
                let shown = |time: Time| GoDuration(time.elapsed()).to_string();
                let times: Vec<String> = times.iter().copied().map(shown).collect();
                complain(format_args!(
                    "--checkpoint-at {}: nothing was saved then, because the run ended at {}; give an earlier time, or a longer -d",
                    times.join(","),
                    shown(end)
                ));
            }
        }
    }
}

/// Reads the checkpoint at a path.
///
/// # Errors
/// If there is no checkpoint, if one of its files has changed, or if another build wrote it.
pub fn read(path: &Path) -> Result<Checkpoint> {
    Ok(checkpoint::read(&checkpoint::find(path)?, PROGRAM)?)
}
