//! The thread that applies the log.

use super::apply::{At, Caused, Machine};
use super::keys::Recent;
use super::tables::Tables;
use super::{Effects, Progress};
use crate::log::Entry;
use crossbeam_channel::{Receiver, select};
use redb::{Database, Durability};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// A transaction is committed when it has applied this many entries,
const LARGEST_TRANSACTION: u64 = 1 << 13;
/// or this long after the first of them.
const LONGEST_TRANSACTION: Duration = Duration::from_millis(250);
/// What is applied is written to disk after this many entries,
const CHECKPOINT_ENTRIES: u64 = 1 << 16;
/// or after this time.
const CHECKPOINT_TIME: Duration = Duration::from_secs(5);

/// See the [module](self).
pub(super) struct Writer<E, C> {
    pub database: Arc<Database>,
    pub progress: Arc<Progress>,
    pub machine: Machine,
    pub feed: Receiver<Vec<Entry>>,
    /// Readers that wait for a commit.
    pub wants: Receiver<oneshot::Sender<()>>,
    pub advanced: watch::Sender<u64>,
    pub effects: E,
    pub checkpoint: C,
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
        loop {
            let mut waiting = Vec::new();
            let begun = self.machine.state.position;
            // Between transactions there is nothing to commit.
            let first = loop {
                let idle = saved.1 + CHECKPOINT_TIME;
                let behind = begun > saved.0;
                select! {
                    recv(self.feed) -> entries => break entries.ok(),
                    recv(self.wants) -> want => {
                        if let Ok(want) = want {
                            let _ = want.send(());
                        }
                    }
                    default(idle.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))) => {
                        if behind {
                            self.save(&mut saved)?;
                        } else {
                            saved.1 = Instant::now();
                        }
                    }
                }
            };
            let Some(first) = first else {
                return self.save(&mut saved);
            };
            let due = saved.0 + CHECKPOINT_ENTRIES;
            let checkpoint =
                begun + first.len() as u64 >= due || saved.1.elapsed() > CHECKPOINT_TIME;
            let durability = if checkpoint {
                Durability::Immediate
            } else {
                Durability::None
            };
            let occasion = self.commit(durability, |writer, tables, recent| {
                writer.transaction(tables, recent, first, &mut waiting)
            })?;
            if checkpoint {
                self.saved(&mut saved);
            }
            for want in waiting {
                let _ = want.send(());
            }
            if occasion == Occasion::Over {
                return self.save(&mut saved);
            }
        }
    }

    /// Applies what comes until the transaction is to be committed.
    fn transaction(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        first: Vec<Entry>,
        waiting: &mut Vec<oneshot::Sender<()>>,
    ) -> Result<Occasion, redb::Error> {
        let end = Instant::now() + LONGEST_TRANSACTION;
        let last = self.machine.state.position + LARGEST_TRANSACTION;
        self.apply(tables, recent, first)?;
        while self.machine.state.position < last {
            // Between entries, so that none waits for all that those before it have left to write.
            let pause = match self.machine.write_some(tables)? {
                true => Duration::ZERO,
                false => end.saturating_duration_since(Instant::now()),
            };
            select! {
                recv(self.feed) -> entries => match entries {
                    Ok(entries) => self.apply(tables, recent, entries)?,
                    Err(_) => return Ok(Occasion::Over),
                },
                recv(self.wants) -> want => {
                    waiting.extend(want);
                    waiting.extend(self.wants.try_iter());
                    return Ok(Occasion::Commit);
                }
                default(pause) => {
                    if Instant::now() >= end {
                        return Ok(Occasion::Commit);
                    }
                }
            }
        }
        Ok(Occasion::Commit)
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
            let Some(command) = entry.command else {
                self.machine.skip(at);
                continue;
            };
            let machine = &mut self.machine;
            let outcome = machine.apply(tables, recent, at, command, &mut caused)?;
            for (user, session) in caused.closed.drain(..) {
                self.effects.session_closed(user, session);
            }
            if let Some(reply) = entry.reply {
                answers.push((reply, outcome));
            }
        }
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
        // After the answers, which need not wait for the tables.
        if self.machine.has_many_rows() {
            self.machine.write(tables)?;
        }
        Ok(())
    }

    /// Runs `work` in a transaction and commits it.
    fn commit<T>(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&mut Self, &mut Tables<'_>, &mut Recent<'_>) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        let mut txn = self.database.begin_write()?;
        txn.set_durability(durability).map_err(redb::Error::from)?;
        // Otherwise a node that was killed would look through the whole index when it starts.
        txn.set_quick_repair(matches!(durability, Durability::Immediate));
        let done = {
            let mut tables = Tables::open(&txn)?;
            let mut recent = Recent::open(&txn, &self.machine.state.days)?;
            let done = work(self, &mut tables, &mut recent)?;
            let to_disk = matches!(durability, Durability::Immediate);
            self.machine.save(&mut tables, to_disk)?;
            done
        };
        txn.commit()?;
        let position = self.machine.state.position;
        self.progress.committed.store(position, Release);
        Ok(done)
    }

    /// Writes everything applied to disk, if that is not done.
    fn save(&mut self, saved: &mut (u64, Instant)) -> Result<(), redb::Error> {
        if saved.0 < self.machine.state.position {
            self.commit(Durability::Immediate, |_, _, _| Ok(()))?;
        }
        self.saved(saved);
        Ok(())
    }

    fn saved(&self, saved: &mut (u64, Instant)) {
        *saved = (self.machine.state.position, Instant::now());
        (self.checkpoint)(saved.0);
    }

    /// Says that the index has failed. With this thread its channels end, which everybody sees who
    /// waits for an answer.
    pub fn fail(&self, path: &Path, error: &redb::Error) {
        tracing::error!(
            "the index {} has failed: {error}; the log has everything, so start the node again when the cause is gone",
            path.display()
        );
    }
}
