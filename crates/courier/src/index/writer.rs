//! The thread that applies the log.

use super::compaction::{Current, Kept, Replacement, Want};
use super::flight::{Flight, Flown, Taken};
use super::keys::Recent;
use super::machine::{At, Caused, Machine};
use super::tables::Tables;
use super::{Effects, Progress};
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

/// A transaction is committed when it has applied this many entries,
const LARGEST_TRANSACTION: u64 = 1 << 13;
/// or this long after the first of them.
const LONGEST_TRANSACTION: Duration = Duration::from_millis(250);
/// but later, by this, if many rows are still to be written,
const LATEST_COMMIT: Duration = Duration::from_secs(5);
/// or by this, if a reader waits.
const LONGEST_WANT: Duration = Duration::from_millis(500);
/// With as many rows of queues in it, a commit takes long enough to apply messages meanwhile.
const MANY_WRITTEN: usize = 1 << 10;
/// What is applied is written to disk after this many entries,
const CHECKPOINT_ENTRIES: u64 = 1 << 16;
/// or after this time. While it goes to disk the log's commits wait behind it, so it is seldom.
const CHECKPOINT_TIME: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 20 });

/// See the [module](self).
pub(super) struct Writer<E, C> {
    pub path: PathBuf,
    pub database: Current,
    pub progress: Arc<Progress>,
    pub machine: Machine,
    pub feed: Receiver<Vec<Entry>>,
    /// What is asked, by readers that wait for a commit most of the time.
    pub wants: Receiver<Want>,
    /// Entries that were applied since a compaction began.
    pub kept: Option<Kept>,
    /// What was taken during the last checkpoint.
    pub taken: Taken,
    /// Entries that came during it and need the tables.
    pub grounded: Vec<Entry>,
    pub advanced: watch::Sender<u64>,
    pub effects: E,
    pub checkpoint: C,
}

/// How a transaction is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Readers see it. If there is much to commit, messages are applied meanwhile.
    Visible,
    /// It is on disk as well.
    Durable,
    /// As that, and meanwhile messages are applied.
    Beside,
}

/// Why a transaction is committed.
#[derive(PartialEq, Eq)]
enum Occasion {
    /// A reader waits, or it is large or old enough.
    Commit,
    /// Nothing more will come.
    Over,
}

impl<E: Effects, C: Fn(u64)> Writer<E, C> {
    /// Applies entries until the feed ends.
    pub fn run(&mut self) -> Result<(), redb::Error> {
        let mut saved = (self.machine.state.position, Instant::now());
        'transactions: loop {
            let mut waiting = Vec::new();
            let begun = self.machine.state.position;
            let grounded = std::mem::take(&mut self.grounded);
            // Between transactions there is nothing to commit.
            let first = loop {
                // What was taken beside the last commit is to be written and seen.
                if begun > self.progress.committed.load(Acquire) || !grounded.is_empty() {
                    break Some(grounded);
                }
                let idle = saved.1 + CHECKPOINT_TIME;
                let behind = begun > saved.0;
                select! {
                    recv(self.feed) -> entries => break entries.ok(),
                    recv(self.wants) -> want => {
                        if let Ok(want) = want {
                            self.serve(want, &mut saved)?;
                            // Messages may have been taken meanwhile.
                            continue 'transactions;
                        }
                    }
                    default(idle.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))) => {
                        if behind {
                            // The checkpoint below, beside which messages are applied.
                            break Some(Vec::new());
                        }
                        saved.1 = Instant::now();
                    }
                }
            };
            let Some(first) = first else {
                return self.save(How::Durable, &mut saved);
            };
            let due = saved.0 + CHECKPOINT_ENTRIES;
            let checkpoint =
                begun + first.len() as u64 >= due || saved.1.elapsed() >= CHECKPOINT_TIME;
            let how = match checkpoint {
                true => How::Beside,
                false => How::Visible,
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
                return self.save(How::Durable, &mut saved);
            }
        }
    }

    /// Applies what comes until the transaction is to be committed.
    fn transaction(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        first: Vec<Entry>,
        waiting: &mut Vec<Want>,
    ) -> Result<Occasion, redb::Error> {
        let begun = Instant::now();
        let last = self.machine.state.position + LARGEST_TRANSACTION;
        let mut wanted = None;
        self.apply(tables, recent, first)?;
        loop {
            // Between entries, so that none waits for all that those before it have left to write.
            let now = Instant::now();
            let end = begun + LONGEST_TRANSACTION;
            let due = now >= end || !waiting.is_empty() || self.machine.state.position >= last;
            let more = self.machine.write_some(tables, due)?;
            // A commit writes what is left, and meanwhile nothing is applied.
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

    /// Does what was asked, between two transactions.
    fn serve(&mut self, want: Want, saved: &mut (u64, Instant)) -> Result<(), redb::Error> {
        match want {
            Want::Commit(reply) => {
                let _ = reply.send(());
            }
            Want::Snapshot(keep, reply) => {
                if keep {
                    // What is taken beside the commit is not in the snapshot.
                    self.kept = Some(Kept::default());
                }
                self.save(How::Beside, saved)?;
                let snapshot = self.database.get().begin_read()?;
                let _ = reply.send(snapshot);
            }
            Want::Kept(reply) => {
                let kept = self.kept.as_mut().and_then(Kept::take);
                let _ = reply.send(kept);
            }
            Want::Forget => self.kept = None,
            Want::Replace(copy, reply) => {
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

    /// Goes on with a copy, once it has everything.
    fn replace(&mut self, mut copy: Box<Replacement>) -> Result<(), String> {
        let left = self.kept.as_mut().and_then(Kept::take);
        let left =
            left.ok_or("too much was stored meanwhile; try again when there is less to do")?;
        let applied = guard(|| copy.apply(left, true));
        applied.map_err(|error| error.to_string())?;
        if copy.machine.state != self.machine.state {
            return Err(
                "the copy differs from what was copied; this is a fault of the program".to_owned(),
            );
        }
        std::fs::rename(&copy.path, &self.path).map_err(|error| error.to_string())?;
        if let Some(directory) = self.path.parent() {
            // Either of the two files is the whole index: the log has what the older one lacks.
            let _ = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
        }
        self.database.set(copy.database);
        self.machine.replace(copy.machine);
        Ok(())
    }

    /// Applies a group of entries, answers those who submitted them, and has them delivered.
    fn apply(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        entries: Vec<Entry>,
    ) -> Result<(), redb::Error> {
        let mut caused = Caused::default();
        let mut answers = Vec::with_capacity(entries.len());
        for entry in entries {
            let at = At {
                position: entry.position,
                digest: entry.digest,
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
        // After the answers, which need not wait for the tables.
        if self.machine.has_many_rows() {
            self.machine.write(tables)?;
        }
        Ok(())
    }

    /// Says what came of entries, and has their messages delivered.
    fn answer(&mut self, answers: Vec<(Reply, Outcome)>, caused: &mut Caused) {
        let position = self.machine.state.position;
        // Before the answers: a client that is answered and reads gets what it was told of.
        self.progress.applied.store(position, Release);
        self.advanced.send_replace(position);
        for (reply, outcome) in answers {
            let _ = reply.send(Ok(outcome));
        }
        if !caused.deliveries.is_empty() {
            self.effects.deliver(&mut caused.deliveries);
        }
    }

    /// Commits a transaction on a thread of its own. What comes meanwhile and needs no tables is applied.
    fn land(&mut self, txn: WriteTransaction, mut flight: Flight) -> Result<(), redb::Error> {
        let (done, landed) = bounded(1);
        let commit = move || drop(done.send(guard(|| Ok(txn.commit()?))));
        let thread = std::thread::Builder::new().name("courier checkpoint".to_owned());
        let thread = thread.spawn(commit)?;
        let ended = loop {
            if !self.grounded.is_empty() {
                break landed.recv();
            }
            select! {
                recv(landed) -> ended => break ended,
                recv(self.feed) -> entries => match entries {
                    Ok(entries) => self.apply_in_flight(entries, &mut flight)?,
                    // The next transaction finds that there is nothing more.
                    Err(_) => break landed.recv(),
                },
            }
        };
        self.taken = flight.after;
        // It has said what came of it.
        let _ = thread.join();
        ended.unwrap_or_else(|_| {
            let reason = "the thread of a checkpoint has ended early".to_owned();
            Err(redb::Error::Corrupted(reason))
        })
    }

    /// Applies entries as far as they need no tables. The rest is [grounded](Writer::grounded).
    fn apply_in_flight(
        &mut self,
        entries: Vec<Entry>,
        flight: &mut Flight,
    ) -> Result<(), redb::Error> {
        let mut caused = Caused::default();
        let mut answers = Vec::with_capacity(entries.len());
        let mut entries = entries.into_iter();
        for mut entry in entries.by_ref() {
            let at = At {
                position: entry.position,
                digest: entry.digest,
                taken: entry.taken,
            };
            let Some(command) = entry.command.take() else {
                self.machine.skip(at);
                self.keep(at, None);
                continue;
            };
            let copy = self.kept.is_some().then(|| command.clone());
            let machine = &mut self.machine;
            match machine.fly(flight, at, command, &mut entry.reply, &mut caused)? {
                Flown::Applied(outcome) => answers.extend(entry.reply.map(|to| (to, outcome))),
                Flown::Waits => {}
                Flown::Grounded(command) => {
                    entry.command = Some(command);
                    self.grounded.push(entry);
                    break;
                }
            }
            self.keep(at, copy.as_ref());
        }
        self.grounded.extend(entries);
        self.answer(answers, &mut caused);
        Ok(())
    }

    /// Keeps an entry, if a compaction runs.
    fn keep(&mut self, at: At, command: Option<&Command>) {
        if let Some(kept) = &mut self.kept {
            kept.push(at, command);
        }
    }

    /// Runs `work` in a transaction and commits it. Returns the position of the last entry in it, too.
    fn commit<T>(
        &mut self,
        how: How,
        work: impl FnOnce(&mut Self, &mut Tables<'_>, &mut Recent<'_>) -> Result<T, redb::Error>,
    ) -> Result<(T, u64), redb::Error> {
        let database = self.database.get();
        let mut txn = database.begin_write()?;
        let to_disk = how != How::Visible;
        let durability = match to_disk {
            true => Durability::Immediate,
            false => Durability::None,
        };
        txn.set_durability(durability).map_err(redb::Error::from)?;
        // Otherwise a node that was killed would look through the whole index when it starts.
        txn.set_quick_repair(to_disk);
        let (done, added) = {
            let mut tables = Tables::open(&txn)?;
            let mut recent = Recent::open(&txn, &self.machine.state.days)?;
            let taken = std::mem::take(&mut self.taken);
            taken.settle(&mut self.machine, &mut tables, &mut recent)?;
            let done = work(self, &mut tables, &mut recent)?;
            self.machine.save(&mut tables, to_disk)?;
            (done, recent.into_added())
        };
        let position = self.machine.state.position;
        let takes_long = self.machine.take_written() >= MANY_WRITTEN;
        match how {
            How::Visible if !takes_long => txn.commit()?,
            How::Durable => txn.commit()?,
            How::Visible | How::Beside => {
                // The state before this transaction, which is not committed yet.
                let before = database.begin_read()?;
                let days = &self.machine.state.days.tables;
                let flight = Flight::new(&before, days, added)?;
                self.land(txn, flight)?;
            }
        }
        self.progress.committed.store(position, Release);
        Ok((done, position))
    }

    /// Writes everything applied to disk, if that is not done.
    fn save(&mut self, how: How, saved: &mut (u64, Instant)) -> Result<(), redb::Error> {
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

    /// Says that the index has failed. With this thread its channels end, which everybody sees who
    /// waits for an answer.
    pub fn fail(&self, error: &redb::Error) {
        tracing::error!(
            "the index {} has failed: {error}; the log has everything, so start the node again when the cause is gone",
            self.path.display()
        );
    }
}
