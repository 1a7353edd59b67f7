//! Architectures that are saved as they run, or go on from where they were.

use super::source;
use crate::checkpoint::{self, Ended};
use crate::console::Console;
use crate::options::{self, Checkpoints, Options, What};
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use corsair::{Report, SnapshotError};
use corsair_arch::live::{Live, ResumeError};
use corsair_arch::{Branch, Plan, Setting, Topology, Totals};
use corsair_observe::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// What is saved beside the simulation itself.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    /// A checksum of the architecture, which may come from files that change.
    architecture: String,
}

/// What is saved beside the simulation itself.
///
/// # Errors
/// If it cannot be written.
pub(super) fn details(topology: &Topology) -> Result<Value> {
    let architecture = checksum(topology);
    Ok(serde_json::to_value(Details { architecture })?)
}

/// What tells an architecture from others.
fn checksum(topology: &Topology) -> String {
    format!("{:08x}", topology.checksum())
}

/// Checks that a topology is that of a saved run.
///
/// # Errors
/// If it is not.
pub fn check(options: &Options, from: &Checkpoint, topology: &Topology) -> Result<()> {
    let saved = checkpoint::details::<Details>(from)?.architecture;
    let given = checksum(topology);
    if saved != given {
        bail!(
            "{}: {} is not what it was when the run was saved (checksum {given}, not {saved}); put the definition, the graph or the load back that it was begun with",
            from.directory.display(),
            options.arch
        );
    }
    Ok(())
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
    let saved = details(&topology)?;
    let course = || corsair_arch::course(&options.config, topology.clone(), plan);
    let run = checkpoints.run(|| course().map_err(|error| super::failed(&error, console)))?;
    let mut live = match &checkpoints.from {
        None => {
            let begun = Live::new(&options.config, topology, plan);
            begun.map_err(|error| super::failed(&error, console))?
        }
        Some(from) => resume(options, checkpoints, from, topology, plan, console)?,
    };
    let details = || Ok(saved.clone());
    let (simulation, recorder) = (live.simulation(), &plan.recorder);
    let ended = checkpoint::run(
        simulation,
        (checkpoints, run),
        &config,
        console,
        recorder,
        details,
    )?;
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
    check(options, from, &topology)?;
    let snapshot = checkpoint::snapshot_of(from)?;
    let resumed = match asked_branch(options, checkpoints, &topology)? {
        None => Live::resume(&options.config, topology, plan, &snapshot),
        Some(branch) => Live::branch(&options.config, &topology, &branch, plan, &snapshot),
    };
    resumed.map_err(|error| failed(error, &from.directory, console))
}

/// The branch as which a saved run goes on, if it is not to go on as it was.
///
/// # Errors
/// See [`branch`].
pub(super) fn asked_branch(
    options: &Options,
    checkpoints: &Checkpoints,
    saved: &Topology,
) -> Result<Option<Branch>> {
    match (&checkpoints.set[..], checkpoints.reseed) {
        ([], None) => Ok(None),
        (set, seed) => branch(options, saved, set, seed).map(Some),
    }
}

/// Why a run cannot go on from the checkpoint in this directory, or how it failed.
pub(super) fn failed(error: ResumeError, directory: &Path, console: &Console) -> anyhow::Error {
    match error {
        ResumeError::Simulate(error) => super::failed(&error, console),
        ResumeError::Snapshot(SnapshotError::Run(error)) => {
            options::failed(&error, &error, console)
        }
        ResumeError::Change(error) => anyhow!(error).context("--set"),
        error => anyhow!(error).context(directory.display().to_string()),
    }
}

/// The branch of a saved run in which some fields are set.
///
/// # Errors
/// If there is no such field, or it cannot have such a value.
pub fn branch(
    options: &Options,
    saved: &Topology,
    set: &[Setting],
    seed: Option<u64>,
) -> Result<Branch> {
    let What::Services(services) = &options.what else {
        bail!("pirates have no fields that could be set; give --seed-from-here");
    };
    let (mut fields, mut load_percent) = (Vec::new(), None);
    for setting in set {
        let typed = setting.typed();
        match (setting.path.as_str(), typed.strip_suffix('%')) {
            ("load", Some(percent)) => {
                let read = text::whole(percent, 0, 100_000);
                load_percent = Some(read.map_err(anyhow::Error::msg).context("load")? as u32);
            }
            _ => fields.push(setting.clone()),
        }
    }
    let topology = match fields.is_empty() {
        true => saved.clone(),
        false => source::changed(options, services, &fields)?,
    };
    Ok(Branch {
        topology,
        seed,
        load_percent,
        counts_from_here: false,
    })
}
