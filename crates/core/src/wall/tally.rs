//! What is counted while a run goes on, without anybody waiting for anybody.
//!
//! Each thread adds to a shard of its own; whoever wants to know adds the shards up. Sending
//! counts a letter before it is put into a mailbox, and its receiver counts it as done when it has
//! handled or kept it and waits again, so `done` never overtakes `sent`.
//!
//! **Settled.** [`Tally::turn`] begins a new epoch, of two that alternate: letters sent from then
//! on count under the other one. The letters sent before are done when the two sums of the old
//! epoch are equal, however much goes on under the new one. `done` is added up first: what it
//! counts was counted as sent before, so the sums can only be equal if every letter is done.
//!
//! **Nothing left to happen.** [`Tally::scan`] sees all sums. If two scans are equal, nothing was
//! counted between the end of the first and the beginning of the second, so the sums hold together
//! at that moment.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

const SHARDS: usize = 32;

/// See the [module](self).
pub(crate) struct Tally {
    epoch: AtomicUsize,
    shards: Box<[Shard]>,
}

/// The counters of a few threads, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    sent: [AtomicU64; 2],
    done: [AtomicU64; 2],
    /// Actors that began to wait for nothing but letters, and actors that did so no longer.
    idle: AtomicU64,
    busy: AtomicU64,
    timers: AtomicU64,
    /// Messages handed to actors, by kind.
    delivered: Box<[Line]>,
}

#[derive(Default)]
#[repr(align(128))]
struct Line([AtomicU64; 16]);

/// All sums at about one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scan {
    live: u64,
    sent: u64,
    done: u64,
    idle: u64,
    busy: u64,
}

impl Scan {
    /// Whether no letter is under way and all live actors wait for letters alone.
    pub(crate) fn is_still(&self) -> bool {
        self.sent == self.done && self.idle.wrapping_sub(self.busy) == self.live
    }
}

/// What one actor has done since it last told the tally.
#[derive(Default)]
pub(crate) struct Ledger {
    done: [u32; 2],
    timers: u32,
    kind: u32,
    delivered: u32,
}

impl Tally {
    pub(crate) fn new(kinds: usize) -> Tally {
        let shard = || Shard {
            delivered: (0..kinds.div_ceil(16)).map(|_| Line::default()).collect(),
            ..Shard::default()
        };
        Tally {
            epoch: AtomicUsize::new(0),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    #[inline]
    fn shard(&self) -> &Shard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = NEXT.fetch_add(1, Relaxed) % SHARDS;
        }
        &self.shards[MINE.with(|mine| *mine)]
    }

    fn sum(&self, counter: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards
            .iter()
            .map(|shard| counter(shard).load(Acquire))
            .fold(0, u64::wrapping_add)
    }

    /// Counts a letter as sent; answers under which epoch.
    #[inline]
    pub(crate) fn sent(&self) -> u8 {
        let epoch = self.epoch.load(Relaxed) & 1;
        self.shard().sent[epoch].fetch_add(1, Relaxed);
        epoch as u8
    }

    /// Counts a letter as done that no actor will see.
    pub(crate) fn done(&self, epoch: u8) {
        self.shard().done[epoch as usize & 1].fetch_add(1, Release);
    }

    /// An actor begins to wait for letters alone.
    #[inline]
    pub(crate) fn idle(&self) {
        self.shard().idle.fetch_add(1, Release);
    }

    /// An actor does so no longer.
    #[inline]
    pub(crate) fn busy(&self) {
        self.shard().busy.fetch_add(1, Release);
    }

    /// Begins a new epoch and answers the old one. Not to be called again before the old one
    /// [is settled](Tally::is_settled) or given up.
    pub(crate) fn turn(&self) -> u8 {
        (self.epoch.fetch_add(1, AcqRel) & 1) as u8
    }

    /// Whether every letter of this epoch is done.
    pub(crate) fn is_settled(&self, epoch: u8) -> bool {
        let done = self.sum(|shard| &shard.done[epoch as usize & 1]);
        done == self.sum(|shard| &shard.sent[epoch as usize & 1])
    }

    /// All sums, those first which the others run ahead of; `live` actors were live before.
    pub(crate) fn scan(&self, live: u64) -> Scan {
        let done = self
            .sum(|s| &s.done[0])
            .wrapping_add(self.sum(|s| &s.done[1]));
        let idle = self.sum(|s| &s.idle);
        let busy = self.sum(|s| &s.busy);
        let sent = self
            .sum(|s| &s.sent[0])
            .wrapping_add(self.sum(|s| &s.sent[1]));
        Scan {
            live,
            sent,
            done,
            idle,
            busy,
        }
    }

    /// Timers that fired.
    pub(crate) fn timers(&self) -> u64 {
        self.sum(|shard| &shard.timers)
    }

    /// Messages of a kind that were handed to actors.
    pub(crate) fn delivered(&self, kind: usize) -> u64 {
        self.sum(|shard| &shard.delivered[kind / 16].0[kind % 16])
    }
}

impl Ledger {
    /// A letter was handled or kept.
    #[inline]
    pub(crate) fn done(&mut self, epoch: u8) {
        self.done[epoch as usize & 1] += 1;
    }

    /// A timer was handed to the actor.
    #[inline]
    pub(crate) fn timer(&mut self) {
        self.timers += 1;
    }

    /// A message of this kind was handed to the actor.
    #[inline]
    pub(crate) fn delivered(&mut self, kind: usize, tally: &Tally) {
        if self.kind != kind as u32 {
            self.tell_delivered(tally.shard());
            self.kind = kind as u32;
        }
        self.delivered += 1;
    }

    fn tell_delivered(&mut self, shard: &Shard) {
        if self.delivered > 0 {
            let kind = self.kind as usize;
            shard.delivered[kind / 16].0[kind % 16].fetch_add(self.delivered.into(), Relaxed);
            self.delivered = 0;
        }
    }

    /// Tells the tally, and begins anew.
    pub(crate) fn tell(&mut self, tally: &Tally) {
        let shard = tally.shard();
        self.tell_delivered(shard);
        if self.timers > 0 {
            shard.timers.fetch_add(self.timers.into(), Relaxed);
            self.timers = 0;
        }
        // Last: whoever sees these sees the others.
        for (done, total) in self.done.iter_mut().zip(&shard.done) {
            if *done > 0 {
                total.fetch_add((*done).into(), Release);
                *done = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_settled_while_the_next_goes_on() {
        let tally = Tally::new(1);
        let first = tally.sent();
        let old = tally.turn();
        let second = tally.sent();
        assert_ne!(first, second);
        assert!(!tally.is_settled(old));
        tally.done(first);
        assert!(tally.is_settled(old));
        assert!(!tally.is_settled(second));
    }

    #[test]
    fn deliveries_of_many_kinds_are_told_apart() {
        let tally = Tally::new(40);
        let mut ledger = Ledger::default();
        for kind in [3, 3, 39, 16, 3] {
            ledger.delivered(kind, &tally);
        }
        ledger.tell(&tally);
        assert_eq!(
            [3, 16, 39, 0].map(|kind| tally.delivered(kind)),
            [3, 1, 1, 0]
        );
    }
}
