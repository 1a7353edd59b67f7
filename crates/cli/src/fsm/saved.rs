//! Pirates that are saved as they run, or go on from where they were.

use super::watch::{FsmWatch, Stages};
use crate::checkpoint::{self, Ended};
use crate::options::{Checkpoints, Options};
use anyhow::{Context, Result};
use corsair::fsm::{self, Fsm, FsmError, PirateWatch, Tally};
use corsair::{Addr, AddrRange, Report, RunError, SnapshotError};
use corsair_observe::Recorder;
use corsair_observe::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is saved beside the simulation itself.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    /// The addresses of the FSM, of the first pirate, and how many there are.
    addresses: Option<(u32, u32, u32)>,
}

/// What is saved beside the simulation, and what has been written until the run was paused at this time.
///
/// # Errors
/// If something is written that cannot be gone on with.
#[cfg(feature = "cluster")]
pub(super) fn outputs(
    stages: &Stages,
    recorder: &Recorder,
    time: corsair::Time,
) -> Result<(Value, corsair_observe::SavedOutputs)> {
    Ok((details(stages)?, recorder.save(time)?))
}

/// What is saved of pirates beside the simulation.
fn details(stages: &Stages) -> Result<Value> {
    let addresses = stages.addresses().map(|(fsm, pirates)| {
        let first = pirates.iter().next().unwrap_or(Addr::NONE);
        (fsm.as_u32(), first.as_u32(), pirates.len())
    });
    Ok(serde_json::to_value(Details { addresses })?)
}

/// The stages go on where they were in this checkpoint.
///
/// # Errors
/// If that says nothing of pirates.
pub(super) fn go_on(stages: &Stages, from: &Checkpoint) -> Result<()> {
    if let Some((fsm, first, count)) = checkpoint::details::<Details>(from)?.addresses {
        let pirates = AddrRange::new(Addr::from_u32(first), count);
        stages.go_on(Addr::from_u32(fsm), pirates);
    }
    Ok(())
}

/// Runs them to the end, or to where they are to stop.
///
/// # Errors
/// If they cannot be saved or restored. How the run failed is within.
pub(super) fn run<P: PirateWatch>(
    options: &Options,
    checkpoints: &Checkpoints,
    scenario: Fsm<FsmWatch<P>>,
    stages: &Stages,
    recorder: &Recorder,
) -> Result<Result<(Report, Option<Tally>), FsmError>> {
    let config = &options.config;
    let course = fsm::course(config, &scenario.clone().watched_by(()));
    let (mut simulation, local) = match &checkpoints.from {
        None => match fsm::begin(config, &scenario) {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(error)),
        },
        Some(from) => {
            let mut snapshot = checkpoint::snapshot_of(from)?;
            if let Some(seed) = checkpoints.reseed {
                snapshot.reseed(seed)?;
            }
            go_on(stages, from)?;
            match fsm::resume(config, scenario.watch, &snapshot) {
                Ok(resumed) => resumed,
                Err(SnapshotError::Run(error)) => return Ok(Err(error.into())),
                Err(error) => {
                    return Err(error).with_context(|| from.directory.display().to_string());
                }
            }
        }
    };
    let details = || details(stages);
    let run = checkpoints.run(|| Ok(course))?;
    let ended = checkpoint::run(
        &mut simulation,
        (checkpoints, run),
        config,
        stages.console(),
        recorder,
        details,
    )?;
    Ok(match ended {
        Ended::Until => Ok((simulation.report(), None)),
        Ended::Over => {
            let finished: Result<Report, RunError> = simulation.finish();
            finished
                .map(|report| (report, local.tally()))
                .map_err(FsmError::from)
        }
    })
}
