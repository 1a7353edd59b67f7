//! The requests to the thread that applies the log, its effects, and what it shares with readers.

use super::replacement::{Applied, Replacement};
use crate::command::Delivery;
use crate::model::{ConversationId, SessionId, UserId};
use parking_lot::RwLock;
use redb::{Database, ReadTransaction};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::oneshot;

/// The effects of applied entries, besides the answers to their submitters.
pub(crate) trait Effects: Send + 'static {
    /// Delivers durable messages that are in the queues of their recipients.
    fn deliver(&mut self, deliveries: &mut Vec<Delivery>);

    /// Handles the end of a user's session.
    fn session_closed(&mut self, user: UserId, session: SessionId);

    /// A conversation has a new title or other members; these users are notified.
    fn conversation_changed(&mut self, conversation: ConversationId, members: &[UserId]);
}

/// The progress of the thread that applies entries.
#[derive(Debug)]
pub(super) struct Progress {
    /// The position of the last applied entry. Only the open transaction sees its effects.
    pub applied: AtomicU64,
    /// The position of the last entry whose effects readers see.
    pub committed: AtomicU64,
}

/// Requests to the thread that applies the log, between two transactions.
pub(super) enum ApplierRequest {
    /// Makes everything applied so far readable.
    Commit(oneshot::Sender<()>),
    /// Returns a transaction that reads everything applied so far, all of which is on disk. With `true`, entries
    /// applied later are stored for a compaction.
    Snapshot(bool, oneshot::Sender<ReadTransaction>),
    /// Returns the entries that were stored since the last request; `None` if there were too many.
    CompactionBacklog(oneshot::Sender<Option<Vec<Applied>>>),
    /// Stops storing entries.
    Forget,
    /// Replaces the file by this copy.
    Replace(Box<Replacement>, oneshot::Sender<Result<(), String>>),
}

/// The database for readers. Clones share it.
#[derive(Clone)]
pub(super) struct Current(Arc<RwLock<Arc<Database>>>);

impl Current {
    pub fn new(database: Database) -> Current {
        Current(Arc::new(RwLock::new(Arc::new(database))))
    }

    pub fn get(&self) -> Arc<Database> {
        self.0.read().clone()
    }

    pub fn set(&self, database: Database) {
        *self.0.write() = Arc::new(database);
    }
}
