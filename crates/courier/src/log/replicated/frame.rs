//! The frames between the members of a cluster.

use serde::{Deserialize, Serialize};

/// Encoded commands of a process, with the number of the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proposal {
    pub number: u64,
    pub data: Vec<u8>,
}

/// A message between two members.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// A message of Raft.
    Raft(Vec<u8>),
    /// Commands for the leader of this term.
    Propose {
        /// The process that has accepted the commands.
        origin: u64,
        term: u64,
        /// The number of the last command that the process has sent to this leader before; 0 if it sends all of them
        /// again.
        after: u64,
        proposals: Vec<Proposal>,
    },
    /// The receiver needs entries that the sender no longer has, and must start from a copy of the sender's index.
    Snapshot {
        term: u64,
        /// The position before the first entry that the sender has.
        position: u64,
    },
    /// A message about the online users.
    Presence(Vec<u8>),
    /// Asks for a [`Frame::Pong`], so that a dead connection is noticed.
    Ping,
    Pong,
}
