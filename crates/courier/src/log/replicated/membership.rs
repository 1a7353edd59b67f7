//! The members of a cluster at a position of its log, and changes of the members.

use protobuf::Message as _;
use raft::eraftpb::{ConfChange, ConfChangeType, ConfState, Entry, EntryType};
use serde::{Deserialize, Serialize};

/// A change of the members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    Join { id: u64, address: String },
    Remove { id: u64 },
}

/// The outcome of a change: an error is the reason why it was refused, or `None` if it may be possible in a moment.
pub(crate) type Changed = Result<(), Option<String>>;

/// A member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub id: u64,
    /// The address at which the member listens.
    pub address: String,
    /// True if the member has no vote yet, because it is catching up.
    pub is_learner: bool,
}

/// The state of a cluster at a position of its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    /// The identity of the cluster.
    pub cluster: u64,
    pub position: u64,
    /// The term of the entry at this position.
    pub term: u64,
    /// The members, in the order of their ids.
    pub members: Vec<Member>,
}

impl Base {
    /// Applies a change of the members in an entry.
    pub fn apply(&mut self, entry: &Entry) {
        (self.position, self.term) = (entry.index, entry.term);
        let Some(change) = change(entry) else { return };
        self.members.retain(|member| member.id != change.node_id);
        if change.get_change_type() == ConfChangeType::RemoveNode {
            return;
        }
        self.members.push(Member {
            id: change.node_id,
            address: String::from_utf8_lossy(&change.context).into_owned(),
            is_learner: change.get_change_type() == ConfChangeType::AddLearnerNode,
        });
        self.members.sort_by_key(|member| member.id);
    }

    /// Returns the member with this id.
    pub fn member(&self, id: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Returns the members with a vote.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// Returns the members without a vote.
    pub fn learners(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_learner)
    }

    pub(super) fn conf_state(&self) -> ConfState {
        ConfState {
            voters: self.voters().map(|member| member.id).collect(),
            learners: self.learners().map(|member| member.id).collect(),
            ..ConfState::default()
        }
    }
}

/// Returns the change of the members in an entry, if it has one.
pub(super) fn change(entry: &Entry) -> Option<ConfChange> {
    match entry.get_entry_type() {
        EntryType::EntryConfChange => ConfChange::parse_from_bytes(&entry.data).ok(),
        _ => None,
    }
}
