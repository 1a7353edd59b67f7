//! Idempotency keys: which message a key of a user was used for.
//!
//! They lie in a table per day of their messages, and are looked for in that of the latest day and
//! of the day before. So a key is remembered for a day at least, and forgetting costs nothing but
//! the deletion of a table. What is the latest day is known from the messages, not from a clock.

use super::tables::{Keys, keys_of_day, open_keys};
use redb::{ReadableTable, TableDefinition, WriteTransaction};

/// The idempotency keys of the latest day and of the day before.
pub(super) struct Recent<'t> {
    txn: &'t WriteTransaction,
    day: u64,
    today: Option<Keys<'t>>,
    yesterday: Option<Keys<'t>>,
}

/// Conversation, number and fingerprint of the message that a key was used for.
type Use = (u64, u64, u64);

impl<'t> Recent<'t> {
    /// Opens the tables of this day and the one before.
    pub fn open(txn: &'t WriteTransaction, day: u64) -> Result<Recent<'t>, redb::Error> {
        let mut recent = Recent {
            txn,
            day,
            today: None,
            yesterday: None,
        };
        recent.open_day(day)?;
        Ok(recent)
    }

    /// The latest day.
    pub fn day(&self) -> u64 {
        self.day
    }

    fn open_day(&mut self, day: u64) -> Result<(), redb::Error> {
        // A table can be open once only.
        (self.today, self.yesterday) = (None, None);
        self.day = day;
        self.today = Some(open_keys(self.txn, day)?);
        if let Some(before) = day.checked_sub(1) {
            self.yesterday = Some(open_keys(self.txn, before)?);
        }
        Ok(())
    }

    /// Makes this day the latest, if it is later, and forgets keys older than a day.
    pub fn turn_to(&mut self, day: u64) -> Result<(), redb::Error> {
        if day <= self.day {
            return Ok(());
        }
        let before = self.day;
        self.open_day(day)?;
        for old in [before.saturating_sub(1), before] {
            if old + 1 < day {
                let name = keys_of_day(old);
                let table = TableDefinition::<(u64, [u8; 16]), Use>::new(&name);
                self.txn.delete_table(table)?;
            }
        }
        Ok(())
    }

    /// What a key was used for.
    pub fn get(&self, row: (u64, [u8; 16])) -> Result<Option<Use>, redb::Error> {
        for keys in self.today.iter().chain(&self.yesterday) {
            if let Some(known) = keys.get(row)? {
                return Ok(Some(known.value()));
            }
        }
        Ok(None)
    }

    /// Remembers it with the latest day.
    pub fn insert(&mut self, row: (u64, [u8; 16]), value: Use) -> Result<(), redb::Error> {
        if let Some(today) = &mut self.today {
            today.insert(row, value)?;
        }
        Ok(())
    }
}
