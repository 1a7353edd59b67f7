//! The state machine that applies commands: counters, caches of the tables, and pending rows.

use super::chunk::OpenChunk;
use super::keys::Days;
use super::pending::Pending;
use super::queue::{Queues, Tails};
use super::row::{decode, encode};
use super::tables::{STATE, Tables};
use crate::command::{CommandResult, Delivery, Outcome};
use crate::model::{Conversation, ConversationId, Message, Millis, SessionId, UserId};
use redb::{ReadTransaction, ReadableTable};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// The approximate number of entries at which caches are emptied.
const CACHED: usize = 1 << 20;
/// The number of completed ranges of queues that are collected before they are written, so that neighbouring rows are
/// written together.
const MANY_RUNS: usize = 1 << 12;
/// The number of rows that are written at a time, so that new commands need not wait until all rows are written.
const SLICE: usize = 1 << 7;
/// The number of completed ranges above which all rows are written at once, because they arrive too fast.
const MOST_RUNS: usize = 1 << 19;

/// The counters, stored in the index with the counted data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub format: u32,
    /// The identity of the log whose entries were applied.
    pub log: u64,
    /// The log entry applied last.
    pub position: u64,
    /// Zeros: a part of the layout that is not used.
    pub digest: [u8; 16],
    pub users: u64,
    pub conversations: u64,
    pub days: Days,
    /// The bytes of all stored messages.
    pub bytes: u64,
    pub growing: OpenChunk,
    /// The newest version of a command that was applied.
    pub version: u8,
}

/// The effects of applied entries, in addition to their results.
#[derive(Debug, Default)]
pub(super) struct SideEffects {
    pub deliveries: Vec<Delivery>,
    /// Sessions that have ended.
    pub closed: Vec<(UserId, SessionId)>,
    /// Changed conversations, with the users to be notified.
    pub changed: Vec<(ConversationId, Vec<UserId>)>,
}

impl SideEffects {
    /// Removes all effects.
    pub fn clear(&mut self) {
        self.deliveries.clear();
        self.closed.clear();
        self.changed.clear();
    }
}

/// The metadata of a log entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub position: u64,
    /// The time at which the log accepted the entry.
    pub taken: Millis,
}

/// A row of the table of messages.
#[derive(Serialize, Deserialize)]
pub(super) struct MessageRow<'a> {
    pub sender: UserId,
    pub sent: Millis,
    pub text: &'a str,
}

/// The state machine that applies commands. See the [module](self).
#[derive(Default)]
pub(super) struct Machine {
    pub state: State,
    pub(super) numbers: HashMap<ConversationId, u64>,
    pub(super) queues: Queues,
    pub(super) members: HashMap<ConversationId, Arc<[UserId]>>,
    pub(super) pending: Pending,
    pub(super) scratch: Vec<u8>,
}

impl Machine {
    /// Continues at the position of this transaction's index.
    pub fn new(state: State, txn: &ReadTransaction) -> Result<Machine, redb::Error> {
        let mut machine = Machine {
            state,
            ..Machine::default()
        };
        machine.queues.read_tails(txn)?;
        Ok(machine)
    }

    /// Returns the cache of the last ranges of queues.
    pub fn tails(&self) -> Tails {
        self.queues.tails.clone()
    }

    /// Replaces this machine by another one at the same position.
    pub fn replace(&mut self, mut with: Machine) {
        let tails = self.tails();
        tails.take_over(&with.queues.tails);
        with.queues.tails = tails;
        *self = with;
    }

    /// Returns the number of queue rows that were written since the last call.
    pub fn take_written(&mut self) -> usize {
        self.queues.take_written()
    }

    /// True if applied changes must be written before more are applied.
    pub fn is_full(&self) -> bool {
        self.pending.are_too_many() || self.queues.waiting() >= MOST_RUNS
    }

    /// True if enough rows are pending to [write](Machine::write) them.
    pub fn has_many_rows(&self) -> bool {
        self.pending.are_many() || self.queues.waiting() >= MOST_RUNS
    }

    /// Writes a part of the pending rows if there are many of them. Before a commit, writes a part if more rows than
    /// one part are pending. Returns true if many rows are left.
    pub fn write_some(
        &mut self,
        tables: &mut Tables<'_>,
        before_commit: bool,
    ) -> Result<bool, redb::Error> {
        let much = if before_commit { SLICE } else { MANY_RUNS };
        if self.queues.waiting() >= much {
            self.queues.write_some(tables, SLICE)?;
        }
        Ok(self.queues.waiting() >= much)
    }

    /// Writes all pending rows, and removes acknowledged parts of queues.
    pub fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        self.pending.write(tables)?;
        match self.queues.are_more_than(CACHED) {
            true => self.queues.write_all(tables, true)?,
            false => self.queues.write(tables)?,
        }
        // The cache is emptied only now, because numbers that are not in the cache are read from the table.
        bound(&mut self.numbers);
        Ok(())
    }

    /// Writes the current position and counters. If `to_disk` is true, also writes the tails of queues.
    pub fn save(&mut self, tables: &mut Tables<'_>, to_disk: bool) -> Result<(), redb::Error> {
        self.write(tables)?;
        if to_disk {
            self.queues.keep_tails(tables)?;
        }
        let Machine { state, scratch, .. } = self;
        tables.meta.insert(STATE, encode(&[], state, scratch))?;
        Ok(())
    }

    /// Records a log entry without effect.
    pub fn skip(&mut self, at: At) {
        self.state.position = at.position;
    }

    /// Stores a message with its number. If `tables` is `None`, the tails of the recipients' queues must be cached.
    pub(super) fn store(
        &mut self,
        tables: Option<&Tables<'_>>,
        entry: At,
        message: Message,
        members: &[UserId],
        own: bool,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        let (conversation, sender) = (message.conversation, message.sender);
        let number = message.number;
        let chunk = self.state.growing.add(entry.taken);
        let sent = message.sent;
        let stored = MessageRow {
            sender,
            sent,
            text: &message.text,
        };
        let bytes = encode(&[conversation.0, number], &stored, &mut self.scratch);
        self.state.bytes += bytes.len() as u64;
        let place = (conversation.0, number);
        self.pending.message(place, bytes, chunk, entry.taken);
        self.numbers.insert(conversation, number);
        let message = Arc::new(message);
        let members = members.iter().copied();
        let recipients = members.filter(|&member| own || member != sender);
        let (queues, deliveries) = (&mut self.queues, &mut caused.deliveries);
        let place = (conversation, number);
        queues.push(tables, recipients, sender, place, |to, sequence| {
            let message = message.clone();
            deliveries.push(Delivery {
                to,
                sequence,
                message,
            });
        })?;
        Ok(Ok(CommandResult::Posted {
            number,
            sent,
            repeated: false,
        }))
    }

    pub(super) fn members(
        &mut self,
        tables: &Tables<'_>,
        conversation: ConversationId,
    ) -> Result<Option<Arc<[UserId]>>, redb::Error> {
        if let Some(members) = self.members.get(&conversation) {
            return Ok(Some(members.clone()));
        }
        let Some(row) = tables.conversations.get(conversation.0)? else {
            return Ok(None);
        };
        let known: Conversation = decode("conversation", &[conversation.0], row.value())?;
        let members: Arc<[UserId]> = known.members.into();
        bound(&mut self.members);
        self.members.insert(conversation, members.clone());
        Ok(Some(members))
    }
}

fn bound<K, V>(cache: &mut HashMap<K, V>) {
    if cache.len() >= CACHED {
        cache.clear();
    }
}
