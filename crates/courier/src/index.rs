//! What the log says, in the form in which it is asked for: users, sessions, conversations,
//! messages, and a queue per user.
//!
//! One thread applies the log's entries in their order, within a transaction that stays open as
//! long as nobody wants to read what it has changed. Nothing is lost with it: the log has every
//! entry, and the index says up to which one it has come, in the same transaction as what that
//! entry did. Messages and queues are put into their tables many at a time, after those who posted
//! them were answered, and before the transaction ends. All is written to disk now and then (a
//! *checkpoint*), after which the log may forget.
//!
//! Whoever reads gets everything that was applied before it asked: [`Index::read`] has the open
//! transaction committed first, if there is one.

mod apply;
mod keys;
mod pending;
mod read;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use read::{Page, Queued};

use crate::command::Delivery;
use crate::database;
use crate::error::StartError;
use crate::log::Entry;
use crate::model::{SessionId, UserId};
use apply::{Machine, State, decode};
use crossbeam_channel::{Receiver, Sender};
use redb::{Database, ReadTransaction, ReadableDatabase, TableError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};

/// The index's file in the directory of the data.
const FILE: &str = "index.redb";
/// Pages that redb keeps in memory, in bytes.
const CACHE: usize = 128 << 20;

/// Who is told what applied entries have changed, besides whoever submitted them.
pub(crate) trait Effects: Send + 'static {
    /// These messages are durable, and lie in the queues of their recipients.
    fn deliver(&mut self, deliveries: &mut Vec<Delivery>);

    /// This session of this user is over.
    fn session_closed(&mut self, user: UserId, session: SessionId);
}

/// See the [module](self). Clones are the same index.
#[derive(Clone)]
pub(crate) struct Index {
    database: Arc<Database>,
    shared: Arc<Shared>,
    wanted: Sender<oneshot::Sender<()>>,
    applied: watch::Receiver<u64>,
}

/// How far the thread has come.
#[derive(Debug)]
struct Shared {
    /// Applied, and visible to its own transaction.
    applied: AtomicU64,
    /// Visible to everybody.
    committed: AtomicU64,
}

/// An index that was opened, before its thread runs.
pub(crate) struct Opened {
    path: PathBuf,
    database: Database,
    state: State,
}

/// The index cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum IndexError {
    #[error("the index cannot be read: {0}")]
    Database(String),
    #[error("the index has stopped; look at what the node said last, and start it again")]
    Stopped,
}

impl From<redb::Error> for IndexError {
    fn from(error: redb::Error) -> IndexError {
        IndexError::Database(error.to_string())
    }
}

impl Opened {
    /// Opens the index in this directory, or one in memory.
    pub fn open(dir: Option<&Path>) -> Result<Opened, StartError> {
        let (database, path) = database::open(dir, FILE, CACHE)?;
        let state = state(&database).map_err(|error| StartError::database(&path, error))?;
        let state = state.unwrap_or(State {
            format: tables::FORMAT,
            ..State::default()
        });
        if state.format != tables::FORMAT {
            return Err(StartError::Format {
                path,
                found: state.format,
                wanted: tables::FORMAT,
            });
        }
        Ok(Opened {
            path,
            database,
            state,
        })
    }

    /// The position of the last entry that it knows.
    pub fn position(&self) -> u64 {
        self.state.position
    }

    /// Says which log is to be applied.
    ///
    /// # Errors
    /// If another one was applied before.
    pub fn adopt(&mut self, log: u64) -> Result<(), StartError> {
        if self.state.position == 0 {
            self.state.log = log;
        }
        if self.state.log != log {
            let path = self.path.clone();
            return Err(StartError::OtherLog { path });
        }
        Ok(())
    }

    /// Starts the thread. It ends when the feed's senders are gone, after a last checkpoint;
    /// `checkpoint` is told the position of every one.
    pub fn start(
        self,
        feed: Receiver<Vec<Entry>>,
        effects: impl Effects,
        checkpoint: impl Fn(u64) + Send + 'static,
    ) -> Result<(Index, JoinHandle<()>), StartError> {
        let Opened {
            path,
            database,
            state,
        } = self;
        let position = state.position;
        let database = Arc::new(database);
        let shared = Arc::new(Shared {
            applied: AtomicU64::new(position),
            committed: AtomicU64::new(position),
        });
        // Unbounded, and short: one for each reader that waits.
        let (wanted, wants) = crossbeam_channel::unbounded();
        let (advanced, applied) = watch::channel(position);
        let mut writer = writer::Writer {
            database: database.clone(),
            shared: shared.clone(),
            machine: Machine::new(state),
            feed,
            wants,
            advanced,
            effects,
            checkpoint,
        };
        let run = move || {
            if let Err(error) = writer.run() {
                // There is nobody to answer to: those who wait see that it has ended.
                writer.fail(&path, &error);
            }
        };
        let thread = std::thread::Builder::new()
            .name("courier index".to_owned())
            .spawn(run)
            .map_err(StartError::Thread)?;
        let index = Index {
            database,
            shared,
            wanted,
            applied,
        };
        Ok((index, thread))
    }
}

/// The counters in the database, if there are any.
fn state(database: &Database) -> Result<Option<State>, redb::Error> {
    let txn = database.begin_read()?;
    let meta = match txn.open_table(tables::META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match redb::ReadableTable::get(&meta, tables::STATE)? {
        Some(row) => decode(row.value()).map(Some),
        None => Ok(None),
    }
}

impl Index {
    /// Whether its thread runs.
    pub fn is_up(&self) -> bool {
        self.applied.has_changed().is_ok()
    }

    /// Waits until the entry at this position is applied.
    pub async fn reached(&self, position: u64) -> Result<(), IndexError> {
        let mut applied = self.applied.clone();
        let reached = applied.wait_for(|&applied| applied >= position).await;
        reached.map(drop).map_err(|_| IndexError::Stopped)
    }

    /// Reads, on a thread that may block, a state in which all is applied that was before the
    /// call.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, IndexError> {
        if self.shared.committed.load(Acquire) < self.shared.applied.load(Acquire) {
            let (done, committed) = oneshot::channel();
            self.wanted.send(done).map_err(|_| IndexError::Stopped)?;
            committed.await.map_err(|_| IndexError::Stopped)?;
        }
        let database = self.database.clone();
        let task = tokio::task::spawn_blocking(move || read(&database.begin_read()?));
        let read = task.await.map_err(|_| IndexError::Stopped)?;
        Ok(read?)
    }
}
