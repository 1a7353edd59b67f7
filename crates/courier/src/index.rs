//! The index of the log: users, sessions, conversations, messages, and a queue per user.
//!
//! One thread applies the log's entries in order, within a transaction that stays open until a reader needs its
//! changes. A crash loses nothing: the log has every entry, and the index stores the position of the last applied
//! entry in the same transaction as its effects. Messages and queues are written to their tables in batches, after
//! their posters were answered and before the transaction ends. A *checkpoint* writes everything to disk from
//! time to time; the log may then remove earlier entries.
//!
//! A reader sees every entry applied before its request: [`Index::read`] first commits the open transaction.

mod apply;
mod builder;
mod chunk;
mod compaction;
mod conversations;
mod copy;
mod expiry;
mod keys;
mod lines;
mod lookalikes;
mod machine;
mod overlay;
mod pending;
mod queue;
mod read;
mod replay;
mod row;
mod sessions;
mod tables;
#[cfg(test)]
mod tests;
mod upgrade;
mod writer;

pub(crate) use builder::IndexBuilder;
pub(crate) use chunk::Chunk;
pub(crate) use compaction::IndexSize;
pub(crate) use lines::Line;
pub(crate) use read::{QueuePage, Stock};

use crate::command::Delivery;
use crate::database;
use crate::error::StartError;
use crate::guard::guard;
use crate::log::{Entry, embedded};
use crate::model::{ConversationId, SessionId, UserId};
use compaction::{ApplierRequest, Current};
use crossbeam_channel::{Receiver, Sender};
use machine::{Machine, State};
use queue::Tails;
use redb::{Database, Durability, ReadTransaction, ReadableDatabase, TableError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// The name of the index's file in the data directory.
pub(crate) const FILE: &str = "index.redb";
/// The default size of redb's cache in bytes.
pub(crate) const CACHE: usize = 128 << 20;

/// The effects of applied entries, besides the answers to their submitters.
pub(crate) trait Effects: Send + 'static {
    /// Delivers durable messages that are in the queues of their recipients.
    fn deliver(&mut self, deliveries: &mut Vec<Delivery>);

    /// Handles the end of a user's session.
    fn session_closed(&mut self, user: UserId, session: SessionId);

    /// A conversation has a new title or other members; these users are notified.
    fn conversation_changed(&mut self, conversation: ConversationId, members: &[UserId]);
}

/// The index of the log. Clones share one index. See the [module](self).
#[derive(Clone)]
pub(crate) struct Index {
    /// The file; `None` if the index is in memory.
    path: Option<PathBuf>,
    /// The size of redb's cache in bytes.
    cache: usize,
    database: Current,
    progress: Arc<Progress>,
    tails: Tails,
    wanted: Sender<ApplierRequest>,
    /// A lock that a compaction holds, so that only one compaction runs at a time.
    compacting: Arc<tokio::sync::Mutex<()>>,
    applied: watch::Receiver<u64>,
    /// A channel that is closed when the thread ends.
    running: watch::Receiver<()>,
}

/// The progress of the thread that applies entries.
#[derive(Debug)]
struct Progress {
    /// The position of the last applied entry. Only the open transaction sees its effects.
    applied: AtomicU64,
    /// The position of the last entry whose effects readers see.
    committed: AtomicU64,
}

/// An index that was opened, but whose thread is not running.
pub(crate) struct OpenedIndex {
    path: PathBuf,
    cache: usize,
    in_memory: bool,
    database: Database,
    state: State,
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

impl OpenedIndex {
    /// Opens the index in this directory, or one in memory.
    pub fn open(dir: Option<&Path>) -> Result<OpenedIndex, StartError> {
        OpenedIndex::open_file(dir, FILE, CACHE)
    }

    /// Opens an index like [`OpenedIndex::open`], with a cache of `cache` bytes.
    pub fn open_with(dir: Option<&Path>, cache: usize) -> Result<OpenedIndex, StartError> {
        OpenedIndex::open_file(dir, FILE, cache)
    }

    /// True if there is an index in this directory.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    fn open_file(dir: Option<&Path>, file: &str, cache: usize) -> Result<OpenedIndex, StartError> {
        let (database, path) = database::open(dir, file, cache)?;
        let failed = |error| StartError::database(&path, error);
        let mut found = guard(|| format(&database)).map_err(failed)?;
        if let Some(before) = found.filter(|found| upgrade::BEFORE.contains(found)) {
            guard(|| upgrade::upgrade(&database, before)).map_err(failed)?;
            found = Some(tables::FORMAT);
        }
        if found.is_none() {
            guard(|| make_tables(&database)).map_err(failed)?;
        }
        if let Some(found) = found.filter(|&found| found != tables::FORMAT) {
            return Err(StartError::Format {
                path,
                found,
                wanted: tables::FORMAT,
            });
        }
        let state = guard(|| copy::state(&database.begin_read()?)).map_err(failed)?;
        let state = state.unwrap_or(State {
            format: tables::FORMAT,
            ..State::default()
        });
        if dir.is_some() {
            // The copy of an interrupted compaction is removed.
            let _ = std::fs::remove_file(compaction::beside(&path));
        }
        Ok(OpenedIndex {
            path,
            cache,
            in_memory: dir.is_none(),
            database,
            state,
        })
    }

    /// Returns the position of the last applied entry.
    pub fn applied(&self) -> u64 {
        self.state.position
    }

    /// Returns the newest version of an applied command.
    pub fn version(&self) -> u8 {
        self.state.version
    }

    /// Reads and checks the whole index. Returns the identity of its log, and the last applied entry.
    ///
    /// # Errors
    /// If something is damaged.
    pub fn verify(&self) -> Result<(u64, u64), StartError> {
        let state = guard(|| copy::verify(&self.database.begin_read()?));
        let state = state.map_err(|error| StartError::database(&self.path, error))?;
        Ok((state.log, state.position))
    }

    /// Opens a copy of an index, which has another file name.
    ///
    /// # Errors
    /// If the index belongs to something else, or is damaged.
    pub fn copy_in(directory: &Path, file: &str) -> Result<OpenedIndex, StartError> {
        OpenedIndex::open_file(Some(directory), file, CACHE)
    }

    /// Reads and checks the index of another node, which must belong to this log and end at this position.
    ///
    /// # Errors
    /// If the index belongs to something else, or is damaged.
    pub fn verify_copy(directory: &Path, file: &str, of: (u64, u64)) -> Result<(), StartError> {
        let found = OpenedIndex::copy_in(directory, file)?;
        if found.verify()? == of {
            return Ok(());
        }
        let reason =
            redb::Error::Corrupted("the index belongs to another log or position".to_owned());
        Err(StartError::database(&found.path, reason))
    }

    /// Copies the index into a new file.
    ///
    /// # Errors
    /// If the index cannot be read, or the copy cannot be written.
    pub fn copy_to(&self, path: PathBuf) -> Result<(), StartError> {
        let copied = guard(|| {
            copy::copy(
                &self.database.begin_read()?,
                &compaction::create(&path, CACHE)?,
            )
        });
        copied.map_err(|error| StartError::database(&path, error))
    }

    /// Compacts the file of the index. Returns the size of the file in bytes before and after.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn compact(mut self) -> Result<(u64, u64), StartError> {
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let before = length(&self.path);
        let done = guard(|| {
            // Each call compacts a part of the file, until nothing is left to compact.
            while self
                .database
                .compact()
                .map_err(|error| redb::Error::Corrupted(error.to_string()))?
            {}
            Ok(())
        });
        done.map_err(|error| StartError::database(&self.path, error))?;
        let path = self.path.clone();
        drop(self);
        Ok((before, length(&path)))
    }

    /// Checks that the node's own log is not behind.
    ///
    /// # Errors
    /// If the log has lost entries.
    pub fn follows(&self, last: u64) -> Result<(), StartError> {
        let applied = self.state.position;
        if last < applied {
            let path = self.path.clone();
            return Err(StartError::LogBehind {
                path,
                applied,
                last,
            });
        }
        Ok(())
    }

    /// Sets the log to apply. [`OpenedIndex::record_log`] makes the choice durable.
    ///
    /// # Errors
    /// If the index belongs to another log, even if it has not applied any of that log's entries.
    pub fn adopt(&mut self, log: u64) -> Result<(), StartError> {
        if self.state.log == 0 && self.state.position == 0 {
            self.state.log = log;
        }
        if self.state.log != log {
            let path = self.path.clone();
            return Err(StartError::OtherLog { path });
        }
        Ok(())
    }

    /// Records which log the index belongs to, once that log is on disk. If the log is lost before the index has
    /// applied any of its entries, the next start detects the loss.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn record_log(&self) -> Result<(), StartError> {
        let state = guard(|| copy::state(&self.database.begin_read()?));
        match state.map_err(|error| StartError::database(&self.path, error))? {
            Some(_) => Ok(()),
            None => self.write_state(),
        }
    }

    /// Continues with another log, after this position.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn continue_with(&mut self, log: u64, position: u64) -> Result<(), StartError> {
        self.state.log = log;
        self.state.position = position;
        self.write_state()
    }

    /// Writes the counters to disk.
    fn write_state(&self) -> Result<(), StartError> {
        let written = guard(|| {
            let mut txn = self.database.begin_write()?;
            txn.set_durability(Durability::Immediate)
                .map_err(redb::Error::from)?;
            let mut scratch = Vec::new();
            let row = row::encode(&[], &self.state, &mut scratch);
            txn.open_table(tables::META)?.insert(tables::STATE, row)?;
            txn.commit()?;
            Ok(())
        });
        written.map_err(|error| StartError::database(&self.path, error))
    }

    /// True if the index belongs to the log of a single node, according to the log's identity.
    pub fn has_own_log(&self) -> bool {
        embedded::is_identity(self.state.log)
    }

    /// Starts the thread. The thread ends after a last checkpoint when all senders of the feed are dropped.
    /// `checkpoint` receives the position of every checkpoint.
    pub fn start(
        self,
        feed: Receiver<Vec<Entry>>,
        effects: impl Effects,
        checkpoint: impl Fn(u64) + Send + 'static,
    ) -> Result<(Index, JoinHandle<()>), StartError> {
        let OpenedIndex {
            path,
            cache,
            in_memory,
            database,
            state,
        } = self;
        let position = state.position;
        let machine = guard(|| Machine::new(state, &database.begin_read()?));
        let machine = machine.map_err(|error| StartError::database(&path, error))?;
        let database = Current::new(database);
        let progress = Arc::new(Progress {
            applied: AtomicU64::new(position),
            committed: AtomicU64::new(position),
        });
        // Unbounded, but short: each waiting reader has at most one request.
        let (wanted, wants) = crossbeam_channel::unbounded();
        let (advanced, applied) = watch::channel(position);
        let (runs, running) = watch::channel(());
        let tails = machine.tails();
        let mut writer = writer::Writer {
            path: path.clone(),
            database: database.clone(),
            progress: progress.clone(),
            machine,
            feed,
            wants,
            kept: None,
            deferred_writes: overlay::DeferredWrites::default(),
            postponed: Vec::new(),
            advanced,
            effects,
            checkpoint,
        };
        let run = move || {
            if let Err(error) = guard(|| writer.run()) {
                // The error ends all waits for this thread.
                writer.fail(&error);
            }
            // The writer is dropped before the end of the thread is reported, so that no file is open afterwards.
            drop(writer);
            drop(runs);
        };
        let thread = std::thread::Builder::new()
            .name("courier index".to_owned())
            .spawn(run)
            .map_err(StartError::Thread)?;
        let index = Index {
            path: (!in_memory).then_some(path),
            cache,
            database,
            progress,
            tails,
            wanted,
            compacting: Arc::default(),
            applied,
            running,
        };
        Ok((index, thread))
    }
}

/// Creates all tables, so that readers find them.
fn make_tables(database: &Database) -> Result<(), redb::Error> {
    let txn = database.begin_write()?;
    drop(tables::Tables::open(&txn)?);
    txn.commit()?;
    Ok(())
}

/// Returns the version of the layout, if the index has one. The first layout had no table for it.
fn format(database: &Database) -> Result<Option<u32>, redb::Error> {
    let txn = database.begin_read()?;
    match txn.open_table(tables::FORMATS) {
        Ok(formats) => {
            let row = redb::ReadableTable::get(&formats, tables::STATE)?;
            Ok(row.map(|row| row.value()))
        }
        Err(TableError::TableDoesNotExist(_)) => {
            let is_new = txn.list_tables()?.next().is_none();
            Ok((!is_new).then_some(1))
        }
        Err(error) => Err(error.into()),
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
}
