//! Idempotency keys: which message a key of a user was used for.
//!
//! They lie in a table per day, by the log's clock, and are looked for in the tables of the last
//! [`KEPT`] days on which there were any. So a key is remembered for a day at least, forgetting costs
//! nothing but the deletion of a table, and a clock that was wrong once does not empty them: its day
//! counts as one of the three.

use super::tables::{Keys, keys_of_day, open_keys};
use redb::{ReadableTable, TableDefinition, WriteTransaction};

/// Days whose keys are kept.
const KEPT: usize = 3;

/// The idempotency keys of the last days.
pub(super) struct Recent<'t> {
    txn: &'t WriteTransaction,
    /// In ascending order.
    days: Vec<(u64, Keys<'t>)>,
}

/// Conversation, number and fingerprint of the message that a key was used for.
type Use = (u64, u64, u64);

impl<'t> Recent<'t> {
    /// Opens the tables of these days.
    pub fn open(txn: &'t WriteTransaction, days: &[u64]) -> Result<Recent<'t>, redb::Error> {
        let mut open = Vec::with_capacity(KEPT + 1);
        for &day in days {
            open.push((day, open_keys(txn, day)?));
        }
        Ok(Recent { txn, days: open })
    }

    /// The days, in ascending order.
    pub fn days(&self) -> impl Iterator<Item = u64> {
        self.days.iter().map(|&(day, _)| day)
    }

    /// Makes this day the latest, if it is later, and forgets the keys of the oldest.
    pub fn turn_to(&mut self, day: u64) -> Result<bool, redb::Error> {
        if self.days.last().is_some_and(|&(latest, _)| day <= latest) {
            return Ok(false);
        }
        self.days.push((day, open_keys(self.txn, day)?));
        while self.days.len() > KEPT {
            let (old, keys) = self.days.remove(0);
            // A table can be deleted only when it is not open.
            drop(keys);
            let name = keys_of_day(old);
            let table = TableDefinition::<(u64, [u8; 16]), Use>::new(&name);
            self.txn.delete_table(table)?;
        }
        Ok(true)
    }

    /// What a key was used for.
    pub fn get(&self, row: (u64, [u8; 16])) -> Result<Option<Use>, redb::Error> {
        for (_, keys) in self.days.iter().rev() {
            if let Some(known) = keys.get(row)? {
                return Ok(Some(known.value()));
            }
        }
        Ok(None)
    }

    /// Remembers it with the latest day.
    pub fn insert(&mut self, row: (u64, [u8; 16]), value: Use) -> Result<(), redb::Error> {
        if let Some((_, keys)) = self.days.last_mut() {
            keys.insert(row, value)?;
        }
        Ok(())
    }
}
