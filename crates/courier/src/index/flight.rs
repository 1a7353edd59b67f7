//! Messages that are taken while a transaction goes to disk.
//!
//! A checkpoint may take as long as the disk likes. Meanwhile the tables cannot be changed, and those who
//! post would wait. But what a message needs is in memory most of the time: the members and the last number
//! of its conversation, and the ends of its recipients' queues. Whether its key was used is found in the
//! tables as they were before the transaction, and in what was noted of later ones. So such messages are
//! applied at once, and lie in their tables later. Acknowledgements, which cause nothing, wait. The first
//! command of another kind waits for the disk, and all that come after it.

use super::keys::fingerprint;
use super::keys::{Keyed, Place, Recent, Use};
use super::machine::{At, Caused, Machine};
use super::tables::{Tables, keys_of_day};
use crate::command::{Acknowledgement, Command, Done, Outcome, Posting};
use crate::log::Reply;
use crate::model::Millis;
use redb::{ReadOnlyTable, ReadTransaction, TableDefinition, TableError};
use rustc_hash::FxHashMap;

/// See the [module](self).
pub(super) struct Flight {
    /// The keys of the last days, as they were before the transaction.
    before: Vec<ReadOnlyTable<Place, Use>>,
    /// Those that the transaction adds.
    added: Keyed,
    pub after: Taken,
}

/// What was taken while a transaction went to disk, and is not in the tables yet.
#[derive(Default)]
pub(super) struct Taken {
    keys: FxHashMap<Place, Use>,
    acknowledged: Vec<(Vec<Acknowledgement>, Millis, Option<Reply>)>,
}

impl Flight {
    /// Begins when the transaction has everything, and before it is committed. `read` began before it.
    pub fn new(read: &ReadTransaction, days: &[u64], added: Keyed) -> Result<Flight, redb::Error> {
        let mut before = Vec::new();
        for &day in days.iter().rev() {
            let name = keys_of_day(day);
            let table: TableDefinition<'_, Place, Use> = TableDefinition::new(&name);
            match read.open_table(table) {
                Ok(keys) => before.push(keys),
                // The transaction has made it.
                Err(TableError::TableDoesNotExist(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Flight {
            before,
            added,
            after: Taken::default(),
        })
    }

    fn is_known(&self, place: &Place) -> Result<bool, redb::Error> {
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

impl Taken {
    /// Puts it into the tables, and answers those who waited for that.
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
                let _ = reply.send(Ok(Ok(Done::Noted)));
            }
        }
        Ok(())
    }
}

/// What became of a command.
pub(super) enum Flown {
    Applied(Outcome),
    /// It causes nothing, and is answered when it is in the tables.
    Waits,
    /// It needs the tables.
    Grounded(Command),
}

impl Machine {
    /// Applies a command without the tables, if that can be done.
    pub(super) fn fly(
        &mut self,
        flight: &mut Flight,
        entry: At,
        command: Command,
        reply: &mut Option<Reply>,
        caused: &mut Caused,
    ) -> Result<Flown, redb::Error> {
        let version = command.version();
        let own = command.is_own();
        let posting = match command {
            Command::Acknowledge(all) => {
                self.skip(entry);
                self.state.version = self.state.version.max(version);
                let waits = (all, entry.taken, reply.take());
                flight.after.acknowledged.push(waits);
                return Ok(Flown::Waits);
            }
            Command::Post(posting) | Command::Send(posting) => posting,
            other => return Ok(Flown::Grounded(other)),
        };
        let place = posting.key.map(|key| (posting.sender.0, key));
        if self.is_full() || !self.can_fly(flight, entry, &posting, place.as_ref(), own)? {
            return Ok(Flown::Grounded(posting.command(own)));
        }
        let conversation = posting.conversation;
        let members = self.members[&conversation].clone();
        let number = self.numbers[&conversation] + 1;
        if let Some(place) = place {
            let used = (conversation.0, number, fingerprint(&posting.text));
            flight.after.keys.insert(place, used);
        }
        self.skip(entry);
        self.state.version = self.state.version.max(version);
        let message = posting.into_message(number);
        let outcome = self.store(None, entry, message, &members, own, caused)?;
        Ok(Flown::Applied(outcome))
    }

    fn can_fly(
        &self,
        flight: &Flight,
        entry: At,
        posting: &Posting,
        place: Option<&Place>,
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
            // The first key of a day makes a table.
            Some(_) if !self.state.days.has_come_to(entry.taken.day()) => Ok(false),
            Some(place) => Ok(!flight.is_known(place)?),
        }
    }
}
