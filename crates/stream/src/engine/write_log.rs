//! The write-ahead log: accepted writes on disk, in the order in which they are passed to tasks.
//!
//! A write is appended to the log before it is passed to any task and before it is answered, so no answered write is
//! lost when the process is killed. One writer at a time appends all waiting writes as one record, and passes them to
//! their tasks in the order of the log. With [`Durability::Always`] the writer is a thread of its own, which also syncs
//! the record. With [`Durability::Interval`] it is whoever writes while nobody else does ("flat combining", Hendler and
//! others, 2010), because a change of threads takes longer than the copy of a record to the page cache.
//!
//! A checkpoint records the position of the last write before its barrier. After a crash, the writes after that position
//! are passed again to the tasks that existed when these writes were parsed.

pub(super) mod writer;

use super::parse::ParsedWrite;
use super::report::{WriteError, WriteReport};
use corsair_journal::{Journal, JournalError, Record};
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The kind of crash that answered writes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// There is no log: a kill loses the writes since the last checkpoint.
    Memory,
    /// A kill loses nothing; a power failure may lose the writes of the last interval.
    Interval(Duration),
    /// Neither a kill nor a power failure loses a write, because it is synced before it is answered.
    Always,
}

/// The reasons why a write-ahead log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The files cannot be read or written, or are damaged.
    #[error("{0}; to start without it, move the directory away")]
    Journal(#[from] JournalError),
    /// A write of the log cannot be passed to its tasks.
    #[error("{directory}: {reason}; to start without it, move the directory away")]
    Replay {
        /// The directory of the log.
        directory: String,
        /// The reason.
        reason: String,
    },
    /// The log belongs to another state.
    #[error(
        "the log in {directory} belongs to another saved state; bring back the file `saved` that was beside it, or move both away"
    )]
    OtherState {
        /// The directory of the log.
        directory: String,
    },
    /// The system has no thread or no random numbers for the log.
    #[error("cannot start the log: {0}")]
    System(#[from] io::Error),
}

/// An open log. Its threads end when this is dropped.
#[derive(Debug)]
pub(super) struct WriteLog {
    durability: Durability,
    /// The writes that wait to be logged, in order; `None` if the log is closed.
    waiting: Mutex<Option<Vec<Submission>>>,
    writer: Mutex<Writer>,
    /// Wakes the thread that appends waiting writes.
    wake: SyncSender<()>,
    /// Starts the wait for the next sync.
    unsynced: SyncSender<()>,
    failed: AtomicBool,
    /// The number of bytes that were appended.
    bytes: AtomicU64,
    pub(super) identity: u64,
}

#[derive(Debug)]
struct Writer {
    journal: Journal,
    record: Record,
    /// True if a record has been appended after the last sync began.
    unsynced: bool,
}

/// A write that waits to be logged.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) parsed: ParsedWrite,
    /// The permit, held until all tasks have received the write.
    pub(super) permit: OwnedSemaphorePermit,
    pub(super) reply: oneshot::Sender<Result<WriteReport, WriteError>>,
}

impl WriteLog {
    /// Waits until all records are on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.with_writer(|writer| writer.journal.unsynced()).sync()
    }

    /// Removes files of writes up to this position.
    pub(super) fn discard_through(&self, position: u64) {
        self.with_writer(|writer| writer.journal.discard_through(position));
    }

    /// True if the disk has refused a record, and no more can be written.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that were appended.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        // If the channel is full, the thread has not yet looked.
        let _ = self.wake.try_send(());
    }

    fn has_waiting(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    /// Calls `act` while no other thread appends. Writes that arrive in this time must not be forgotten.
    fn with_writer<T>(&self, act: impl FnOnce(&mut Writer) -> T) -> T {
        let done = act(&mut self.writer.lock());
        if self.has_waiting() {
            self.wake();
        }
        done
    }

    fn append(&self, writer: &mut Writer, first: u64, count: usize) -> io::Result<()> {
        if self.has_failed() {
            return Err(io::Error::other(
                "an earlier sync has failed, so the log is closed; start the server again",
            ));
        }
        let Writer {
            journal,
            record,
            unsynced,
        } = writer;
        journal.append(record, first, count as u32)?;
        self.bytes.fetch_add(record.len() as u64, Ordering::Relaxed);
        if self.durability == Durability::Always {
            let synced = journal.sync();
            // It is unknown how much of the record is on disk.
            synced.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?;
        } else if !std::mem::replace(unsynced, true) {
            let _ = self.unsynced.try_send(());
        }
        Ok(())
    }

    /// Syncs all records, so that writes need not wait for it.
    fn sync_in_time(&self) {
        let unsynced = self.with_writer(|writer| {
            writer.unsynced = false;
            writer.journal.unsynced()
        });
        if let Err(error) = unsynced.sync() {
            tracing::error!("the log cannot be synced: {error}");
            self.failed.store(true, Ordering::Relaxed);
        }
    }
}
