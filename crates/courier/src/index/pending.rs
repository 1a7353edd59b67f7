//! Messages that are applied and do not lie in their tables yet.
//!
//! A row that is put into a table by itself costs a way down the table's tree. Rows that will be
//! neighbours cost one way together: the messages of a conversation, and what lies in the queue of
//! a user. So they are kept until there are many, and then written run by run.

use super::tables::Tables;
use redb::{Table, Value};
use std::ops::{Bound, Range};

/// Rows that are kept, of both tables together.
const MOST_ROWS: usize = 1 << 12;
/// Bytes of messages that are kept.
const MOST_BYTES: usize = 1 << 20;

/// A conversation and a message's number in it, or a user and a sequence.
type Place = (u64, u64);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Where each lies in `bytes`.
    messages: Vec<(Place, Range<usize>)>,
    bytes: Vec<u8>,
    queued: Vec<(Place, Place)>,
}

impl Pending {
    /// Adds a message; its number is above those its conversation had before.
    pub fn message(&mut self, place: Place, stored: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(stored);
        self.messages.push((place, begin..self.bytes.len()));
    }

    /// Adds a message to a user's queue; its sequence is above those the queue had before.
    pub fn queued(&mut self, place: Place, message: Place) {
        self.queued.push((place, message));
    }

    /// Whether it is time to write them.
    pub fn are_many(&self) -> bool {
        self.messages.len() + self.queued.len() >= MOST_ROWS || self.bytes.len() >= MOST_BYTES
    }

    /// Puts all of them into their tables.
    pub fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        let Pending {
            messages,
            bytes,
            queued,
        } = self;
        write_runs(&mut tables.messages, messages, |at| &bytes[at.clone()])?;
        write_runs(&mut tables.queues, queued, |&message| message)?;
        bytes.clear();
        Ok(())
    }
}

/// Puts rows into a table, those of each conversation or user as a run, and leaves none.
fn write_runs<'v, R, V: Value + 'static>(
    table: &mut Table<'_, Place, V>,
    rows: &mut Vec<(Place, R)>,
    value: impl Fn(&R) -> V::SelfType<'v>,
) -> Result<(), redb::Error> {
    rows.sort_unstable_by_key(|&(place, _)| place);
    for run in rows.chunk_by(|one, next| one.0.0 == next.0.0) {
        let mut cursor = table.upper_bound_mut(Bound::Included(run[0].0))?;
        for (place, row) in run {
            cursor.insert_before(place, value(row))?;
        }
        cursor.close()?;
    }
    rows.clear();
    Ok(())
}
