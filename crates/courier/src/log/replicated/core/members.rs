//! Changes of the members, and of the leader.

use super::state::{Changing, Core};
use crate::log::replicated::membership::{Change, Changed};
use crate::log::replicated::shared::Status;
use raft::eraftpb::{ConfChange, ConfChangeType};
use tokio::sync::oneshot;

/// The maximum number of entries by which a learner is behind when it gets a vote.
const NEAR: u64 = 1 << 10;

fn conf_change(kind: ConfChangeType, node: u64, address: &str) -> ConfChange {
    let mut change = ConfChange {
        node_id: node,
        context: address.as_bytes().to_vec().into(),
        ..ConfChange::default()
    };
    change.set_change_type(kind);
    change
}

impl Core {
    /// Gives a vote to a learner that has caught up.
    pub(super) fn promote(&mut self) {
        let last = self.raft.raft.raft_log.last_index();
        let ready = self.current.learners().find(|learner| {
            let progress = self.raft.raft.prs().get(learner.id);
            progress.is_some_and(|progress| {
                progress.recent_active && progress.matched + NEAR >= last && progress.matched > 0
            })
        });
        if let Some(learner) = ready.cloned()
            && !self.raft.raft.has_pending_conf()
        {
            let _ = self.raft.propose_conf_change(
                Vec::new(),
                conf_change(ConfChangeType::AddNode, learner.id, &learner.address),
            );
        }
    }

    pub(super) fn change(&mut self, wanted: Change, reply: oneshot::Sender<Changed>) {
        let (Change::Join { id: node, .. } | Change::Remove { id: node }) = wanted;
        let proposed = match self.proposed_change(wanted) {
            Ok(Some(proposed)) => proposed,
            Ok(None) => return drop(reply.send(Ok(()))),
            Err(reason) => return drop(reply.send(Err(reason))),
        };
        let before = self.raft.raft.raft_log.last_index();
        let sent = self.raft.propose_conf_change(Vec::new(), proposed);
        let is_sent = sent.is_ok() && self.raft.raft.raft_log.last_index() > before;
        match is_sent {
            true => self.changing.push(Changing {
                node,
                position: before + 1,
                term: self.raft.raft.term,
                reply,
            }),
            false => drop(reply.send(Err(None))),
        }
    }

    /// Returns the change to propose; `None` if nothing has to change.
    fn proposed_change(&self, wanted: Change) -> Result<Option<ConfChange>, Option<String>> {
        if !self.is_leader() || self.raft.raft.has_pending_conf() {
            return Err(None);
        }
        let members = &self.current.members;
        let known = |id| self.current.member(id);
        match wanted {
            Change::Join { id, address } => {
                let other = members
                    .iter()
                    .find(|member| member.address == address && member.id != id);
                match (other, known(id)) {
                    // The node has begun to join before, and has another id now.
                    (Some(other), _) if other.is_learner => {
                        Ok(Some(conf_change(ConfChangeType::RemoveNode, other.id, "")))
                    }
                    (Some(other), _) => Err(Some(format!(
                        "the address {address} belongs to the member {:016x}; remove that member first with `corsair-courier remove --node {:016x}`",
                        other.id, other.id
                    ))),
                    (None, Some(member)) if member.address == address => Ok(None),
                    (None, Some(member)) if !member.is_learner => {
                        Ok(Some(conf_change(ConfChangeType::AddNode, id, &address)))
                    }
                    (None, _) => Ok(Some(conf_change(
                        ConfChangeType::AddLearnerNode,
                        id,
                        &address,
                    ))),
                }
            }
            Change::Remove { id } => {
                let Some(member) = known(id) else {
                    return Err(Some(format!(
                        "the cluster has no member {id:016x}; `corsair-courier members` lists them"
                    )));
                };
                if !member.is_learner && self.current.voters().count() == 1 {
                    return Err(Some("the last member cannot be removed".to_owned()));
                }
                Ok(Some(conf_change(ConfChangeType::RemoveNode, id, "")))
            }
        }
    }

    /// Moves the leadership to a member, or to the one that is most advanced.
    pub(super) fn hand_over(&mut self, to: Option<u64>) {
        if !self.is_leader() {
            return;
        }
        let node = self.raft.raft.id;
        let voters = self.current.voters();
        let others =
            voters.filter(|member| member.id != node && self.links.contains_key(&member.id));
        let best = others
            .max_by_key(|member| self.matched(member.id))
            .map(|member| member.id);
        if let Some(to) = to.or(best) {
            self.raft.transfer_leader(to);
        }
    }

    /// Returns the last position that a member has stored, if this node leads.
    fn matched(&self, id: u64) -> Option<u64> {
        let progress = self.raft.raft.prs().get(id);
        progress.map(|progress| progress.matched)
    }

    pub(super) fn status(&self) -> Status {
        Status {
            node: self.raft.raft.id,
            leader: self.raft.raft.leader_id,
            term: self.raft.raft.term,
            committed: self.committed,
            matched: match self.is_leader() {
                true => self
                    .current
                    .members
                    .iter()
                    .filter_map(|member| Some((member.id, self.matched(member.id)?)))
                    .collect(),
                false => Vec::new(),
            },
            current: self.current.clone(),
        }
    }
}
