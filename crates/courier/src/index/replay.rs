//! Applies the entries of a log to an index on which no node runs.

use super::opened::OpenedIndex;
use super::requests::Effects;
use crate::command::Delivery;
use crate::error::StartError;
use crate::log::Entry;
use crate::model::{ConversationId, SessionId, UserId};
use std::path::Path;

/// Drops all effects.
struct NoEffects;

impl Effects for NoEffects {
    fn deliver(&mut self, deliveries: &mut Vec<Delivery>) {
        deliveries.clear();
    }

    fn session_closed(&mut self, _: UserId, _: SessionId) {}

    fn conversation_changed(&mut self, _: ConversationId, _: &[UserId]) {}
}

impl OpenedIndex {
    /// Applies entries, whose effects besides the changes of the index are dropped.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn apply(self, entries: impl Iterator<Item = Entry>) -> Result<OpenedIndex, StartError> {
        let (path, cache) = (self.path.clone(), self.cache);
        let directory = path.parent().map(Path::to_owned);
        let (feed, received) = crossbeam_channel::bounded(4);
        let (index, thread) = self.start(received, NoEffects, |_| {})?;
        let mut last = index.applied();
        for entry in entries {
            last = entry.position;
            if feed.send(vec![entry]).is_err() {
                break;
            }
        }
        drop((feed, index));
        // A thread that panicked has already reported the panic.
        let _ = thread.join();
        let applied = OpenedIndex::open_with(directory.as_deref(), cache)?;
        match applied.applied() == last {
            true => Ok(applied),
            false => {
                let reason = redb::Error::Corrupted("the log could not be applied".to_owned());
                Err(StartError::database(&path, reason))
            }
        }
    }
}
