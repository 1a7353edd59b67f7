//! The thread of a replicated log: consensus, the disk, and the feed of the index.
//!
//! **Proposals.** A command is proposed in one term, at the leader of that term, which accepts it only in that term and
//! once. A member proposes nothing until an entry of the current term is committed: only then are commands that were
//! proposed in earlier terms either in the log or lost, and lost ones are proposed again. So a command is stored exactly
//! once, whichever leaders fail.
//!
//! **Feeding.** Committed entries are read from the storage as fast as the index takes them, so a slow index neither
//! delays the log nor fills the memory.

mod commit;
mod members;
mod propose;
mod state;
#[cfg(test)]
mod tests;

pub(super) use state::Core;

use super::entry::HEAD;
use super::frame::Frame;
use super::shared::Work;
use crate::log::LogError;
use crossbeam_channel::RecvTimeoutError;
use protobuf::Message as _;
use raft::SnapshotStatus;
use raft::eraftpb::{Message, MessageType};
use state::{LARGEST_GROUP, Pending};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The interval of ticks.
const TICK: Duration = Duration::from_millis(40);
/// The number of ticks after which an unanswered read is repeated.
const READ_AGAIN: u32 = 5;
/// The number of ticks after which reads fail.
const READ_FAILS: u32 = 50;
/// The number of ticks after which commands that are not committed are sent to the leader again.
const AGAIN: u32 = 25;
/// The number of ticks without a leader after which commands are refused.
const LOST: u32 = 75;
/// The number of ticks for which a leader waits for its successor before it stops.
const HANDOVER: u32 = 75;

impl Core {
    /// Runs until the log is closed or fails.
    pub fn run(mut self) {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.work()));
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.shared.failed.store(true, Relaxed);
                tracing::error!("the log cannot be written: {error}");
                self.give_up(&LogError::Failed(error.to_string()));
            }
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map_or("", String::as_str);
                // The library ends like this if the leader has committed more than the log of this node has.
                let reason = match said.contains("out of range") {
                    true => "its log lacks entries that this node had stored: remove its data directory, remove the node from the cluster, and let it join again".to_owned(),
                    false => format!("its log has failed: {said}; start the node again"),
                };
                self.stop(reason);
            }
        }
        self.shared.leader.store(0, Relaxed);
        self.shared.leads.store(false, Relaxed);
    }

    fn work(&mut self) -> io::Result<()> {
        let mut next = Instant::now() + TICK;
        self.ready()?;
        loop {
            let mut pause = next.saturating_duration_since(Instant::now());
            if self.fed < self.committed {
                // The index takes no more entries now.
                pause = pause.min(Duration::from_millis(1));
            }
            let mut next_work = match self.works.recv_timeout(pause) {
                Ok(work) => Some(work),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let mut taken = 0;
            while let Some(work) = next_work {
                self.take(work);
                taken += 1;
                next_work = if taken < LARGEST_GROUP {
                    self.works.try_recv().ok()
                } else {
                    None
                };
            }
            if Instant::now() >= next {
                next = Instant::now() + TICK;
                self.tick();
            }
            self.propose();
            self.ready()?;
            if self.has_ended() {
                self.raft.mut_store().trim();
                self.give_up(&LogError::Closed);
                self.feed = None;
                return Ok(());
            }
        }
    }

    /// True if the log was closed, all accepted commands are committed or given up, and another member leads.
    fn has_ended(&mut self) -> bool {
        if self.feed.is_none() {
            return true;
        }
        let Some(age) = self.closing else {
            return false;
        };
        let is_done = self.pending.is_empty() && self.fed >= self.committed;
        let leads = self.is_leader() && !self.is_alone();
        (is_done && !leads) || age > HANDOVER
    }

    fn take(&mut self, work: Work) {
        match work {
            Work::Submit(mut data, reply) => {
                self.numbered += 1;
                let number = self.numbered;
                data[HEAD - 8..HEAD].copy_from_slice(&number.to_le_bytes());
                let pending = Pending { reply, data: Some(data), term: 0 };
                self.pending.insert(number, pending);
                self.unproposed.push_back(number);
            }
            Work::Frame(from, frame) => self.receive(from, frame),
            Work::Link(to, Some(link)) => {
                self.links.insert(to, link);
                if to == self.raft.raft.leader_id {
                    self.propose_again();
                }
            }
            Work::Link(to, None) => {
                self.links.remove(&to);
                self.raft.report_unreachable(to);
            }
            Work::Read(reply) => self.reads.waiting.push(reply),
            Work::Change(change, reply) => self.change(change, reply),
            Work::Transfer(to) => self.hand_over(to),
            Work::BaseAt(position, reply) => {
                let _ = reply.send(self.raft.store().base_at(position));
            }
            Work::Status(reply) => {
                let _ = reply.send(self.status());
            }
            Work::Forget(position) => self.raft.mut_store().release(position),
            Work::Removed => self.stop(
                "it was removed from the cluster; to return, it must join with an empty --data directory".to_owned(),
            ),
            Work::Restart => self.feed = None,
            Work::Close => {
                self.closing = Some(0);
                self.hand_over(None);
            }
        }
    }

    fn receive(&mut self, from: u64, frame: Frame) {
        match frame {
            Frame::Raft(bytes) => {
                let Ok(message) = Message::parse_from_bytes(&bytes) else {
                    return;
                };
                // Snapshots arrive over a separate connection, and commands with their term.
                let is_other = matches!(
                    message.get_msg_type(),
                    MessageType::MsgSnapshot | MessageType::MsgPropose
                );
                if message.from == from && !is_other {
                    // raft reports messages of unknown members, which are not an error here.
                    let _ = self.raft.step(message);
                }
            }
            Frame::Propose {
                origin,
                term,
                after,
                proposals,
            } => {
                let last = self.proposed.get(&origin).copied().unwrap_or(0);
                // A process whose commands were lost on their way sends all of them again.
                if !self.is_leader() || self.raft.raft.term != term || last < after {
                    return;
                }
                let new = proposals
                    .into_iter()
                    .filter(|proposal| proposal.number > last);
                let new: Vec<_> = new.collect();
                let Some(number) = new.last().map(|last| last.number) else {
                    return;
                };
                if self.step_entries(new.into_iter().map(|proposal| proposal.data)) {
                    self.proposed.insert(origin, number);
                }
            }
            Frame::Snapshot { term, position } => {
                if term != self.raft.raft.term || self.is_leader() {
                    return;
                }
                if position > self.committed {
                    self.shared.wants_snapshot.send_replace(Some(from));
                    return;
                }
                // This node has started from a copy of the index, which the leader does not know.
                let mut answer = Message::default();
                answer.set_msg_type(MessageType::MsgAppendResponse);
                answer.from = self.raft.raft.id;
                answer.to = from;
                answer.term = term;
                answer.index = self.committed;
                self.send(vec![answer]);
            }
            Frame::Presence(_) | Frame::Ping | Frame::Pong => {}
        }
    }

    fn tick(&mut self) {
        self.raft.tick();
        if let Some(age) = &mut self.closing {
            *age += 1;
        }
        self.reads.age += 1;
        if self.reads.age > READ_FAILS && !self.reads.asked.is_empty() {
            for read in self.reads.asked.drain(..) {
                let reason = "a majority of the nodes does not answer";
                let _ = read.send(Err(LogError::Unreachable(reason.to_owned())));
            }
        }
        self.idle += 1;
        if self.idle >= AGAIN && !self.pending.is_empty() && !self.is_leader() {
            self.propose_again();
        }
        self.lost = if self.raft.raft.leader_id == 0 {
            self.lost + 1
        } else {
            0
        };
        self.shared.lost.store(self.lost >= LOST, Relaxed);
        // Nobody waits for these commands, and no leader knows them.
        self.pending.retain(|_, pending| {
            pending.term != 0 || pending.data.is_none() || !pending.reply.is_closed()
        });
        if self.is_leader() {
            self.promote();
        }
    }

    /// Asks the leader for its position.
    fn read(&mut self) {
        let reads = &mut self.reads;
        if reads.asked.is_empty() && !reads.waiting.is_empty() {
            reads.asked = std::mem::take(&mut reads.waiting);
            reads.number += 1;
            reads.age = 0;
        } else if reads.asked.is_empty() || reads.age == 0 || !reads.age.is_multiple_of(READ_AGAIN)
        {
            return;
        } else {
            reads.age += 1;
        }
        let context = [self.origin.to_le_bytes(), self.reads.number.to_le_bytes()].concat();
        self.raft.read_index(context);
    }

    fn ready(&mut self) -> io::Result<()> {
        self.read();
        while self.raft.has_ready() {
            let mut ready = self.raft.ready();
            self.send(ready.take_messages());
            for read in ready.take_read_states() {
                if read.request_ctx[8..] == self.reads.number.to_le_bytes() {
                    for reply in self.reads.asked.drain(..) {
                        let _ = reply.send(Ok(read.index));
                    }
                }
            }
            let committed = ready.take_committed_entries();
            self.commit(committed);
            if ready.must_sync() {
                let hard = match ready.hs() {
                    Some(hard) => hard.clone(),
                    None => self.raft.raft.hard_state(),
                };
                let entries = ready.take_entries();
                self.raft.mut_store().append(hard, &entries)?;
                self.groups.inc();
            } else if let Some(hard) = ready.hs() {
                let commit = hard.commit;
                self.raft.mut_store().commit(commit);
            }
            self.send(ready.take_persisted_messages());
            let mut light = self.raft.advance_append(ready);
            if let Some(position) = light.commit_index() {
                self.raft.mut_store().commit(position);
            }
            self.send(light.take_messages());
            let committed = light.take_committed_entries();
            self.commit(committed);
            self.raft.advance_apply();
            self.read();
        }
        for (to, is_snapshot) in std::mem::take(&mut self.unsent) {
            match is_snapshot {
                // The member restarts from a copy of the index, and reports its position then.
                true => self.raft.report_snapshot(to, SnapshotStatus::Failure),
                false => self.raft.report_unreachable(to),
            }
        }
        let raft = &self.raft.raft;
        if self.term != raft.term {
            (self.term, self.sent) = (raft.term, 0);
            self.proposed.clear();
        }
        self.shared.leader.store(raft.leader_id, Relaxed);
        let leads = self.is_leader() && self.current.term == self.term;
        self.shared.leads.store(leads, Relaxed);
        self.feed_index();
        self.shared.waiting.store(self.pending.len(), Relaxed);
        Ok(())
    }

    fn send(&mut self, messages: Vec<Message>) {
        for message in messages {
            let to = message.to;
            let is_snapshot = message.get_msg_type() == MessageType::MsgSnapshot;
            let frame = match is_snapshot {
                true => Frame::Snapshot {
                    term: self.raft.raft.term,
                    position: message.get_snapshot().get_metadata().index,
                },
                false => Frame::Raft(message.write_to_bytes().unwrap_or_default()),
            };
            let link = self.links.get(&to);
            let is_sent = link.is_some_and(|link| link.try_send(frame).is_ok());
            if is_snapshot || !is_sent {
                self.unsent.push((to, is_snapshot));
            }
        }
    }
}
