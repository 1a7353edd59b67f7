//! Recorded sessions: the flags of the run, the commands with their times, and the digest at the end.

use crate::command::Command;
use crate::world::ExtraCapacity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

/// The version of the format.
const VERSION: &str = "corsair-session-1";

/// The maximum size of a recording in bytes; its lists are limited, too.
const MOST_BYTES: u64 = 64 << 20;
pub(crate) const MOST_COMMANDS: usize = 100_000;

/// A recorded session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    version: String,
    /// The flags of the run, by their long names.
    pub flags: Map<String, Value>,
    /// Capacity for instances of services beyond the definition.
    #[serde(default, skip_serializing_if = "ExtraCapacity::is_empty")]
    pub room: ExtraCapacity,
    /// The commands, in the order in which they were given.
    pub commands: Vec<Command>,
    /// The virtual time at the end, in nanoseconds.
    pub until: u64,
    /// The digest at the end: 16 hexadecimal digits.
    pub digest: String,
}

/// The reasons why a recorded session cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file is too large.
    #[error("{} has more than {MOST_BYTES} bytes, which is the limit for sessions; give a file that the live view has saved", path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file is not a recorded session.
    #[error("{} is not a session that the live view has saved: {error}", path.display())]
    NoSession {
        /// The path of the file.
        path: PathBuf,
        /// The position and cause of the error.
        error: serde_json::Error,
    },
    /// The recording was made by another version.
    #[error(
        "{} is a session of version '{version}', and this corsair reads {VERSION}; save the session again",
        path.display()
    )]
    OtherVersion {
        /// The path of the recording.
        path: PathBuf,
        /// The version that made the recording.
        version: String,
    },
    /// The recording has too many commands.
    #[error("{} has {count} commands; {MOST_COMMANDS} are the most", path.display())]
    TooMany {
        /// The path of the file.
        path: PathBuf,
        /// The number of commands.
        count: usize,
    },
    /// The digest in the recording is invalid.
    #[error("{} has the digest '{digest}', which is not 16 hexadecimal digits", path.display())]
    NoDigest {
        /// The path of the file.
        path: PathBuf,
        /// The text in place of the digest.
        digest: String,
    },
}

impl Recording {
    /// Creates a recording of a session with these flags.
    pub fn new(
        flags: Map<String, Value>,
        commands: Vec<Command>,
        until: u64,
        digest: u64,
    ) -> Recording {
        Recording {
            version: VERSION.to_owned(),
            flags,
            room: ExtraCapacity::new(),
            commands,
            until,
            digest: format!("{digest:016x}"),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Returns a [`RecordingError`] if the file cannot be read or is invalid.
    pub fn read(path: &Path) -> Result<Recording, RecordingError> {
        let own = || path.to_owned();
        let unreadable = |error| RecordingError::Unreadable { path: own(), error };
        let size = std::fs::metadata(path).map_err(unreadable)?.len();
        if size > MOST_BYTES {
            return Err(RecordingError::TooLarge { path: own() });
        }
        let text = std::fs::read(path).map_err(unreadable)?;
        let recording: Recording = serde_json::from_slice(&text)
            .map_err(|error| RecordingError::NoSession { path: own(), error })?;
        let Recording {
            version,
            commands,
            digest,
            ..
        } = &recording;
        if version != VERSION {
            return Err(RecordingError::OtherVersion {
                path: own(),
                version: version.clone(),
            });
        }
        if commands.len() > MOST_COMMANDS {
            let count = commands.len();
            return Err(RecordingError::TooMany { path: own(), count });
        }
        if digest.len() != 16 || u64::from_str_radix(digest, 16).is_err() {
            let digest = digest.clone();
            return Err(RecordingError::NoDigest {
                path: own(),
                digest,
            });
        }
        Ok(recording)
    }
}
