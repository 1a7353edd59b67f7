//! Compaction returns the space of removed data to the system while the index is in use.
//!
//! A file of redb does not become shorter; freed space is reused only within the file. So the index is copied into a
//! new file, in its state after one entry of the log. Entries that are applied during the copying are stored, and then
//! applied to the copy. This is repeated until few entries are left. Then the thread that applies the log replaces the
//! old file by the copy, between two transactions. Readers of the old file continue to read it.

use super::copy;
use super::handle::{Index, IndexError};
use super::replacement::{Replacement, create};
use super::requests::ApplierRequest;
use super::tables::{
    CONVERSATIONS, MARKS, MEMBERSHIPS, MESSAGES, QUEUES, SESSIONS, USERS, keys_of_day,
};
use crate::guard::guard;
use redb::{Error, ReadTransaction, ReadableTableMetadata, TableDefinition};
use std::path::{Path, PathBuf};

/// The number of entries that may be left for the thread that applies the log.
const FEW: usize = 1 << 11;
/// The maximum number of rounds in which entries that arrived during the copy are applied.
const MOST_ROUNDS: usize = 100;
/// The size of an empty file in bytes.
const LEAST: u64 = 4 << 20;

/// Returns the temporary path of a copy.
pub(super) fn beside(path: &Path) -> PathBuf {
    path.with_extension("compact")
}

impl Index {
    /// Copies the data applied so far into a new file, while further entries are applied. Returns the position of the
    /// last entry in the copy.
    ///
    /// # Errors
    /// If the file cannot be written, or the index not be read.
    pub async fn copy_to(&self, path: &Path) -> Result<u64, IndexError> {
        let txn = self
            .ask(|reply| ApplierRequest::Snapshot(false, reply))
            .await?;
        let (to, cache) = (path.to_owned(), self.cache);
        let copied = tokio::task::spawn_blocking(move || {
            guard(|| {
                let database = create(&to, cache)?;
                copy::copy(&txn, &database)?;
                Ok(copy::state(&txn)?.map_or(0, |state| state.position))
            })
        });
        let copied = copied.await.map_err(|_| IndexError::Stopped)?;
        copied.map_err(|error| IndexError::Copy {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Compacts the file. Returns the size of the file in bytes before and after.
    ///
    /// # Errors
    /// If the index has no file, another compaction runs, or the copy cannot be written.
    pub async fn compact(&self) -> Result<(u64, u64), IndexError> {
        let Some(path) = self.path.clone() else {
            return Err(IndexError::InMemory);
        };
        let Ok(_turn) = self.compacting.try_lock() else {
            return Err(IndexError::Compacting);
        };
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let before = length(&path);
        let beside = beside(&path);
        let done = self.replace(&beside).await;
        if done.is_err() {
            let _ = self.wanted.send(ApplierRequest::Forget);
            let _ = std::fs::remove_file(&beside);
        }
        done.map(|()| (before, length(&path)))
    }

    /// Returns the size of the index at its last commit; `None` if the index has no file.
    ///
    /// # Errors
    /// If the size cannot be read.
    pub async fn room(&self) -> Result<Option<IndexSize>, IndexError> {
        let Some(path) = self.path.clone() else {
            return Ok(None);
        };
        self.read_committed(move |txn| {
            let length = std::fs::metadata(&path)?.len();
            let needed = needed(txn)?;
            Ok(Some(IndexSize { length, needed }))
        })
        .await
    }

    async fn replace(&self, beside: &Path) -> Result<(), IndexError> {
        let failed = |reason: String| IndexError::Copy {
            path: beside.to_owned(),
            reason,
        };
        let txn = self
            .ask(|reply| ApplierRequest::Snapshot(true, reply))
            .await?;
        let (to, cache) = (beside.to_owned(), self.cache);
        let made = blocking(move || Replacement::make(to, cache, txn)).await?;
        let mut copy = made.map_err(|error| failed(error.to_string()))?;
        for _ in 0..MOST_ROUNDS {
            let Some(kept) = self.ask(ApplierRequest::CompactionBacklog).await? else {
                break;
            };
            let few = kept.len() <= FEW;
            let applied = blocking(move || {
                let applied = copy.apply(kept, few);
                applied.map(|()| copy)
            });
            copy = applied.await?.map_err(|error| failed(error.to_string()))?;
            if few {
                let replaced = self
                    .ask(|reply| ApplierRequest::Replace(Box::new(copy), reply))
                    .await?;
                return replaced.map_err(failed);
            }
        }
        Err(failed(
            "more was stored during the compaction than could be added; try again under less load"
                .to_owned(),
        ))
    }
}

/// The size of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexSize {
    /// The length of the file in bytes.
    pub length: u64,
    /// An upper bound for the bytes of all rows in a new file, estimated from their number and usual length.
    pub needed: u64,
}

/// Estimates the bytes of all rows, from the number of rows in each table.
fn needed(txn: &ReadTransaction) -> Result<u64, Error> {
    let state = copy::state(txn)?.unwrap_or_default();
    let mut bytes = state.bytes;
    bytes += 32 * txn.open_table(MESSAGES)?.len()?;
    bytes += 64 * txn.open_table(QUEUES)?.len()?;
    bytes += 512 * txn.open_table(USERS)?.len()?;
    bytes += 256 * txn.open_table(SESSIONS)?.len()?;
    bytes += 512 * txn.open_table(CONVERSATIONS)?.len()?;
    // Each membership is a row, and is also part of its conversation's row.
    bytes += 40 * txn.open_table(MEMBERSHIPS)?.len()?;
    bytes += 40 * txn.open_table(MARKS)?.len()?;
    for day in state.days.tables {
        let name = keys_of_day(day);
        let keys = TableDefinition::<(u64, [u8; 16]), (u64, u64, u64)>::new(&name);
        bytes += 64 * txn.open_table(keys)?.len()?;
    }
    // Pages are at least half full.
    Ok(2 * bytes + LEAST)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<Result<T, Error>, IndexError> {
    let done = tokio::task::spawn_blocking(move || guard(work)).await;
    done.map_err(|_| IndexError::Stopped)
}
