//! Architectures that are saved as they run, or go on from where they were.

use crate::checkpoint::{self, Checkpoints, Ended};
use crate::console::Console;
use crate::options::{self, Options};
use anyhow::{Context, Result, bail};
use corsair::{Report, SnapshotError};
use corsair_arch::live::{Live, ResumeError};
use corsair_arch::{Plan, Topology, Totals};
use corsair_observe::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};

/// What is saved beside the simulation itself.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    /// A checksum of the architecture, which may come from files that change.
    architecture: String,
}

/// What tells an architecture from others.
fn checksum(topology: &Topology) -> String {
    format!("{:08x}", topology.checksum())
}

/// Runs it to the end, or to where it is to stop.
///
/// # Errors
/// If it cannot be saved or restored, or how the run failed.
pub(super) fn run(
    options: &Options,
    checkpoints: &Checkpoints,
    topology: Topology,
    plan: &Plan,
    console: &Console,
) -> Result<(Report, Totals)> {
    let config = corsair_arch::config(&topology, options.config.clone());
    let architecture = checksum(&topology);
    let mut live = match &checkpoints.from {
        None => {
            let begun = Live::new(&options.config, topology, plan);
            begun.map_err(|error| super::failed(&error, console))?
        }
        Some(from) => resume(options, checkpoints, from, topology, plan, console)?,
    };
    let outputs = |time| {
        let details = Details {
            architecture: architecture.clone(),
        };
        Ok((serde_json::to_value(details)?, plan.recorder.save(time)?))
    };
    let ended = checkpoint::run(live.simulation(), checkpoints, &config, console, outputs)?;
    match ended {
        Ended::Until => Ok(live.stop()),
        Ended::Over => live
            .finish()
            .map_err(|error| super::failed(&error, console)),
    }
}

/// The saved run, ready to go on.
fn resume(
    options: &Options,
    checkpoints: &Checkpoints,
    from: &Checkpoint,
    topology: Topology,
    plan: &Plan,
    console: &Console,
) -> Result<Live> {
    let saved = checkpoint::details::<Details>(from)?.architecture;
    let given = checksum(&topology);
    if saved != given {
        bail!(
            "{}: {} is not what it was when the run was saved (checksum {given}, not {saved}); put the definition, the graph or the load back that it was begun with",
            from.directory.display(),
            options.arch
        );
    }
    let mut snapshot = checkpoint::snapshot_of(from)?;
    if let Some(seed) = checkpoints.reseed {
        snapshot.reseed(seed)?;
    }
    match Live::resume(&options.config, topology, plan, &snapshot) {
        Ok(live) => Ok(live),
        Err(ResumeError::Simulate(error)) => Err(super::failed(&error, console)),
        Err(ResumeError::Snapshot(SnapshotError::Run(error))) => {
            Err(options::failed(&error, &error, console))
        }
        Err(error) => Err(error).with_context(|| from.directory.display().to_string()),
    }
}
