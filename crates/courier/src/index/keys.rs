//! Idempotency keys of users, each with the message for which the key was used.
//!
//! Keys are stored in a table for each day, by the log's clock, and are looked up in the tables of the last [`KEPT`]
//! days with keys. So a key is remembered for at least a day, and old keys are removed by deleting a table.
//!
//! The clock may be wrong. A new table is created when the clock reaches a day without one; if the clock goes back, the
//! last table is used. So a clock that was temporarily years ahead only creates one table, which counts as one of the
//! [`KEPT`] tables.

use super::tables::{Keys, keys_of_day, open_keys};
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// The number of days whose keys are kept.
const KEPT: usize = 3;

/// The days of the idempotency keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Days {
    /// The days with a table, in the order of creation.
    pub tables: Vec<u64>,
    /// The day of the last key.
    pub last: u64,
}

impl Days {
    /// True if a key of this day needs no new table.
    pub fn has_come_to(&self, day: u64) -> bool {
        day == self.last && !self.tables.is_empty()
    }
}

/// The keys that were added or changed.
pub(super) type Keyed = FxHashSet<UserKey>;

/// The idempotency keys of the last days.
pub(super) struct Recent<'t> {
    txn: &'t WriteTransaction,
    /// The added keys.
    added: Keyed,
    /// The days and their tables, in the order of creation.
    days: Vec<(u64, Keys<'t>)>,
    last: u64,
}

/// A user and a hashed key.
pub(super) type UserKey = (u64, [u8; 16]);
/// The use of a key: the conversation, the number and the fingerprint of the message.
pub(super) type Use = (u64, u64, u64);

impl<'t> Recent<'t> {
    /// Opens the tables of these days.
    pub fn open(txn: &'t WriteTransaction, days: &Days) -> Result<Recent<'t>, redb::Error> {
        let mut open = Vec::with_capacity(KEPT + 1);
        for &day in &days.tables {
            open.push((day, open_keys(txn, day)?));
        }
        Ok(Recent {
            txn,
            added: Keyed::default(),
            days: open,
            last: days.last,
        })
    }

    /// Returns the days in their stored form.
    pub fn days(&self) -> Days {
        Days {
            tables: self.days.iter().map(|&(day, _)| day).collect(),
            last: self.last,
        }
    }

    /// Starts the day of a key, and removes the oldest day if this one is new. Returns true if anything has
    /// changed.
    pub fn turn_to(&mut self, day: u64) -> Result<bool, redb::Error> {
        if day == self.last && !self.days.is_empty() {
            return Ok(false);
        }
        let went_on = day > self.last || self.days.is_empty();
        self.last = day;
        if !went_on || self.days.iter().any(|&(known, _)| known == day) {
            return Ok(true);
        }
        self.days.push((day, open_keys(self.txn, day)?));
        while self.days.len() > KEPT {
            let (old, keys) = self.days.remove(0);
            // A table must be closed before it can be deleted.
            drop(keys);
            let name = keys_of_day(old);
            let table = TableDefinition::<(u64, [u8; 16]), Use>::new(&name);
            self.txn.delete_table(table)?;
        }
        Ok(true)
    }

    /// Returns the message for which a key was used.
    pub fn get(&self, row: (u64, [u8; 16])) -> Result<Option<Use>, redb::Error> {
        for (_, keys) in self.days.iter().rev() {
            if let Some(known) = keys.get(row)? {
                return Ok(Some(known.value()));
            }
        }
        Ok(None)
    }

    /// Stores a key in the latest table.
    pub fn insert(&mut self, row: UserKey, value: Use) -> Result<(), redb::Error> {
        if let Some((_, keys)) = self.days.last_mut() {
            keys.insert(row, value)?;
            self.added.insert(row);
        }
        Ok(())
    }

    /// Returns the keys that were added since the tables were opened.
    pub fn into_added(self) -> Keyed {
        self.added
    }
}

/// Returns a hash of a text, which distinguishes messages with the same key.
pub(super) fn fingerprint(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    let (first, _) = hash.as_bytes().split_at(8);
    first
        .iter()
        .fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}
