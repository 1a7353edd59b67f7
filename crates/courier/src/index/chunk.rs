//! Chunks: messages that were stored one after the other, within a minute. See [`expiry`](super::expiry).

use super::row::{checked, number};
use super::tables::Tables;
use crate::model::Millis;
use redb::ReadableTable;
use serde::{Deserialize, Serialize};

/// The maximum number of messages in a chunk.
const MOST: u32 = 1 << 10;
/// The maximum time in milliseconds between the first and the last message of a chunk.
const SPAN: u64 = 60 * 1000;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Chunk(pub u64);

/// The chunk to which messages are added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenChunk {
    pub chunk: Chunk,
    count: u32,
    begun: Millis,
}

impl OpenChunk {
    /// Continues after this chunk.
    pub fn after(chunk: Chunk) -> OpenChunk {
        OpenChunk {
            chunk,
            count: MOST,
            begun: Millis::default(),
        }
    }

    /// Returns the chunk of a message that arrived at this time.
    pub fn add(&mut self, taken: Millis) -> Chunk {
        // The clock may also have been set back.
        if self.count >= MOST || taken.0.abs_diff(self.begun.0) >= SPAN {
            *self = OpenChunk {
                chunk: Chunk(self.chunk.0 + 1),
                count: 0,
                begun: taken,
            };
        }
        self.count += 1;
        self.chunk
    }
}

/// Updates the newest message of a chunk.
pub(super) fn note(
    tables: &mut Tables<'_>,
    chunk: Chunk,
    newest: Millis,
) -> Result<(), redb::Error> {
    let row = tables.chunks.get(chunk.0)?.map(|row| row.value());
    let known = row.map(|row| checked("chunk", &[chunk.0], row));
    if known.transpose()?.is_none_or(|known| known < newest.0) {
        let row = number(&[chunk.0], newest.0);
        tables.chunks.insert(chunk.0, row)?;
    }
    Ok(())
}
