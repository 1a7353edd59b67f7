//! Compaction returns the space of removed data to the system while the index is in use.
//!
//! A file of redb does not become shorter; freed space is reused only within the file. So the index is copied into a
//! new file, in its state after one entry of the log. Entries that are applied during the copying are stored, and then
//! applied to the copy. This is repeated until few entries are left. Then the thread that applies the log replaces the
//! old file by the copy, between two transactions. Readers of the old file continue to read it.

use super::keys::Recent;
use super::machine::{At, Machine, SideEffects};
use super::tables::{
    CONVERSATIONS, MARKS, MEMBERSHIPS, MESSAGES, QUEUES, SESSIONS, Tables, USERS, keys_of_day,
};
use super::{Index, IndexError, copy};
use crate::command::Command;
use crate::guard::guard;
use parking_lot::RwLock;
use redb::{
    Database, Durability, Error, ReadTransaction, ReadableDatabase, ReadableTableMetadata,
    TableDefinition,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The number of entries that may be left for the thread that applies the log.
const FEW: usize = 1 << 11;
/// The maximum number of rounds in which entries that arrived during the copy are applied.
const MOST_ROUNDS: usize = 100;
/// The maximum bytes of entries that are stored during a copy.
const MOST_KEPT: usize = 256 << 20;
/// The size of an empty file in bytes.
const LEAST: u64 = 4 << 20;
/// The number of entries in one transaction.
const TOGETHER: usize = 1 << 12;

/// An applied log entry; `None` if it had no effect.
pub(super) type Applied = (At, Option<Command>);

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

/// A copy of the index that has applied all entries except those that are still stored.
pub(super) struct Replacement {
    pub path: PathBuf,
    pub database: Database,
    pub machine: Machine,
}

/// Entries that are kept for a compaction.
#[derive(Default)]
pub(super) struct CompactionBacklog {
    entries: Vec<Applied>,
    bytes: usize,
    too_many: bool,
}

impl CompactionBacklog {
    pub fn push(&mut self, at: At, command: Option<&Command>) {
        self.bytes += command.map_or(0, Command::weight) + size_of::<Applied>();
        if self.bytes > MOST_KEPT {
            self.too_many = true;
            self.entries = Vec::new();
        }
        if !self.too_many {
            self.entries.push((at, command.cloned()));
        }
    }

    pub fn take(&mut self) -> Option<Vec<Applied>> {
        self.bytes = 0;
        let entries = std::mem::take(&mut self.entries);
        (!self.too_many).then_some(entries)
    }
}

impl Replacement {
    fn make(path: PathBuf, cache: usize, txn: ReadTransaction) -> Result<Replacement, Error> {
        let database = create(&path, cache)?;
        copy::copy(&txn, &database)?;
        // The transaction is closed early, because it prevents the reuse of space.
        txn.close()?;
        let txn = database.begin_read()?;
        let state = copy::state(&txn)?.unwrap_or_default();
        let machine = Machine::new(state, &txn)?;
        drop(txn);
        Ok(Replacement {
            path,
            database,
            machine,
        })
    }

    /// Applies entries that were applied to the original. `to_disk` is true in the last call.
    pub fn apply(&mut self, entries: Vec<Applied>, to_disk: bool) -> Result<(), Error> {
        let mut entries = entries.into_iter().peekable();
        loop {
            let some = entries.by_ref().take(TOGETHER).collect::<Vec<_>>();
            let last = entries.peek().is_none();
            let mut txn = self.database.begin_write()?;
            let durability = match to_disk && last {
                true => Durability::Immediate,
                false => Durability::None,
            };
            txn.set_durability(durability).map_err(Error::from)?;
            txn.set_quick_repair(to_disk && last);
            {
                let mut tables = Tables::open(&txn)?;
                let mut recent = Recent::open(&txn, &self.machine.state.days)?;
                let mut caused = SideEffects::default();
                for (at, command) in some {
                    match command {
                        Some(command) => {
                            let machine = &mut self.machine;
                            // The submitter of the command was answered when the original applied it.
                            let _ = machine.apply(
                                &mut tables,
                                &mut recent,
                                at,
                                command,
                                &mut caused,
                            )?;
                            caused.clear();
                        }
                        None => self.machine.skip(at),
                    }
                }
                self.machine.save(&mut tables, to_disk && last)?;
            }
            txn.commit()?;
            if last {
                return Ok(());
            }
        }
    }
}

/// Creates the file of a copy, and replaces any file of an earlier attempt.
pub(super) fn create(path: &Path, cache: usize) -> Result<Database, Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    crate::database::open_file(path, cache)
}

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

    /// Sends a request to the thread that applies the log.
    async fn ask<T>(
        &self,
        want: impl FnOnce(oneshot::Sender<T>) -> ApplierRequest,
    ) -> Result<T, IndexError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.wanted.send(want(reply));
        sent.map_err(|_| IndexError::Stopped)?;
        answer.await.map_err(|_| IndexError::Stopped)
    }

    /// Waits until everything applied so far can be read.
    pub(super) async fn committed(&self) -> Result<(), IndexError> {
        self.ask(ApplierRequest::Commit).await
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
