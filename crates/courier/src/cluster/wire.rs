//! The messages at the beginning of a connection between members of a cluster.

use crate::log::replicated::{Base, Change};
use serde::{Deserialize, Serialize};

/// The version of these messages, and of [frames](crate::log::replicated::Frame).
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
