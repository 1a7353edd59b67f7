//! The encoding of commands in the entries of a replicated log.

use crate::command::Command;
use crate::log::{Entry, LogError};
use crate::model::Millis;
use crate::seal::NEWEST;
use raft::eraftpb::{Entry as LogEntry, EntryType};

/// The bytes of an entry before its command: the version that can read it, the process that has proposed it, and the
/// number of the command in that process.
pub(super) const HEAD: usize = 1 + 8 + 8;

/// Encodes a command for an entry. Its number is not known yet.
pub(super) fn encode(origin: u64, command: &Command) -> Result<Vec<u8>, LogError> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(command.version());
    bytes.extend_from_slice(&origin.to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    let taken = command.time().unwrap_or_else(Millis::now);
    postcard::to_extend(&(taken, command), bytes)
        .map_err(|error| LogError::Failed(error.to_string()))
}

/// Returns the process that has proposed an entry, and the number of the command in it.
pub(super) fn origin(entry: &LogEntry) -> Option<(u64, u64)> {
    if entry.get_entry_type() != EntryType::EntryNormal {
        return None;
    }
    let number = |at: usize| {
        let bytes = entry.data.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    Some((number(1)?, number(9)?))
}

/// Reads an entry.
///
/// # Errors
/// A newer version has written the entry.
pub(super) fn decode(stored: &LogEntry) -> Result<Entry, String> {
    let mut entry = Entry {
        position: stored.index,
        command: None,
        taken: Millis::default(),
        reply: None,
    };
    // An entry without data begins a term or changes the members.
    let Some((version, data)) = stored.data.first().zip(stored.data.get(HEAD..)) else {
        return Ok(entry);
    };
    if stored.get_entry_type() != EntryType::EntryNormal {
        return Ok(entry);
    }
    let position = stored.index;
    if *version > NEWEST {
        return Err(format!(
            "entry {position} of its log was written by a node of version {version}, and this one reads up to {NEWEST}; upgrade this node"
        ));
    }
    match postcard::from_bytes(data) {
        Ok((taken, command)) => (entry.taken, entry.command) = (taken, Some(command)),
        // No node can read the entry, because it does not match its own version.
        Err(error) => tracing::warn!(
            "entry {position} of the log cannot be read by any node: {error}; it is skipped"
        ),
    }
    Ok(entry)
}
