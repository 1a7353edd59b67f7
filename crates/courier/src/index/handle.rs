//! The handle through which the rest of the node reads the index.

use super::queue::Tails;
use super::requests::{ApplierRequest, Current, Progress};
use crate::guard::guard;
use crossbeam_channel::Sender;
use redb::{ReadTransaction, ReadableDatabase};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use tokio::sync::{oneshot, watch};

/// The index of the log. Clones share one index. See the [module](super).
#[derive(Clone)]
pub(crate) struct Index {
    /// The file; `None` if the index is in memory.
    pub(super) path: Option<PathBuf>,
    /// The size of redb's cache in bytes.
    pub(super) cache: usize,
    pub(super) database: Current,
    pub(super) progress: Arc<Progress>,
    pub(super) tails: Tails,
    pub(super) wanted: Sender<ApplierRequest>,
    /// A lock that a compaction holds, so that only one compaction runs at a time.
    pub(super) compacting: Arc<tokio::sync::Mutex<()>>,
    pub(super) applied: watch::Receiver<u64>,
    /// A channel that is closed when the thread ends.
    pub(super) running: watch::Receiver<()>,
}

/// The index cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum IndexError {
    #[error("the index cannot be read: {0}")]
    Database(String),
    #[error("the index has stopped; read the last messages of the node, and restart it")]
    Stopped,
    #[error("the index cannot be copied to {}: {reason}", path.display())]
    Copy { path: PathBuf, reason: String },
    #[error("the index is in memory, so there is nothing to compact")]
    InMemory,
    #[error("a compaction is already running; wait for its end")]
    Compacting,
}

impl From<redb::Error> for IndexError {
    fn from(error: redb::Error) -> IndexError {
        IndexError::Database(error.to_string())
    }
}

impl Index {
    /// True if the thread of the index is running.
    pub fn is_up(&self) -> bool {
        self.applied.has_changed().is_ok()
    }

    /// Waits until the thread of the index has ended, because the index or the log has failed.
    pub async fn ended(&self) {
        let mut running = self.running.clone();
        while running.changed().await.is_ok() {}
    }

    /// Returns the position of the last applied entry.
    pub fn applied(&self) -> u64 {
        *self.applied.borrow()
    }

    /// Waits until the entry at this position is applied.
    pub async fn reached(&self, position: u64) -> Result<(), IndexError> {
        let mut applied = self.applied.clone();
        let reached = applied.wait_for(|&applied| applied >= position).await;
        reached.map(drop).map_err(|_| IndexError::Stopped)
    }

    /// Reads a state that contains all entries applied before the call. `work` runs on a thread for blocking work.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, IndexError> {
        if self.progress.committed.load(Acquire) < self.progress.applied.load(Acquire) {
            self.committed().await?;
        }
        self.read_committed(read).await
    }

    /// Reads like [`Index::read`], but without a commit: the last applied changes may be missing.
    pub async fn read_committed<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, IndexError> {
        let database = self.database.get();
        let task = tokio::task::spawn_blocking(move || guard(|| read(&database.begin_read()?)));
        let read = task.await.map_err(|_| IndexError::Stopped)?;
        Ok(read?)
    }

    /// Sends a request to the thread that applies the log.
    pub(super) async fn ask<T>(
        &self,
        want: impl FnOnce(oneshot::Sender<T>) -> ApplierRequest,
    ) -> Result<T, IndexError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.wanted.send(want(reply));
        sent.map_err(|_| IndexError::Stopped)?;
        answer.await.map_err(|_| IndexError::Stopped)
    }

    /// Waits until everything applied so far can be read.
    async fn committed(&self) -> Result<(), IndexError> {
        self.ask(ApplierRequest::Commit).await
    }
}
