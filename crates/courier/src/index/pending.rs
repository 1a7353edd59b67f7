//! Applied messages that are not in their table yet.
//!
//! Writing a single row costs a descent of the table's tree. The messages of a conversation are neighbours in
//! the tree, and share a descent. So messages are collected, and then written by conversation.

use super::chunk::{Chunk, note};
use super::row::number;
use super::tables::Tables;
use crate::model::Millis;
use std::ops::{Bound, Range};

/// The maximum number of pending messages.
const MOST_ROWS: usize = 1 << 12;
/// The maximum bytes of pending messages.
const MOST_BYTES: usize = 1 << 20;

/// The number of pending rows above which no rows are written while the disk is busy with a checkpoint.
const TOO_MANY_ROWS: usize = 1 << 17;
const TOO_MANY_BYTES: usize = 64 << 20;

/// A conversation and a message's number in it.
type MessageKey = (u64, u64);

/// Applied messages that are not in their table yet. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The position of each message in `bytes`, and its chunk.
    messages: Vec<(MessageKey, Range<usize>, Chunk)>,
    bytes: Vec<u8>,
    /// The chunks of the pending messages, with the time of the newest message in each.
    chunks: Vec<(Chunk, Millis)>,
}

impl Pending {
    /// Adds a message, whose number is greater than all earlier ones of its conversation.
    pub fn message(&mut self, place: MessageKey, stored: &[u8], chunk: Chunk, taken: Millis) {
        match self.chunks.last_mut() {
            Some((last, newest)) if *last == chunk => *newest = taken.max(*newest),
            _ => self.chunks.push((chunk, taken)),
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(stored);
        self.messages.push((place, begin..self.bytes.len(), chunk));
    }

    /// True if the messages must be written before more are added.
    pub fn are_too_many(&self) -> bool {
        self.bytes.len() >= TOO_MANY_BYTES || self.messages.len() >= TOO_MANY_ROWS
    }

    /// True if there are enough messages to write them.
    pub fn are_many(&self) -> bool {
        self.messages.len() >= MOST_ROWS || self.bytes.len() >= MOST_BYTES
    }

    /// Writes all messages into their table.
    pub fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        let Pending {
            messages,
            bytes,
            chunks,
        } = self;
        for (chunk, newest) in chunks.drain(..) {
            note(tables, chunk, newest)?;
        }
        messages.sort_unstable_by_key(|&(place, ..)| place);
        for run in messages.chunk_by(|(one, ..), (next, ..)| one.0 == next.0) {
            let mut cursor = tables.messages.upper_bound_mut(Bound::Included(run[0].0))?;
            for (place, at, _) in run {
                cursor.insert_before(place, &bytes[at.clone()])?;
            }
            cursor.close()?;
            for part in run.chunk_by(|one, next| one.2 == next.2) {
                let ((of, last), _, chunk) = part[part.len() - 1];
                let place = (chunk.0, of);
                tables.marks.insert(place, number(&[chunk.0, of], last))?;
            }
        }
        messages.clear();
        bytes.clear();
        Ok(())
    }
}
