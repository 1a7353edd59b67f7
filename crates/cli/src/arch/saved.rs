//! Architectures that are saved while they run, or that are resumed.

use super::source;
use crate::checkpoint;
use crate::console::Console;
use crate::driver::{Driver, Failure};
use crate::options::{Checkpoints, Options, WorkloadOptions};
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use corsair::{Report, Snapshot};
use corsair_arch::live::ResumeError;
use corsair_arch::{Architecture, Branch, Plan, Setting, Topology, Totals};
use corsair_observe::checkpoint::Checkpoint;
use corsair_observe::run::Finished;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The data saved in addition to the simulation itself.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    /// A checksum of the architecture, whose files may change.
    architecture: String,
}

/// Returns the data saved in addition to the simulation itself.
///
/// # Errors
/// If the data cannot be serialized.
fn details(topology: &Topology) -> Result<Value> {
    let architecture = checksum(topology);
    Ok(serde_json::to_value(Details { architecture })?)
}

/// Returns the checksum that identifies an architecture.
fn checksum(topology: &Topology) -> String {
    format!("{:08x}", topology.checksum())
}

/// Checks that a saved run has this topology.
///
/// # Errors
/// If the saved run has another topology.
pub fn check(options: &Options, from: &Checkpoint, topology: &Topology) -> Result<()> {
    let saved = checkpoint::details::<Details>(from)?.architecture;
    let given = checksum(topology);
    if saved != given {
        bail!(
            "{}: {} has changed since the run was saved (checksum {given}, not {saved}); restore the definition, the graph or the load of the run",
            from.directory.display(),
            options.arch
        );
    }
    Ok(())
}

/// Runs an architecture with these options.
///
/// # Errors
/// If the run cannot be saved or resumed, or fails.
pub(super) fn run(
    options: &Options,
    from: Option<&Checkpoint>,
    topology: Topology,
    plan: &Plan,
    console: &Console,
    driver: &mut impl Driver,
) -> Result<Option<(Report, Totals)>> {
    let saved = details(&topology)?;
    let directory = from.map_or(Path::new(""), |from| &from.directory);
    let (architecture, snapshot) = match from {
        Some(from) => resume(options, from, topology, plan, console)?,
        None => {
            let config = match options.checkpoints {
                Some(_) => options.config.clone(),
                None => plan.without_needless_traces(&options.config),
            };
            let begun = Architecture::new(options.executor, &config, topology, plan);
            let begun = begun.map_err(|error| super::failed(&error, console))?;
            (begun, None)
        }
    };
    match driver.drive(architecture, snapshot, &|| saved.clone()) {
        Ok(ran) => Ok(ran.map(|Finished { report, totals }| (report, totals))),
        Err(Failure::Workload(error)) => Err(failed(error, directory, console)),
        Err(Failure::Other(error)) => Err(error),
    }
}

/// Returns the saved run, ready to be resumed, and its checkpoint.
fn resume(
    options: &Options,
    from: &Checkpoint,
    topology: Topology,
    plan: &Plan,
    console: &Console,
) -> Result<(Architecture, Option<Snapshot>)> {
    check(options, from, &topology)?;
    let snapshot = checkpoint::snapshot_of(from)?;
    let asked = options.checkpoints.as_ref();
    let branch = asked.map(|asked| asked_branch(options, asked, &topology));
    let (config, executor) = (&options.config, options.executor);
    let (architecture, snapshot) = match branch.transpose()?.flatten() {
        None => {
            let resumed = Architecture::new(executor, config, topology, plan);
            (
                resumed.map_err(|error| super::failed(&error, console))?,
                snapshot,
            )
        }
        Some(branch) => {
            let branched = Architecture::branch(config, &topology, &branch, plan, &snapshot);
            branched.map_err(|error| failed(error, &from.directory, console))?
        }
    };
    Ok((architecture, Some(snapshot)))
}

/// Returns the branch that the options request; `None` if the saved run resumes unchanged.
///
/// # Errors
/// See [`branch`] for the errors.
fn asked_branch(
    options: &Options,
    checkpoints: &Checkpoints,
    saved: &Topology,
) -> Result<Option<Branch>> {
    match (&checkpoints.set[..], checkpoints.reseed) {
        ([], None) => Ok(None),
        (set, seed) => branch(options, saved, set, seed).map(Some),
    }
}

/// Describes why a run cannot be resumed from the checkpoint in this directory, or why it failed.
fn failed(error: ResumeError, directory: &Path, console: &Console) -> anyhow::Error {
    match error {
        ResumeError::Simulate(error) => super::failed(&error, console),
        ResumeError::Change(error) => anyhow!(error).context("--set"),
        error => anyhow!(error).context(directory.display().to_string()),
    }
}

/// Returns a branch of a saved run with some changed fields.
///
/// # Errors
/// If a field does not exist, or cannot have the value.
pub fn branch(
    options: &Options,
    saved: &Topology,
    set: &[Setting],
    seed: Option<u64>,
) -> Result<Branch> {
    let WorkloadOptions::Services(services) = &options.what else {
        bail!("pirates have no fields to set; give --seed-from-here instead");
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
