//! The write-ahead log: accepted writes on disk, in the order in which they are passed to tasks.
//!
//! A write is appended to the log before it is passed to any task and before it is answered, so no answered write is
//! lost when the process is killed. A single thread takes all waiting writes as one record and appends the record. With
//! [`Durability::Always`] it also syncs the record. Then it passes the writes to their tasks in the order of the log. A
//! checkpoint records the position of the last write before its barrier. After a crash, the writes after that position
//! are passed again to the tasks that existed when these writes were parsed.

use super::parse::ParsedWrite;
use super::write::WriteReport;
use super::{EngineState, WriteError};
use corsair_journal::{Journal, JournalError, Record};
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
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

/// The maximum size of a record of several writes, in bytes.
const LARGEST_RECORD: usize = 4 << 20;

/// An open log. The thread ends when this is dropped or closed.
#[derive(Debug)]
pub(super) struct WriteLog {
    work: Sender<Work>,
    thread: Mutex<Option<JoinHandle<()>>>,
    failed: Arc<AtomicBool>,
    /// The number of bytes that were appended.
    bytes: Arc<AtomicU64>,
    pub(super) identity: u64,
}

enum Work {
    Write(Submission),
    /// Requests the file with the last record; earlier files are on disk.
    File(Sender<io::Result<File>>),
    /// Writes up to this position are in a checkpoint.
    Discard(u64),
    Close,
}

/// A write that waits to be logged.
pub(super) struct Submission {
    pub(super) parsed: ParsedWrite,
    /// The permit, held until all tasks have received the write.
    pub(super) permit: OwnedSemaphorePermit,
    pub(super) reply: oneshot::Sender<Result<WriteReport, WriteError>>,
}

impl WriteLog {
    /// Logs a write, gives it to its tasks and replies.
    pub(super) fn submit(&self, submission: Submission) {
        if let Err(refused) = self.work.send(Work::Write(submission))
            && let Work::Write(submission) = refused.0
        {
            let _ = submission.reply.send(Err(WriteError::Closed));
        }
    }

    /// Waits until all records are on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        let (reply, file) = channel();
        let _ = self.work.send(Work::File(reply));
        match file.recv() {
            Ok(file) => file?.sync_data(),
            // A log that was closed has synced all records.
            Err(_) => Ok(()),
        }
    }

    /// Removes files of writes up to this position.
    pub(super) fn discard_through(&self, position: u64) {
        let _ = self.work.send(Work::Discard(position));
    }

    /// True if the disk has refused a record, and no more can be written.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that were appended.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Ends the thread, and waits until all records are on disk.
    pub(super) fn close(&self) {
        let _ = self.work.send(Work::Close);
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

/// Starts the thread that appends.
pub(super) fn start(
    engine: Weak<EngineState>,
    journal: Journal,
    durability: Durability,
) -> io::Result<WriteLog> {
    let (work, received) = channel();
    let failed = Arc::new(AtomicBool::new(false));
    let bytes = Arc::new(AtomicU64::new(0));
    let syncer = match durability {
        Durability::Interval(_) => Some(syncer(failed.clone())?),
        _ => None,
    };
    let identity = journal.identity();
    let mut writer = Writer {
        engine,
        journal,
        durability,
        syncer,
        failed: failed.clone(),
        bytes: bytes.clone(),
        unsynced: None,
    };
    let thread = std::thread::Builder::new()
        .name("corsair-log".into())
        .spawn(move || writer.run(&received))?;
    Ok(WriteLog {
        work,
        thread: Mutex::new(Some(thread)),
        failed,
        bytes,
        identity,
    })
}

/// A thread that syncs files, so that no write waits for it.
fn syncer(failed: Arc<AtomicBool>) -> io::Result<SyncSender<File>> {
    let (files, received) = sync_channel::<File>(1);
    std::thread::Builder::new()
        .name("corsair-sync".into())
        .spawn(move || {
            for file in received {
                if let Err(error) = file.sync_data() {
                    tracing::error!("the log cannot be synced: {error}");
                    failed.store(true, Ordering::Relaxed);
                }
            }
        })?;
    Ok(files)
}

/// The thread that appends.
struct Writer {
    engine: Weak<EngineState>,
    journal: Journal,
    durability: Durability,
    syncer: Option<SyncSender<File>>,
    failed: Arc<AtomicBool>,
    bytes: Arc<AtomicU64>,
    /// The time of the first record that has not been synced.
    unsynced: Option<Instant>,
}

impl Writer {
    fn run(&mut self, received: &Receiver<Work>) {
        let mut record = Record::default();
        let mut group = Vec::new();
        let mut open = true;
        while open {
            let Some(first) = self.next(received) else {
                break;
            };
            record.begin();
            let (mut discard, mut asked) = (None, None);
            for work in first.into_iter().chain(received.try_iter()) {
                match work {
                    Work::Write(submission) => {
                        submission.parsed.append_to(record.bytes());
                        group.push(submission);
                    }
                    Work::Discard(position) => discard = Some(position),
                    Work::File(reply) => asked = Some(reply),
                    Work::Close => open = false,
                }
                if !open || asked.is_some() || record.len() >= LARGEST_RECORD {
                    break;
                }
            }
            if !group.is_empty() {
                self.write(&mut record, &mut group);
            }
            if let Some(reply) = asked {
                let _ = reply.send(self.journal.file());
            }
            if let Some(position) = discard {
                self.journal.discard_through(position);
            }
            self.sync_in_time();
        }
        let _ = self.journal.sync();
        self.journal.trim();
    }

    /// Waits for work until the next sync is due. `None`: the log is closed.
    fn next(&self, received: &Receiver<Work>) -> Option<Option<Work>> {
        let Some(due) = self.due() else {
            return received.recv().ok().map(Some);
        };
        match received.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(work) => Some(Some(work)),
            Err(RecvTimeoutError::Timeout) => Some(None),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Returns the time of the next sync.
    fn due(&self) -> Option<Instant> {
        match self.durability {
            Durability::Interval(interval) => self.unsynced?.checked_add(interval),
            _ => None,
        }
    }

    fn sync_in_time(&mut self) {
        if self.due().is_none_or(|due| Instant::now() < due) {
            return;
        }
        let (Ok(file), Some(syncer)) = (self.journal.file(), &self.syncer) else {
            return;
        };
        // If the last sync is still in progress, the next attempt is made after an interval.
        self.unsynced = match syncer.try_send(file) {
            Ok(()) => None,
            Err(_) => Some(Instant::now()),
        };
    }

    /// Logs a group of writes, gives them to their tasks and replies.
    fn write(&mut self, record: &mut Record, group: &mut Vec<Submission>) {
        let Some(engine) = self.engine.upgrade() else {
            return group.clear();
        };
        let first = engine.position.load(Ordering::SeqCst) + 1;
        if let Err(error) = self.append(record, first, group.len()) {
            tracing::error!("the log cannot be written: {error}");
            let reason: Arc<str> = error.to_string().into();
            for submission in group.drain(..) {
                let _ = submission.reply.send(Err(WriteError::Log(reason.clone())));
            }
            return;
        }
        for (position, submission) in (first..).zip(group.drain(..)) {
            let Submission {
                parsed,
                permit,
                reply,
            } = submission;
            let written = {
                let _order = engine.order.read();
                let written = engine.give(parsed);
                engine.position.store(position, Ordering::SeqCst);
                written
            };
            drop(permit);
            let _ = reply.send(Ok(written));
        }
    }

    fn append(&mut self, record: &mut Record, first: u64, count: usize) -> io::Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(io::Error::other(
                "an earlier sync has failed, so the log is closed; start the server again",
            ));
        }
        self.journal.append(record, first, count as u32)?;
        self.bytes.fetch_add(record.len() as u64, Ordering::Relaxed);
        if self.durability == Durability::Always {
            let synced = self.journal.sync();
            // It is unknown how much of the record is on disk.
            synced.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?;
        } else {
            self.unsynced.get_or_insert_with(Instant::now);
        }
        Ok(())
    }
}
