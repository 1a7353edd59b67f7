//! Replays recorded sessions.

use crate::World;
use crate::recording::Recording;
use corsair::Time;

/// The reasons why a session cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A command does not fit the simulation.
    #[error("command {number} of the session ({what}): {wrong}")]
    Command {
        /// The number of the command, from 1.
        number: usize,
        /// The command that failed.
        what: String,
        /// A description of the fault.
        wrong: String,
    },
    /// The replay and the session have different digests.
    #[error(
        "the replay has the digest {replayed:016x} at {at}, the session had {recorded}; replay it with the version of corsair and the input files with which it was saved"
    )]
    Differs {
        /// The digest of the replay.
        replayed: u64,
        /// The digest of the session.
        recorded: String,
        /// The time at which the digests were compared.
        at: Time,
    },
}

/// Applies all commands of a recorded session, runs until the time at which it was saved, and compares digests.
///
/// # Errors
/// Returns a [`ReplayError`] if a command fails or the digests differ.
pub fn replay(world: &mut impl World, recording: &Recording) -> Result<(), ReplayError> {
    prepare(world, recording)?;
    let at = Time::from_nanos(recording.until);
    if at > world.now() {
        world.run_until(at);
    }
    let replayed = world.digest().unwrap_or_default();
    if format!("{replayed:016x}") != recording.digest.to_ascii_lowercase() {
        let recorded = recording.digest.clone();
        return Err(ReplayError::Differs {
            replayed,
            recorded,
            at,
        });
    }
    Ok(())
}

/// Schedules all commands of a recorded session.
pub(crate) fn prepare(world: &mut impl World, recording: &Recording) -> Result<(), ReplayError> {
    for (number, command) in (1..).zip(&recording.commands) {
        world.apply(command).map_err(|wrong| ReplayError::Command {
            number,
            what: command.what.to_string(),
            wrong,
        })?;
    }
    Ok(())
}
