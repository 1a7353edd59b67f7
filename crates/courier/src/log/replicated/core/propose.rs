//! Proposals: commands of this process on their way into the log.

use super::state::{Core, LARGEST_GROUP, LARGEST_RECORD, Pending};
use crate::log::replicated::frame::{Frame, Proposal};
use raft::eraftpb::{Entry as LogEntry, Message, MessageType};

impl Core {
    /// Proposes commands that have not been proposed in this term, after the first commit in it.
    pub(super) fn propose(&mut self) {
        let (leader, term) = (self.raft.raft.leader_id, self.raft.raft.term);
        let has_committed = self.current.term == term;
        if leader == 0 || !has_committed || self.raft.raft.lead_transferee.is_some() {
            return;
        }
        while !self.unproposed.is_empty() {
            let (mut numbers, mut proposals, mut bytes) = (Vec::new(), Vec::new(), 0);
            while let Some(&number) = self.unproposed.front()
                && numbers.len() < LARGEST_GROUP
                && bytes < LARGEST_RECORD
            {
                self.unproposed.pop_front();
                if let Some(Pending {
                    data: Some(data), ..
                }) = self.pending.get(&number)
                {
                    bytes += data.len();
                    numbers.push(number);
                    proposals.push(Proposal {
                        number,
                        data: data.clone(),
                    });
                }
            }
            if numbers.is_empty() {
                return;
            }
            let is_sent = match leader == self.raft.raft.id {
                true => self.step_entries(proposals.into_iter().map(|proposal| proposal.data)),
                false => {
                    let (origin, after) = (self.origin, self.sent);
                    let frame = Frame::Propose {
                        origin,
                        term,
                        after,
                        proposals,
                    };
                    let link = self.links.get(&leader);
                    link.is_some_and(|link| link.try_send(frame).is_ok())
                }
            };
            if !is_sent {
                numbers
                    .into_iter()
                    .rev()
                    .for_each(|number| self.unproposed.push_front(number));
                return;
            }
            self.sent = numbers.last().copied().unwrap_or(0);
            for number in numbers {
                if let Some(pending) = self.pending.get_mut(&number) {
                    pending.term = term;
                }
            }
        }
    }

    /// Proposes again what was proposed in this term and is not committed: it may be lost on its way, and the leader
    /// recognizes what it has received. What was proposed in an earlier term may be in the leader's log.
    pub(super) fn propose_again(&mut self) {
        let term = self.term;
        self.withdraw(|proposed| proposed == term);
    }

    /// Proposes again what was proposed in earlier terms and is not committed, after the first commit in a term.
    pub(super) fn propose_lost(&mut self) {
        let term = self.current.term;
        self.withdraw(|proposed| proposed < term);
    }

    /// Treats commands as not proposed if they were proposed in a term for which `is_lost` is true.
    fn withdraw(&mut self, is_lost: impl Fn(u64) -> bool) {
        (self.sent, self.idle) = (0, 0);
        self.unproposed.clear();
        for (&number, pending) in &mut self.pending {
            if pending.data.is_none() {
                continue;
            }
            if pending.term == 0 || is_lost(pending.term) {
                pending.term = 0;
                self.unproposed.push_back(number);
            }
        }
    }

    /// Appends entries to the log of this leader.
    pub(super) fn step_entries(&mut self, data: impl Iterator<Item = Vec<u8>>) -> bool {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = self.raft.raft.id;
        let entries = data.map(|data| LogEntry {
            data: data.into(),
            ..LogEntry::default()
        });
        message.set_entries(entries.collect::<Vec<_>>().into());
        self.raft.step(message).is_ok()
    }
}
