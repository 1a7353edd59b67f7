//! The counters of a run, which no thread waits for.
//!
//! Each thread adds to its own shard, without an atomic read-modify-write as long as there are enough shards for all
//! threads; a reader adds the shards up. A sender counts a message before it is put into a mailbox. The receiver counts
//! it as done when it has handled or stashed it and waits again, so `done` never overtakes `sent`.
//!
//! **Settled.** [`Counters::turn`] begins a new epoch; two epochs alternate, and messages sent from then on count under
//! the new one. The earlier messages are done when the two sums of the old epoch are equal, however many messages are
//! sent under the new one. `done` is added up first. Its messages were counted as sent before, so the two sums can be
//! equal only if every message is done.
//!
//! **Deadlock.** [`Counters::scan`] reads all sums. If two scans are equal, nothing was counted between the end of the
//! first and the beginning of the second, so at that moment the sums are consistent.

#[cfg(all(test, loom))]
mod loom;

use super::thread_slot::{self, SHARDS, ThreadSlot};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use Ordering::{AcqRel, Acquire, Relaxed, Release};
use crossbeam_utils::CachePadded;

/// The counters; see the [module](self).
pub(crate) struct Counters {
    epoch: AtomicUsize,
    shards: Box<[CachePadded<Shard>]>,
}

/// Counters that are written together.
#[derive(Default)]
struct Shard {
    sent: [AtomicU64; 2],
    done: [AtomicU64; 2],
    /// The number of times that actors began to wait only for messages; `busy` counts how often such waits ended.
    idle: AtomicU64,
    busy: AtomicU64,
    timers: AtomicU64,
    /// The number of messages that actors received, by kind.
    delivered: Box<[CachePadded<[AtomicU64; 16]>]>,
}

/// A shard, with a flag for whether only this thread writes to it.
#[derive(Clone, Copy)]
struct Mine<'a> {
    shard: &'a Shard,
    owned: bool,
}

impl Mine<'_> {
    #[inline]
    fn add(self, counter: impl Fn(&Shard) -> &AtomicU64, number: u64, order: Ordering) {
        let counter = counter(self.shard);
        if self.owned {
            counter.store(counter.load(Relaxed).wrapping_add(number), order);
        } else {
            counter.fetch_add(number, order);
        }
    }
}

/// All sums, at about the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scan {
    live: u64,
    sent: u64,
    done: u64,
    idle: u64,
    busy: u64,
}

impl Scan {
    /// True if no message is in flight and all live actors wait only for messages.
    pub(crate) fn is_still(&self) -> bool {
        self.sent == self.done && self.idle.wrapping_sub(self.busy) == self.live
    }
}

/// The counts of one actor since it last reported to the counters.
#[derive(Default)]
pub(crate) struct Ledger {
    done: [u32; 2],
    timers: u32,
    kind: u32,
    delivered: u32,
}

impl Counters {
    pub(crate) fn new(kinds: usize) -> Counters {
        let shard = || Shard {
            delivered: (0..kinds.div_ceil(16))
                .map(|_| CachePadded::default())
                .collect(),
            ..Shard::default()
        };
        Counters {
            epoch: AtomicUsize::new(0),
            shards: (0..SHARDS).map(|_| CachePadded::new(shard())).collect(),
        }
    }

    #[inline]
    fn mine(&self) -> Mine<'_> {
        let ThreadSlot { index, owned } = thread_slot::mine();
        Mine {
            shard: &self.shards[index],
            owned,
        }
    }

    fn sum(&self, counter: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards
            .iter()
            .map(|shard| counter(shard).load(Acquire))
            .fold(0, u64::wrapping_add)
    }

    /// Counts messages as sent; returns their epoch.
    #[inline]
    pub(crate) fn sent(&self, count: u64) -> u8 {
        self.sent_by(self.mine(), count)
    }

    #[inline]
    fn sent_by(&self, mine: Mine<'_>, count: u64) -> u8 {
        let epoch = self.epoch.load(Relaxed) & 1;
        mine.add(|shard| &shard.sent[epoch], count, Relaxed);
        epoch as u8
    }

    /// Counts a message as done that no actor will see.
    pub(crate) fn done(&self, epoch: u8) {
        self.mine()
            .add(|shard| &shard.done[epoch as usize & 1], 1, Release);
    }

    /// Records that an actor begins to wait and that only messages can wake it.
    #[inline]
    pub(crate) fn idle(&self) {
        self.mine().add(|shard| &shard.idle, 1, Release);
    }

    /// Records that an actor no longer waits only for messages.
    #[inline]
    pub(crate) fn busy(&self) {
        self.mine().add(|shard| &shard.busy, 1, Release);
    }

    /// Starts a new epoch and returns the old one. Must not be called again before the old epoch [is
    /// settled](Counters::is_settled) or abandoned.
    pub(crate) fn turn(&self) -> u8 {
        (self.epoch.fetch_add(1, AcqRel) & 1) as u8
    }

    /// True if every message of this epoch is done.
    pub(crate) fn is_settled(&self, epoch: u8) -> bool {
        let done = self.sum(|shard| &shard.done[epoch as usize & 1]);
        done == self.sum(|shard| &shard.sent[epoch as usize & 1])
    }

    /// Returns all sums, starting with those that lag behind the others; `live` is an earlier number of live
    /// actors.
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

    /// Returns the number of timers that fired.
    pub(crate) fn timers(&self) -> u64 {
        self.sum(|shard| &shard.timers)
    }

    /// Returns the number of messages of a kind that actors received.
    pub(crate) fn delivered(&self, kind: usize) -> u64 {
        self.sum(|shard| &shard.delivered[kind / 16][kind % 16])
    }
}

impl Ledger {
    /// Counts a message that was handled or stashed.
    #[inline]
    pub(crate) fn done(&mut self, epoch: u8) {
        self.done[epoch as usize & 1] += 1;
    }

    /// Counts a timer that the actor received.
    #[inline]
    pub(crate) fn timer(&mut self) {
        self.timers += 1;
    }

    /// Counts a message of this kind that the actor received.
    #[inline]
    pub(crate) fn delivered(&mut self, kind: usize, counters: &Counters) {
        if self.kind != kind as u32 {
            self.report_delivered(counters.mine());
            self.kind = kind as u32;
        }
        self.delivered += 1;
    }

    fn report_delivered(&mut self, mine: Mine<'_>) {
        if self.delivered > 0 {
            let kind = self.kind as usize;
            mine.add(
                |shard| &shard.delivered[kind / 16][kind % 16],
                self.delivered.into(),
                Relaxed,
            );
            self.delivered = 0;
        }
    }

    /// Adds the local counts to `counters` and resets them to zero.
    pub(crate) fn flush(&mut self, counters: &Counters) {
        self.flush_to(counters.mine());
    }

    fn flush_to(&mut self, mine: Mine<'_>) {
        self.report_delivered(mine);
        if self.timers > 0 {
            mine.add(|shard| &shard.timers, self.timers.into(), Relaxed);
            self.timers = 0;
        }
        // These counters are written last, so a thread that sees them also sees the others.
        for (epoch, done) in self.done.iter_mut().enumerate() {
            if *done > 0 {
                mine.add(|shard| &shard.done[epoch], (*done).into(), Release);
                *done = 0;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_settled_while_the_next_goes_on() {
        let counters = Counters::new(1);
        let first = counters.sent(1);
        let old = counters.turn();
        let second = counters.sent(1);
        assert_ne!(first, second);
        assert!(!counters.is_settled(old));
        counters.done(first);
        assert!(counters.is_settled(old));
        assert!(!counters.is_settled(second));
    }

    #[test]
    fn deliveries_of_many_kinds_are_counted_separately() {
        let counters = Counters::new(40);
        let mut ledger = Ledger::default();
        for kind in [3, 3, 39, 16, 3] {
            ledger.delivered(kind, &counters);
        }
        ledger.flush(&counters);
        assert_eq!(
            [3, 16, 39, 0].map(|kind| counters.delivered(kind)),
            [3, 1, 1, 0]
        );
    }
}
