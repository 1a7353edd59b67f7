//! How many recipients conversations have, as far as they were used.

use crate::index::{Index, IndexError};
use crate::model::ConversationId;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// The cache is emptied when it has this many.
const CACHED: usize = 1 << 20;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Recipients {
    known: RwLock<HashMap<ConversationId, u32>>,
    /// Changes of members so far: what was read before one is not put into the cache.
    changes: AtomicU64,
}

impl Recipients {
    /// How many recipients a message in this conversation has; 1 if the conversation is not known.
    pub async fn of(&self, id: ConversationId, index: &Index) -> Result<u32, IndexError> {
        let known = {
            let known = self.known.read();
            known.get(&id).copied()
        };
        match known {
            Some(count) => Ok(count),
            // Boxed, because it is rare and would enlarge every request's future.
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

    /// The members of a conversation have changed.
    pub fn forget(&self, id: ConversationId) {
        let mut known = self.known.write();
        self.changes.fetch_add(1, SeqCst);
        known.remove(&id);
    }
}
