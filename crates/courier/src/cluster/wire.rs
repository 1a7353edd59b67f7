//! The messages between the members of a cluster.

use crate::log::replicated::{Base, Change, Proposal};
use serde::{Deserialize, Serialize};

/// The version of these messages.
pub(crate) const FORMAT: u8 = 1;

/// The first message of a connection, which is not sealed. The keys of the connection depend on it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub format: u8,
    /// The cluster of the sender; 0 if it has none yet.
    pub cluster: u64,
    pub node: u64,
    /// The address at which the sender listens.
    pub address: String,
    pub nonce: [u8; 32],
}

/// The first sealed message of the node that has opened the connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Sends frames from now on.
    Frames,
    /// Asks for a copy of the index.
    Snapshot,
    /// Asks for a change of the members, at the leader.
    Change(Change),
}

/// Answers to a [`Request`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Accepted,
    Refused(String),
    /// The node is not a member of the cluster any more.
    NotMember,
    /// The request must be sent to the leader; the address is `None` if there is no leader.
    NotLeader(Option<String>),
    /// The state of the cluster at the position of the index that follows.
    Base(Base),
    /// A part of the index. The last one is empty.
    Part(Vec<u8>),
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
