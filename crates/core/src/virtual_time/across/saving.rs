//! Saves a run over several processes while it runs.
//!
//! A worker requests a checkpoint at a barrier, so that all shards learn of it at once: each pauses before the next
//! window, writes its state, and continues. At times that were scheduled before the run, shards pause without a
//! request. In both cases all parts belong to the same moment, because no message is in transit between shards at a
//! barrier.

use super::{Across, Carrier};
use crate::contract::{Config, Message, Time};
use crate::virtual_time::engine::{End, PausableShard};
use crate::virtual_time::exchange::{Exchange as _, Reduction};
use crate::virtual_time::pause::Before;
use crate::virtual_time::travel::{Head, SnapshotError, encoded};

/// Saves the parts of a run that belong to one process.
pub trait Saving: Sync {
    /// Returns the number of checkpoints requested so far. Each worker calls this method before each barrier; if the
    /// number has grown for any worker, the run is saved.
    fn wanted(&self) -> u64;

    /// Returns the scheduled times at which the run is also saved, in order. They must be equal in all processes.
    fn times(&self) -> &[Time];

    /// Receives the part of the run that a worker has written. The workers of this process continue when this call has
    /// returned to all of them.
    fn save(&self, saved: SavedPart);
}

/// The part of a saved run that belongs to one worker.
#[derive(Debug)]
pub struct SavedPart {
    /// The number of this checkpoint, counted equally by all workers.
    pub number: u64,
    /// The time of the checkpoint: all events up to this time have happened, and no later ones.
    pub time: Time,
    /// True if the checkpoint is at one of [`Saving::times`].
    pub is_at_its_time: bool,
    /// The worker's number among the workers of all processes.
    pub worker: usize,
    /// The head of the snapshot, from the first worker only: the first argument of
    /// [`Snapshot::from_parts`](crate::Snapshot::from_parts).
    pub head: Option<Vec<u8>>,
    /// The serialized part, or the reason why it cannot be written.
    pub part: Result<Vec<u8>, SnapshotError>,
}

/// The schedule of checkpoints.
pub(super) struct Saves<'a> {
    by: Option<&'a dyn Saving>,
    /// The number of checkpoints so far.
    number: u64,
    now: Time,
}

impl<'a> Saves<'a> {
    /// Creates the schedule of a run that starts or continues at this time.
    pub(super) fn new(by: Option<&'a dyn Saving>, now: Time) -> Saves<'a> {
        let number = 0;
        Saves { by, number, now }
    }

    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.by.is_some_and(|by| by.wanted() > self.number)
    }

    /// Returns the next scheduled time of a checkpoint.
    pub(super) fn next(&self) -> Option<Time> {
        let times = self.by.map_or(&[][..], |by| by.times());
        times.iter().copied().find(|&time| time > self.now)
    }
}

/// The fields that the heads of all checkpoints of a run share.
#[derive(Clone, Copy)]
pub(super) struct Constant {
    /// The seed of the random numbers.
    pub(super) stream_seed: u64,
    /// The number of injected messages.
    pub(super) injected: u32,
}

impl<M: Message, C: Carrier> Across<'_, M, C> {
    /// Runs to the end of the run, or until it stops, and saves the run when a checkpoint is requested.
    pub(super) fn run(
        &mut self,
        config: &Config,
        constant: Constant,
        until: Option<Time>,
        shard: &mut PausableShard<M>,
    ) -> End {
        // In a run that continues, the events at time 0 have happened; in a new run they have not.
        let mut has_begun = self.saves.now > Time::ZERO;
        loop {
            let now = self.saves.now;
            if has_begun && until.is_some_and(|until| now >= until) {
                return End::Paused;
            }
            has_begun = true;
            let set = self.saves.next();
            let stop = set.into_iter().chain(until).min();
            let stop = stop.filter(|&stop| config.end.is_none_or(|end| stop <= end));
            let before = Before {
                time: stop.map_or(u64::MAX, |stop| stop.as_nanos() + 1),
                also: None,
                pauses: stop.is_some(),
            };
            match shard.go(config, self, before) {
                // No event is left.
                End::Paused if self.agreed.next == u64::MAX => return End::Quiet,
                End::Paused => {}
                end => return end,
            }
            let now = self.paused_at(config, stop);
            self.saves.now = now;
            if self.agreed.pause || set == Some(now) {
                self.save(config, constant, shard, set == Some(now));
            }
        }
    }

    /// Returns the time at which the shards paused: `stop`, unless a pause was requested before.
    fn paused_at(&self, config: &Config, stop: Option<Time>) -> Time {
        let bits = config.lookahead_nanos().ilog2();
        let begin = self.agreed.next.checked_shl(bits).unwrap_or(u64::MAX);
        match stop {
            Some(stop) if !self.agreed.pause || begin > stop.as_nanos() => stop,
            // The last instant before the next window.
            _ => Time::from_nanos(begin.saturating_sub(1)).max(self.saves.now),
        }
    }

    /// Waits for the other shards of this process. Returns false if one of them has failed; the next exchange then ends
    /// the run.
    fn wait_for_own(&mut self) -> bool {
        self.local
            .exchange(Reduction::NONE, &mut [], &mut [], || false);
        !self.local.is_broken()
    }

    /// Writes the shard's part, after a scheduled or requested pause.
    fn save(
        &mut self,
        config: &Config,
        constant: Constant,
        shard: &mut PausableShard<M>,
        is_at_its_time: bool,
    ) {
        let Some(by) = self.saves.by else {
            return;
        };
        let time = self.saves.now;
        self.saves.number += 1;
        let head = (self.me == 0).then(|| {
            let common = shard.common();
            let Constant {
                stream_seed,
                injected,
            } = constant;
            let head = Head::new::<M>(config, time.as_nanos(), injected, stream_seed, common);
            encoded(&head)
        });
        // Process state is written while no actor of the process runs.
        if self.kinds.has_state() && !self.wait_for_own() {
            return;
        }
        let part = shard.save(&self.kinds, self.me == self.own.start);
        let (head, part) = match head.transpose() {
            Ok(head) => (head, part),
            Err(error) => (None, Err(SnapshotError::corrupt(0, error))),
        };
        // Recorders flush before the processes exchange batches. The first process saves its recorder after the
        // exchange, when it has the records of all processes.
        let is_first = self.own.start == 0;
        if is_first && !self.flush() {
            return;
        }
        by.save(SavedPart {
            number: self.saves.number,
            time,
            is_at_its_time,
            worker: self.me,
            head,
            part,
        });
        // The shards of this process continue only after all of them have saved.
        if self.wait_for_own() && !is_first {
            self.flush();
        }
    }

    /// Exchanges empty batches, so that the carrier can send its own data to other processes. Returns false if the run
    /// has failed.
    fn flush(&mut self) -> bool {
        match self.exchange_batches(Reduction::NONE, || false) {
            Ok(_) => true,
            Err(failure) => {
                self.fail(failure, Reduction::NONE);
                false
            }
        }
    }
}
