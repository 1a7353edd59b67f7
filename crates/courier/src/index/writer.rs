//! The thread that applies the log.

use super::keys::Recent;
use super::machine::{At, Machine, SideEffects};
use super::overlay::{CommitOverlay, Deferral, DeferredWrites};
use super::replacement::{CompactionBacklog, Replacement};
use super::requests::{ApplierRequest, Current, Effects, Progress};
use super::tables::Tables;
use crate::command::{Command, Outcome};
use crate::guard::guard;
use crate::log::{Entry, Reply};
use crossbeam_channel::{Receiver, bounded, select};
use redb::{Durability, ReadableDatabase, WriteTransaction};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The number of entries after which the transaction is committed.
const LARGEST_TRANSACTION: u64 = 1 << 13;
/// The time after the first entry of a transaction at which it is committed.
const LONGEST_TRANSACTION: Duration = Duration::from_millis(1000);
/// The additional time for a commit if many rows must still be written.
const LATEST_COMMIT: Duration = Duration::from_secs(5);
/// The maximum time before a commit if a reader waits.
const LONGEST_WANT: Duration = Duration::from_millis(500);
/// The number of written queue rows above which a commit takes long, so that messages are applied during it.
const MANY_WRITTEN: usize = 1 << 10;
/// The number of entries between checkpoints.
const CHECKPOINT_ENTRIES: u64 = 1 << 16;
/// The time between checkpoints. Checkpoints are rare, because the log's commits have to wait for a checkpoint.
const CHECKPOINT_TIME: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 20 });

/// The thread that applies the log. See the [module](self).
pub(super) struct Writer<E, C> {
    pub path: PathBuf,
    pub database: Current,
    pub progress: Arc<Progress>,
    pub machine: Machine,
    pub feed: Receiver<Vec<Entry>>,
    /// Requests, usually of readers that wait for a commit.
    pub wants: Receiver<ApplierRequest>,
    /// Entries that were applied since a compaction began.
    pub kept: Option<CompactionBacklog>,
    /// Changes applied during the last checkpoint.
    pub deferred_writes: DeferredWrites,
    /// Entries that arrived during a commit and need the tables.
    pub postponed: Vec<Entry>,
    pub advanced: watch::Sender<u64>,
    pub effects: E,
    pub checkpoint: C,
}

/// The mode in which a transaction is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitMode {
    /// The commit makes changes visible to readers. If it is large, messages are applied during the commit.
    Visible,
    /// On disk, and visible to readers.
    Durable,
    /// The commit also writes the changes to disk. Messages are applied during the commit.
    Concurrent,
}

/// The reason for a commit.
#[derive(PartialEq, Eq)]
enum Occasion {
    /// Commit, because a reader waits, or because the transaction is large or old enough.
    Commit,
    /// The feed has ended.
    Over,
}

impl<E: Effects, C: Fn(u64)> Writer<E, C> {
    /// Applies entries until the feed ends.
    pub fn run(&mut self) -> Result<(), redb::Error> {
        let mut saved = (self.machine.state.position, Instant::now());
        'transactions: loop {
            let mut waiting = Vec::new();
            let begun = self.machine.state.position;
            let postponed = std::mem::take(&mut self.postponed);
            // Wait until there is something to commit.
            let first = loop {
                // Messages applied during the last commit must be written and made visible.
                if begun > self.progress.committed.load(Acquire) || !postponed.is_empty() {
                    break Some(postponed);
                }
                let idle = saved.1 + CHECKPOINT_TIME;
                let behind = begun > saved.0;
                select! {
                    recv(self.feed) -> entries => break entries.ok(),
                    recv(self.wants) -> want => {
                        if let Ok(want) = want {
                            self.serve(want, &mut saved)?;
                            // Messages may have been accepted during the commit.
                            continue 'transactions;
                        }
                    }
                    default(idle.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))) => {
                        if behind {
                            // The next transaction is a checkpoint, during which messages are applied.
                            break Some(Vec::new());
                        }
                        saved.1 = Instant::now();
                    }
                }
            };
            let Some(first) = first else {
                return self.save(CommitMode::Durable, &mut saved);
            };
            let due = saved.0 + CHECKPOINT_ENTRIES;
            let checkpoint =
                begun + first.len() as u64 >= due || saved.1.elapsed() >= CHECKPOINT_TIME;
            let how = match checkpoint {
                true => CommitMode::Concurrent,
                false => CommitMode::Visible,
            };
            let (occasion, position) = self.commit(how, |writer, tables, recent| {
                writer.transaction(tables, recent, first, &mut waiting)
            })?;
            if checkpoint {
                self.saved(&mut saved, position);
            }
            for want in waiting {
                self.serve(want, &mut saved)?;
            }
            if occasion == Occasion::Over {
                return self.save(CommitMode::Durable, &mut saved);
            }
        }
    }

    /// Applies entries until the transaction must be committed.
    fn transaction(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        first: Vec<Entry>,
        waiting: &mut Vec<ApplierRequest>,
    ) -> Result<Occasion, redb::Error> {
        let begun = Instant::now();
        let last = self.machine.state.position + LARGEST_TRANSACTION;
        let mut wanted = None;
        self.apply(tables, recent, first)?;
        loop {
            // Rows are written between entries, so that no entry waits for all rows of the earlier ones.
            let now = Instant::now();
            let end = begun + LONGEST_TRANSACTION;
            let due = now >= end || !waiting.is_empty() || self.machine.state.position >= last;
            let more = self.machine.write_some(tables, due)?;
            // The commit writes the remaining rows, and no entries are applied in that time.
            let late = wanted.map_or(begun + LATEST_COMMIT, |wanted| wanted + LONGEST_WANT);
            if due && (!more || now >= late) {
                return Ok(Occasion::Commit);
            }
            let pause = match more {
                true => Duration::ZERO,
                false => end.saturating_duration_since(now),
            };
            select! {
                recv(self.feed) -> entries => match entries {
                    Ok(entries) => self.apply(tables, recent, entries)?,
                    Err(_) => return Ok(Occasion::Over),
                },
                recv(self.wants) -> want => {
                    wanted = wanted.or(Some(now));
                    waiting.extend(want);
                    waiting.extend(self.wants.try_iter());
                }
                default(pause) => {}
            }
        }
    }

    /// Serves a request between two transactions.
    fn serve(
        &mut self,
        want: ApplierRequest,
        saved: &mut (u64, Instant),
    ) -> Result<(), redb::Error> {
        match want {
            ApplierRequest::Commit(reply) => {
                let _ = reply.send(());
            }
            ApplierRequest::Snapshot(keep, reply) => {
                if keep {
                    // The snapshot lacks messages that are applied during the commit, so they are stored from now on.
                    self.kept = Some(CompactionBacklog::default());
                }
                self.save(CommitMode::Concurrent, saved)?;
                let snapshot = self.database.get().begin_read()?;
                let _ = reply.send(snapshot);
            }
            ApplierRequest::CompactionBacklog(reply) => {
                let kept = self.kept.as_mut().and_then(CompactionBacklog::take);
                let _ = reply.send(kept);
            }
            ApplierRequest::Forget => self.kept = None,
            ApplierRequest::Replace(copy, reply) => {
                let replaced = self.replace(copy);
                self.kept = None;
                if replaced.is_ok() {
                    self.saved(saved, self.machine.state.position);
                }
                let _ = reply.send(replaced);
            }
        }
        Ok(())
    }

    /// Continues with a copy, when the copy is complete.
    fn replace(&mut self, mut copy: Box<Replacement>) -> Result<(), String> {
        let left = self.kept.as_mut().and_then(CompactionBacklog::take);
        let left =
            left.ok_or("too much was stored during the compaction; try again under less load")?;
        let applied = guard(|| copy.apply(left, true));
        applied.map_err(|error| error.to_string())?;
        if copy.machine.state != self.machine.state {
            return Err(
                "the copy differs from the original, which is a fault of the program".to_owned(),
            );
        }
        std::fs::rename(&copy.path, &self.path).map_err(|error| error.to_string())?;
        if let Some(directory) = self.path.parent() {
            // After a crash either file is a valid index, because the log has the entries that the older file lacks.
            let _ = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
        }
        self.database.set(copy.database);
        self.machine.replace(copy.machine);
        Ok(())
    }

    /// Applies a group of entries, answers their submitters, and delivers their messages.
    fn apply(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        entries: Vec<Entry>,
    ) -> Result<(), redb::Error> {
        let mut caused = SideEffects::default();
        let mut answers = Vec::with_capacity(entries.len());
        for entry in entries {
            let at = At {
                position: entry.position,
                taken: entry.taken,
            };
            self.keep(at, entry.command.as_ref());
            let Some(command) = entry.command else {
                self.machine.skip(at);
                continue;
            };
            let machine = &mut self.machine;
            let outcome = machine.apply(tables, recent, at, command, &mut caused)?;
            for (user, session) in caused.closed.drain(..) {
                self.effects.session_closed(user, session);
            }
            for (conversation, members) in caused.changed.drain(..) {
                self.effects.conversation_changed(conversation, &members);
            }
            if let Some(reply) = entry.reply {
                answers.push((reply, outcome));
            }
        }
        self.answer(answers, &mut caused);
        // Rows are written after the answers, which do not depend on them.
        if self.machine.has_many_rows() {
            self.machine.write(tables)?;
        }
        Ok(())
    }

    /// Sends the results of entries, and delivers their messages.
    fn answer(&mut self, answers: Vec<(Reply, Outcome)>, caused: &mut SideEffects) {
        let position = self.machine.state.position;
        // The position is published before the answers, so that a client that reads after an answer finds its own
        // write.
        self.progress.applied.store(position, Release);
        self.advanced.send_replace(position);
        for (reply, outcome) in answers {
            let _ = reply.send(Ok(outcome));
        }
        if !caused.deliveries.is_empty() {
            self.effects.deliver(&mut caused.deliveries);
        }
    }

    /// Commits a transaction on a separate thread. Commands that need no tables are applied during the commit.
    fn commit_concurrently(
        &mut self,
        txn: WriteTransaction,
        mut overlay: CommitOverlay,
    ) -> Result<(), redb::Error> {
        let (done, committed_signal) = bounded(1);
        let commit = move || drop(done.send(guard(|| Ok(txn.commit()?))));
        let thread = std::thread::Builder::new().name("courier checkpoint".to_owned());
        let thread = thread.spawn(commit)?;
        let ended = loop {
            if !self.postponed.is_empty() {
                break committed_signal.recv();
            }
            select! {
                recv(committed_signal) -> ended => break ended,
                recv(self.feed) -> entries => match entries {
                    Ok(entries) => self.apply_entries_during_commit(entries, &mut overlay)?,
                    // The feed is closed; the next transaction handles that.
                    Err(_) => break committed_signal.recv(),
                },
            }
        };
        self.deferred_writes = overlay.after;
        // The thread has already reported its result.
        let _ = thread.join();
        ended.unwrap_or_else(|_| {
            let reason = "the thread of a checkpoint has ended early".to_owned();
            Err(redb::Error::Corrupted(reason))
        })
    }

    /// Applies entries up to the first one that needs the tables; the rest is [postponed](Writer::postponed).
    fn apply_entries_during_commit(
        &mut self,
        entries: Vec<Entry>,
        overlay: &mut CommitOverlay,
    ) -> Result<(), redb::Error> {
        let mut caused = SideEffects::default();
        let mut answers = Vec::with_capacity(entries.len());
        let mut entries = entries.into_iter();
        for mut entry in entries.by_ref() {
            let at = At {
                position: entry.position,
                taken: entry.taken,
            };
            let Some(command) = entry.command.take() else {
                self.machine.skip(at);
                self.keep(at, None);
                continue;
            };
            let copy = self.kept.is_some().then(|| command.clone());
            let machine = &mut self.machine;
            match machine.apply_during_commit(
                overlay,
                at,
                command,
                &mut entry.reply,
                &mut caused,
            )? {
                Deferral::Applied(outcome) => answers.extend(entry.reply.map(|to| (to, outcome))),
                Deferral::Waits => {}
                Deferral::NeedsTables(command) => {
                    entry.command = Some(command);
                    self.postponed.push(entry);
                    break;
                }
            }
            self.keep(at, copy.as_ref());
        }
        self.postponed.extend(entries);
        self.answer(answers, &mut caused);
        Ok(())
    }

    /// Stores an entry, if a compaction runs.
    fn keep(&mut self, at: At, command: Option<&Command>) {
        if let Some(kept) = &mut self.kept {
            kept.push(at, command);
        }
    }

    /// Runs `work` in a transaction and commits it. Also returns the position of the last entry in it.
    fn commit<T>(
        &mut self,
        how: CommitMode,
        work: impl FnOnce(&mut Self, &mut Tables<'_>, &mut Recent<'_>) -> Result<T, redb::Error>,
    ) -> Result<(T, u64), redb::Error> {
        let database = self.database.get();
        let mut txn = database.begin_write()?;
        let to_disk = how != CommitMode::Visible;
        let durability = match to_disk {
            true => Durability::Immediate,
            false => Durability::None,
        };
        txn.set_durability(durability).map_err(redb::Error::from)?;
        // Without this, a node that was killed would scan the complete index at its next start.
        txn.set_quick_repair(to_disk);
        let (done, added) = {
            let mut tables = Tables::open(&txn)?;
            let mut recent = Recent::open(&txn, &self.machine.state.days)?;
            let taken = std::mem::take(&mut self.deferred_writes);
            taken.settle(&mut self.machine, &mut tables, &mut recent)?;
            let done = work(self, &mut tables, &mut recent)?;
            self.machine.save(&mut tables, to_disk)?;
            (done, recent.into_added())
        };
        let position = self.machine.state.position;
        let takes_long = self.machine.take_written() >= MANY_WRITTEN;
        match how {
            CommitMode::Visible if !takes_long => txn.commit()?,
            CommitMode::Durable => txn.commit()?,
            CommitMode::Visible | CommitMode::Concurrent => {
                // The state before this transaction, which is not committed yet.
                let before = database.begin_read()?;
                let days = &self.machine.state.days.tables;
                let overlay = CommitOverlay::new(&before, days, added)?;
                self.commit_concurrently(txn, overlay)?;
            }
        }
        self.progress.committed.store(position, Release);
        Ok((done, position))
    }

    /// Writes all applied entries to disk, unless they are already there.
    fn save(&mut self, how: CommitMode, saved: &mut (u64, Instant)) -> Result<(), redb::Error> {
        let mut position = self.machine.state.position;
        if saved.0 < position {
            ((), position) = self.commit(how, |_, _, _| Ok(()))?;
        }
        self.saved(saved, position);
        Ok(())
    }

    fn saved(&self, saved: &mut (u64, Instant), position: u64) {
        *saved = (position, Instant::now());
        (self.checkpoint)(position);
    }

    /// Reports that the index has failed. The channels of the thread are then closed, which ends all waits for an
    /// answer.
    pub fn fail(&self, error: &redb::Error) {
        tracing::error!(
            "the index {} has failed: {error}; the log has all data, so remove the cause and restart the node",
            self.path.display()
        );
    }
}
