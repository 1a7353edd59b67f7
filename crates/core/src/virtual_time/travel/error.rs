//! Errors of saving and restoring.

use super::CodecError;
use crate::contract::{Addr, RunError};

/// The reasons why a run cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The run has ended.
    #[error("the run is over; there is nothing to save")]
    Over,
    /// An actor was not spawned by kind.
    #[error(
        "{name} ({}) was spawned by a closure or has an async body, and cannot be saved; spawn it by kind (`spawn_kind`)",
        place(*.who)
    )]
    NoKind {
        /// The address of the actor; [`Addr::NONE`] if the actor has not been spawned yet.
        who: Addr,
        /// The name of the actor.
        name: String,
    },
    /// The program does not know this kind.
    #[error(
        "this program does not know the kind of actors `{0}`; restore with the program that saved"
    )]
    UnknownKind(String),
    /// The run was saved with another configuration.
    #[error(
        "the run was saved with {what} {saved}, not {given}; restore it with the saved value{}",
        if *.what == "the seed" { ", or set another seed with `Snapshot::reseed`" } else { "" }
    )]
    Differs {
        /// The setting that differs.
        what: &'static str,
        /// The value in the saved run.
        saved: String,
        /// The value in the configuration.
        given: String,
    },
    /// The bytes are not a valid saved run.
    #[error("part {part} of the saved run cannot be read: {source}")]
    Corrupt {
        /// The number of the part; the head is part 0.
        part: usize,
        /// The error of the storage.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A state or a message cannot be serialized.
    #[error("{what} cannot be written: {source}")]
    Write {
        /// The actor or message.
        what: String,
        /// The error of the serializer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The run cannot continue.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Describes the location of an actor.
fn place(who: Addr) -> String {
    match who {
        Addr::NONE => "about to be spawned".to_owned(),
        who => who.to_string(),
    }
}

impl SnapshotError {
    /// Creates the error of an invalid part.
    pub(in super::super) fn corrupt(part: usize, source: CodecError) -> SnapshotError {
        match source {
            CodecError::UnknownKind(kind) => SnapshotError::UnknownKind(kind),
            source => SnapshotError::Corrupt {
                part,
                source: source.into(),
            },
        }
    }
}
