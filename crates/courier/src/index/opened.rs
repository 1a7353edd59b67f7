//! An index that was opened: its checks, and the start of its thread.

use super::handle::Index;
use super::machine::{Machine, State};
use super::requests::{Current, Effects, Progress};
use super::writer::Writer;
use super::{compaction, copy, overlay, replacement, row, tables, upgrade};
use crate::database;
use crate::error::StartError;
use crate::guard::guard;
use crate::log::{Entry, embedded};
use crossbeam_channel::Receiver;
use redb::{Database, Durability, ReadableDatabase, TableError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// The name of the index's file in the data directory.
pub(crate) const FILE: &str = "index.redb";
/// The default size of redb's cache in bytes.
pub(crate) const CACHE: usize = 128 << 20;

/// An index that was opened, but whose thread is not running.
pub(crate) struct OpenedIndex {
    pub(super) path: PathBuf,
    pub(super) cache: usize,
    pub(super) in_memory: bool,
    pub(super) database: Database,
    pub(super) state: State,
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
                &replacement::create(&path, CACHE)?,
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
        let mut writer = Writer {
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
pub(super) fn make_tables(database: &Database) -> Result<(), redb::Error> {
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
