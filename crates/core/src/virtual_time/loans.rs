//! Loans of shards to one thread, which runs all shards for a time and returns them.
//!
//! In a sparse window a barrier costs more than the events. All shards learn from the reduction that windows are
//! sparse. In the same round every shard except the first stores a pointer to its loop here, and its thread sleeps. The
//! first thread waits for all pointers, and has exclusive access to all loops until it returns them. The sleeping
//! threads see its writes, because the count of returns is incremented with release and read with acquire, like the
//! count of loans before.

use super::writer_cell::Cell;
#[cfg(not(loom))]
use crate::sync::lock;
use crate::sync::{AtomicBool, AtomicU64, Ordering, wait};
#[cfg(not(loom))]
use std::{sync::Mutex, thread::Thread};

/// The outcome of a loan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Loan<E> {
    /// For the first shard: the loops of all others, which it must [give back](super::exchange::Exchange::give_back).
    All(Vec<*mut E>),
    /// The first shard has returned this loop after use.
    Back,
    /// The loop was not returned: the run stops.
    Lost,
}

/// The loans of a run; see the [module](self).
pub(super) struct Loans {
    spins: u32,
    /// The loops by shard.
    loops: Box<[Cell<*mut ()>]>,
    /// The number of loans over the whole run.
    loans: AtomicU64,
    returned: AtomicU64,
    #[cfg(not(loom))]
    sleepers: Mutex<Vec<Thread>>,
}

// SAFETY: this type only stores the pointers. Whoever dereferences them follows the protocol in the module's
// documentation.
unsafe impl Send for Loans {}

impl Loans {
    pub(super) fn new(shards: usize, spins: u32) -> Loans {
        let nothing = || Cell::new(std::ptr::null_mut());
        Loans {
            spins,
            loops: (0..shards).map(|_| nothing()).collect(),
            loans: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            #[cfg(not(loom))]
            sleepers: Mutex::default(),
        }
    }

    /// Lends the loop of shard `me`, for the `time`-th time, counted from 1. All shards do so in the same round.
    pub(super) fn lend<E>(
        &self,
        me: usize,
        mine: *mut E,
        time: u64,
        broken: &AtomicBool,
    ) -> Loan<E> {
        let mut tries = 0;
        if me == 0 {
            let all = time * (self.loops.len() as u64 - 1);
            while self.loans.load(Ordering::Acquire) < all {
                if broken.load(Ordering::Acquire) {
                    return Loan::Lost;
                }
                wait(&mut tries, self.spins);
            }
            // SAFETY: all other shards have written their cells and wait.
            let pointer = |cell: &Cell<*mut ()>| cell.0.with(|cell| unsafe { *cell }.cast());
            return Loan::All(self.loops[1..].iter().map(pointer).collect());
        }
        // SAFETY: before a shard has lent its loop, only this shard accesses its cell.
        self.loops[me]
            .0
            .with_mut(|cell| unsafe { *cell = mine.cast() });
        self.loans.fetch_add(1, Ordering::Release);
        loop {
            if self.returned.load(Ordering::Acquire) >= time {
                return Loan::Back;
            }
            if broken.load(Ordering::Acquire) {
                return Loan::Lost;
            }
            if tries < self.spins || cfg!(loom) {
                wait(&mut tries, self.spins);
            } else {
                self.sleep(time, broken);
            }
        }
    }

    /// Sleeps until the next call of [`Loans::wake`], or for a shorter time. The caller then checks its condition
    /// again.
    #[cfg(not(loom))]
    fn sleep(&self, time: u64, broken: &AtomicBool) {
        lock(&self.sleepers).push(std::thread::current());
        // A thread that calls `wake` has changed one of these values before it takes the lock. If the change is not
        // visible here, that thread wakes this one. The check is not repeated after `park`, because a late wake-up for
        // an earlier loan may have removed this thread from the list.
        if self.returned.load(Ordering::Acquire) < time && !broken.load(Ordering::Acquire) {
            std::thread::park();
        }
    }

    #[cfg(loom)]
    fn sleep(&self, _: u64, _: &AtomicBool) {}

    /// Gives all borrowed loops back to their shards. Only the first shard, which has borrowed them, calls this.
    pub(super) fn give_back(&self) {
        self.returned.fetch_add(1, Ordering::Release);
        self.wake();
    }

    /// Wakes the sleeping threads, which then check the counters again.
    pub(super) fn wake(&self) {
        #[cfg(not(loom))]
        for sleeper in lock(&self.sleepers).drain(..) {
            sleeper.unpark();
        }
    }
}
