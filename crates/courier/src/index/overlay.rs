//! Messages that are applied while a transaction commits.
//!
//! A commit takes as long as the disk needs, and the tables cannot change during a commit. A message rarely needs the
//! tables, because three things are in memory: the members of its conversation, the last message number of the
//! conversation, and the ends of the recipients' queues. The check of the idempotency key needs only the tables before
//! the transaction and the keys of later messages. Such messages are applied at once, and written to their tables by
//! the next transaction. Acknowledgements have no effects and are deferred. The first command of another kind waits for
//! the commit, and so do all later ones.

use super::keys::fingerprint;
use super::keys::{Keyed, Recent, Use, UserKey};
use super::machine::{At, Machine, SideEffects};
use super::tables::{Tables, keys_of_day};
use crate::command::{Acknowledgement, Command, CommandResult, Outcome, Posting};
use crate::log::Reply;
use crate::model::Millis;
use redb::{ReadOnlyTable, ReadTransaction, TableDefinition, TableError};
use rustc_hash::FxHashMap;

/// The keys known during a commit, and the messages applied during it.
pub(super) struct CommitOverlay {
    /// The idempotency keys of the last days, before the transaction.
    before: Vec<ReadOnlyTable<UserKey, Use>>,
    /// The keys that the transaction has added.
    added: Keyed,
    pub after: DeferredWrites,
}

/// Changes applied during a commit that are not in the tables yet.
#[derive(Default)]
pub(super) struct DeferredWrites {
    keys: FxHashMap<UserKey, Use>,
    acknowledged: Vec<(Vec<Acknowledgement>, Millis, Option<Reply>)>,
}

impl CommitOverlay {
    /// Creates the overlay of a complete, uncommitted transaction. `read` began before that transaction.
    pub fn new(
        read: &ReadTransaction,
        days: &[u64],
        added: Keyed,
    ) -> Result<CommitOverlay, redb::Error> {
        let mut before = Vec::new();
        for &day in days.iter().rev() {
            let name = keys_of_day(day);
            let table: TableDefinition<'_, UserKey, Use> = TableDefinition::new(&name);
            match read.open_table(table) {
                Ok(keys) => before.push(keys),
                // The transaction has created the table.
                Err(TableError::TableDoesNotExist(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(CommitOverlay {
            before,
            added,
            after: DeferredWrites::default(),
        })
    }

    fn is_known(&self, place: &UserKey) -> Result<bool, redb::Error> {
        if self.added.contains(place) || self.after.keys.contains_key(place) {
            return Ok(true);
        }
        for keys in &self.before {
            if keys.get(place)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl DeferredWrites {
    /// Writes the changes to the tables, and answers the deferred acknowledgements.
    pub fn settle(
        self,
        machine: &mut Machine,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
    ) -> Result<(), redb::Error> {
        for (place, used) in self.keys {
            recent.insert(place, used)?;
        }
        for (acknowledged, at, reply) in self.acknowledged {
            for acknowledgement in acknowledged {
                machine.acknowledge(tables, acknowledgement, at)?;
            }
            if let Some(reply) = reply {
                let _ = reply.send(Ok(Ok(CommandResult::Noted)));
            }
        }
        Ok(())
    }
}

/// The result of applying a command without the tables.
pub(super) enum Deferral {
    Applied(Outcome),
    /// The command is deferred: it has no effects, and is answered when it is in the tables.
    Waits,
    /// The command must wait for the tables.
    NeedsTables(Command),
}

impl Machine {
    /// Applies a command without the tables, if possible.
    pub(super) fn apply_during_commit(
        &mut self,
        overlay: &mut CommitOverlay,
        entry: At,
        command: Command,
        reply: &mut Option<Reply>,
        caused: &mut SideEffects,
    ) -> Result<Deferral, redb::Error> {
        let version = command.version();
        let own = command.is_own();
        let posting = match command {
            Command::Acknowledge(all) => {
                self.skip(entry);
                self.state.version = self.state.version.max(version);
                let waits = (all, entry.taken, reply.take());
                overlay.after.acknowledged.push(waits);
                return Ok(Deferral::Waits);
            }
            Command::Post(posting) | Command::Send(posting) => posting,
            other => return Ok(Deferral::NeedsTables(other)),
        };
        let place = posting.key.map(|key| (posting.sender.0, key));
        if self.is_full() || !self.can_defer(overlay, entry, &posting, place.as_ref(), own)? {
            return Ok(Deferral::NeedsTables(posting.command(own)));
        }
        let conversation = posting.conversation;
        let members = self.members[&conversation].clone();
        let number = self.numbers[&conversation] + 1;
        if let Some(place) = place {
            let used = (conversation.0, number, fingerprint(&posting.text));
            overlay.after.keys.insert(place, used);
        }
        self.skip(entry);
        self.state.version = self.state.version.max(version);
        let message = posting.into_message(number);
        let outcome = self.store(None, entry, message, &members, own, caused)?;
        Ok(Deferral::Applied(outcome))
    }

    fn can_defer(
        &self,
        overlay: &CommitOverlay,
        entry: At,
        posting: &Posting,
        place: Option<&UserKey>,
        own: bool,
    ) -> Result<bool, redb::Error> {
        let sender = posting.sender;
        let Some(members) = self.members.get(&posting.conversation) else {
            return Ok(false);
        };
        let mut to = members.iter().copied().filter(|&to| own || to != sender);
        if members.binary_search(&sender).is_err()
            || !self.numbers.contains_key(&posting.conversation)
            || !self.queues.knows(&mut to)
        {
            return Ok(false);
        }
        match place {
            None => Ok(true),
            // The first key of a day needs a new table.
            Some(_) if !self.state.days.has_come_to(entry.taken.day()) => Ok(false),
            Some(place) => Ok(!overlay.is_known(place)?),
        }
    }
}
