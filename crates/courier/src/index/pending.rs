//! Messages that are applied and do not lie in their table yet.
//!
//! A row that is put into a table by itself costs a way down the table's tree. The messages of a
//! conversation will be neighbours, and cost one way together. So they are kept until there are many,
//! and then written conversation by conversation.

use super::tables::Tables;
use std::ops::{Bound, Range};

/// Messages that are kept.
const MOST_ROWS: usize = 1 << 12;
/// Bytes of messages that are kept.
const MOST_BYTES: usize = 1 << 20;

/// A conversation and a message's number in it.
type Place = (u64, u64);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Where each lies in `bytes`.
    messages: Vec<(Place, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Pending {
    /// Adds a message; its number is above those its conversation had before.
    pub fn message(&mut self, place: Place, stored: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(stored);
        self.messages.push((place, begin..self.bytes.len()));
    }

    /// Whether it is time to write them.
    pub fn are_many(&self) -> bool {
        self.messages.len() >= MOST_ROWS || self.bytes.len() >= MOST_BYTES
    }

    /// Puts all of them into their table.
    pub fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        let Pending { messages, bytes } = self;
        messages.sort_unstable_by_key(|&(place, _)| place);
        for run in messages.chunk_by(|(one, _), (next, _)| one.0 == next.0) {
            let mut cursor = tables.messages.upper_bound_mut(Bound::Included(run[0].0))?;
            for (place, at) in run {
                cursor.insert_before(place, &bytes[at.clone()])?;
            }
            cursor.close()?;
        }
        messages.clear();
        bytes.clear();
        Ok(())
    }
}
