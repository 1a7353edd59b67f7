//! The writer of the write-ahead log: appends waiting writes, and passes them to their tasks.

use super::{Durability, Submission, WriteLog, Writer};
use crate::engine::report::WriteError;
use crate::engine::state::EngineState;
use corsair_journal::{Journal, Record};
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The maximum size of a record of several writes, in bytes.
const LARGEST_RECORD: usize = 4 << 20;
/// The number of records that a writer appends for others before a thread continues.
const TURNS: usize = 8;

impl WriteLog {
    /// Logs a write, gives it to its tasks and replies. This may happen later, on another thread.
    pub(in crate::engine) fn submit(&self, engine: &EngineState, submission: Submission) {
        match &mut *self.waiting.lock() {
            Some(waiting) => waiting.push(submission),
            None => {
                let _ = submission.reply.send(Err(WriteError::Closed));
                return;
            }
        }
        if self.durability == Durability::Always {
            return self.wake();
        }
        for _ in 0..TURNS {
            // Whoever holds the lock appends all waiting writes, or wakes the thread that does.
            let Some(mut writer) = self.writer.try_lock() else {
                return;
            };
            self.write_waiting(engine, &mut writer);
            drop(writer);
            if !self.has_waiting() {
                return;
            }
        }
        self.wake();
    }

    /// Logs the waiting writes and refuses all later ones. Returns when all records are on disk.
    pub(in crate::engine) fn close(&self, engine: &EngineState) {
        let mut writer = self.writer.lock();
        let rest = self.waiting.lock().take();
        self.write(engine, &mut writer, rest.unwrap_or_default());
        let _ = writer.journal.sync();
        writer.journal.trim();
    }

    fn write_waiting(&self, engine: &EngineState, writer: &mut Writer) {
        let waiting = self.waiting.lock().as_mut().map(std::mem::take);
        self.write(engine, writer, waiting.unwrap_or_default());
    }

    /// Logs writes, gives them to their tasks and replies.
    fn write(&self, engine: &EngineState, writer: &mut Writer, submissions: Vec<Submission>) {
        let mut submissions = submissions.into_iter().peekable();
        while submissions.peek().is_some() {
            writer.record.begin();
            let mut group = Vec::new();
            while writer.record.len() < LARGEST_RECORD
                && let Some(submission) = submissions.next()
            {
                submission.parsed.append_to(writer.record.bytes());
                group.push(submission);
            }
            let first = engine.position.load(Ordering::SeqCst) + 1;
            match self.append(writer, first, group.len()) {
                Ok(()) => give(engine, first, group),
                Err(error) => {
                    tracing::error!("the log cannot be written: {error}");
                    let reason: Arc<str> = error.to_string().into();
                    for submission in group {
                        let refused = Err(WriteError::Log(reason.clone()));
                        let _ = submission.reply.send(refused);
                    }
                }
            }
        }
    }
}

/// Gives logged writes to their tasks and replies.
fn give(engine: &EngineState, first: u64, group: Vec<Submission>) {
    for (position, submission) in (first..).zip(group) {
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

/// Opens the log of an engine, and starts its threads.
pub(in crate::engine) fn start(
    engine: &Weak<EngineState>,
    mut journal: Journal,
    durability: Durability,
) -> io::Result<WriteLog> {
    let (wake, wakes) = sync_channel(1);
    thread("corsair-log", engine.clone(), move |engine| {
        wakes.recv().ok()?;
        let engine = engine.upgrade()?;
        let log = engine.write_log.get()?;
        log.with_writer(|writer| log.write_waiting(&engine, writer));
        Some(())
    })?;
    let (unsynced, signals) = sync_channel(1);
    if let Durability::Interval(interval) = durability {
        journal = journal.defer_rotation();
        thread("corsair-sync", engine.clone(), move |engine| {
            wait_for_sync(&signals, interval)?;
            engine.upgrade()?.write_log.get()?.sync_in_time();
            Some(())
        })?;
    }
    Ok(WriteLog {
        durability,
        waiting: Mutex::new(Some(Vec::new())),
        identity: journal.identity(),
        writer: Mutex::new(Writer {
            journal,
            record: Record::default(),
            unsynced: false,
        }),
        wake,
        unsynced,
        failed: AtomicBool::new(false),
        bytes: AtomicU64::new(0),
    })
}

/// Starts a thread that repeats a turn until it returns `None`.
fn thread(
    name: &str,
    engine: Weak<EngineState>,
    turn: impl Fn(&Weak<EngineState>) -> Option<()> + Send + 'static,
) -> io::Result<()> {
    let run = move || while turn(&engine).is_some() {};
    let started = std::thread::Builder::new().name(name.into()).spawn(run);
    started.map(drop)
}

/// Waits for the first record after a sync, and then for the interval. `None`: the log is gone.
fn wait_for_sync(signals: &Receiver<()>, interval: Duration) -> Option<()> {
    signals.recv().ok()?;
    match signals.recv_timeout(interval) {
        Err(RecvTimeoutError::Disconnected) => None,
        _ => Some(()),
    }
}
