//! A cache of the numbers of recipients of conversations.

use crate::index::{Index, IndexError};
use crate::model::ConversationId;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// The number of entries at which the cache is emptied.
const CACHED: usize = 1 << 20;

/// A cache of the number of recipients. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Recipients {
    known: RwLock<HashMap<ConversationId, u32>>,
    /// The number of changes of members so far: a number that was read before a change is not
    /// cached.
    changes: AtomicU64,
}

impl Recipients {
    /// Returns the number of recipients of a message in this conversation; 1 if the conversation is
    /// unknown.
    pub async fn of(&self, id: ConversationId, index: &Index) -> Result<u32, IndexError> {
        let known = {
            let known = self.known.read();
            known.get(&id).copied()
        };
        match known {
            Some(count) => Ok(count),
            // The future is boxed, because it is rarely used and would enlarge the future of every request.
            None => Box::pin(self.look_up(id, index)).await,
        }
    }

    async fn look_up(&self, id: ConversationId, index: &Index) -> Result<u32, IndexError> {
        let changes = self.changes.load(SeqCst);
        let Some(found) = index.conversation(id).await? else {
            return Ok(1);
        };
        let count = u32::try_from(found.members.len()).unwrap_or(u32::MAX);
        let count = count.saturating_sub(1);
        let mut known = self.known.write();
        if known.len() >= CACHED {
            known.clear();
        }
        if self.changes.load(SeqCst) == changes {
            known.insert(id, count);
        }
        Ok(count)
    }

    /// Removes a conversation whose members have changed from the cache.
    pub fn forget(&self, id: ConversationId) {
        let mut known = self.known.write();
        self.changes.fetch_add(1, SeqCst);
        known.remove(&id);
    }
}
