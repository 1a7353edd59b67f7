//! Expiry of old messages.
//!
//! Messages that are stored within a minute of each other form a *chunk*. The index stores the time of each chunk's
//! newest message, and the last message of each conversation in the chunk. So old messages are found without a row for
//! each message. A [`Command::Expire`](crate::command::Command::Expire) removes a bounded number of messages, so that
//! it does not delay posts.
//!
//! The first remaining number of each conversation is stored. Queues may still refer to earlier messages, which readers
//! skip.

use super::chunk::Chunk;
use super::machine::Machine;
use super::row::{Number, checked, number};
use super::tables::Tables;
use crate::command::{CommandResult, Outcome};
use crate::model::ConversationId;
use redb::ReadableTable;

/// Returns the number of the first message of a conversation that was not removed.
pub(super) fn first_kept(
    firsts: &impl ReadableTable<u64, Number>,
    of: ConversationId,
) -> Result<u64, redb::Error> {
    let row = firsts.get(of.0)?.map(|row| row.value());
    let first = row.map(|row| checked("first message", &[of.0], row));
    Ok(first.transpose()?.unwrap_or(1))
}

impl Machine {
    /// Removes at most `most` of the oldest messages, from chunks up to and including this chunk.
    pub(super) fn expire(
        &mut self,
        tables: &mut Tables<'_>,
        through: Chunk,
        most: u32,
    ) -> Result<Outcome, redb::Error> {
        self.write(tables)?;
        let mut left = u64::from(most);
        while left > 0
            && let Some(chunk) = oldest(tables)?
            && chunk <= through
        {
            let mark = {
                let mut marks = tables.marks.range((chunk.0, 0)..=(chunk.0, u64::MAX))?;
                let mark = marks.next().transpose()?;
                mark.map(|(place, last)| (place.value(), last.value()))
            };
            let Some((place, row)) = mark else {
                tables.chunks.remove(chunk.0)?;
                continue;
            };
            let of = ConversationId(place.1);
            let last = checked("mark", &[place.0, place.1], row)?;
            let first = first_kept(&tables.firsts, of)?;
            // At least one step is made, even if no message is left to remove.
            let end = (last + 1).min(first.max(1) + left);
            left -= (end.saturating_sub(first)).clamp(1, left);
            for message in first..end {
                if let Some(row) = tables.messages.remove((of.0, message))? {
                    let length = row.value().len() as u64;
                    self.state.bytes = self.state.bytes.saturating_sub(length);
                }
            }
            if end > first {
                let row = number(&[of.0], end);
                tables.firsts.insert(of.0, row)?;
            }
            if end > last {
                tables.marks.remove(place)?;
            }
        }
        let removed = most - u32::try_from(left).unwrap_or(most);
        Ok(Ok(CommandResult::Expired(removed)))
    }
}

fn oldest(tables: &Tables<'_>) -> Result<Option<Chunk>, redb::Error> {
    let first = tables.chunks.first()?;
    Ok(first.map(|(chunk, _)| Chunk(chunk.value())))
}
