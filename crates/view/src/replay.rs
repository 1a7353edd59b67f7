//! A session once more, without anybody who watches.

use crate::World;
use crate::recording::Recording;
use corsair::Time;

/// Why a session cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A command does not fit the run.
    #[error("command {number} of the session, {what}: {wrong}")]
    Command {
        /// Which, counted from 1.
        number: usize,
        /// What it is.
        what: String,
        /// What is wrong.
        wrong: String,
    },
    /// Something else has happened than in the session.
    #[error(
        "the replay has the digest {replayed:016x} at {at}, the session had {recorded}; it was saved by another version of the program, or what it reads has changed since"
    )]
    Differs {
        /// The digest of the replay.
        replayed: u64,
        /// The digest of the session.
        recorded: String,
        /// When.
        at: Time,
    },
}

/// Lets all that was done in a session happen, goes on until where it ended, and compares digests.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(world: &mut impl World, recording: &Recording) -> Result<(), ReplayError> {
    prepare(world, recording)?;
    let at = Time::from_nanos(recording.until);
    if at > world.now() {
        world.run_until(at);
    }
    let replayed = world.digest();
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

/// Lets all that was done in a session happen at its time.
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
