//! The saved state of a suspended engine.
//!
//! It contains points in incomplete windows, points without a partner, the levels of alerts, and undelivered output.
//! The format is a line that names the format, a checksum, and the content in postcard.

use crate::node::State;
use crate::node::queue::Undelivered;
use std::collections::BTreeMap;
use std::time::Duration;

/// The state of a suspended engine, from which another engine continues.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct EngineSnapshot {
    pub(super) tasks: BTreeMap<String, SavedTask>,
    /// Lines that have not been logged.
    pub(super) log: Vec<Undelivered>,
    pub(super) place: LogPlace,
    /// The position at which each source continues.
    pub(super) sources: BTreeMap<String, i64>,
    /// The processor time in which nodes have serialized their states.
    #[serde(skip)]
    pub(super) took: Duration,
}

/// A position in the write-ahead log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct LogPlace {
    /// The position of the last write.
    pub(super) position: u64,
    /// The generation of the routes when the state was saved.
    pub(super) generation: u64,
    /// The identity of the log, if there is one.
    pub(super) identity: Option<u64>,
}

/// The saved state of a task's nodes.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct SavedTask {
    /// The canonical text of the task; a task with another text has other nodes.
    pub(super) text: String,
    /// The creation time of the task in nanoseconds since 1970.
    pub(super) created: i64,
    /// The states by node index.
    pub(super) nodes: Vec<(usize, State)>,
}

/// An error in a saved state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedError {
    /// The bytes have another format or version.
    #[error("it was not saved by this version of corsair-stream")]
    Format,
    /// The bytes are truncated or altered.
    #[error("it is damaged: its checksum is wrong")]
    Damaged,
}

const FORMAT: &[u8] = b"corsair-stream saved 6\n";

impl EngineSnapshot {
    /// Returns the position of the last write in the log whose points are included; 0 without a log.
    pub fn position(&self) -> u64 {
        self.place.position
    }

    /// Returns the time in which nodes have serialized their states, while they could do nothing else.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Returns the number of points and bodies in the state.
    pub fn points(&self) -> usize {
        let nodes = self.tasks.values().flat_map(|task| &task.nodes);
        self.log.len() + nodes.map(|(_, state)| state.points).sum::<usize>()
    }

    /// Serializes the state.
    pub fn to_bytes(&self) -> Vec<u8> {
        let rest = postcard::to_allocvec(self).expect("plain data can be written");
        let sum = crc32fast::hash(&rest).to_le_bytes();
        [FORMAT, &sum, &rest].concat()
    }

    /// Deserializes a state.
    ///
    /// # Errors
    /// See [`SavedError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<EngineSnapshot, SavedError> {
        let rest = bytes.strip_prefix(FORMAT).ok_or(SavedError::Format)?;
        let (sum, rest) = rest.split_first_chunk().ok_or(SavedError::Damaged)?;
        if u32::from_le_bytes(*sum) != crc32fast::hash(rest) {
            return Err(SavedError::Damaged);
        }
        postcard::from_bytes(rest).map_err(|_| SavedError::Format)
    }
}

impl SavedTask {
    /// Takes the state of the node with this index.
    pub(super) fn take(&mut self, place: usize) -> Option<State> {
        let found = self.nodes.iter().position(|(at, _)| *at == place)?;
        Some(self.nodes.swap_remove(found).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn altered_or_cut_bytes_are_refused() {
        let mut saved = EngineSnapshot::default();
        saved.log.push(Undelivered {
            number: 0,
            text: "m v=1 1\n".into(),
        });
        let bytes = saved.to_bytes();
        assert_eq!(EngineSnapshot::from_bytes(&bytes).unwrap().log, saved.log);
        for cut in 0..bytes.len() {
            assert!(EngineSnapshot::from_bytes(&bytes[..cut]).is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            assert!(EngineSnapshot::from_bytes(&altered).is_err(), "{at}");
        }
    }
}
