//! The exchange of events between shards at the end of each window.
//!
//! The complete protocol is one call per window, [`Exchange::exchange`]. In this call a shard reports when its next
//! event is due, and passes on its events for other shards. It receives the events of other shards for its own actors,
//! and the earliest due time of all shards. No other part of the engine knows how shards communicate.
//!
//! # The exchange within one process
//! [`Matrix`] has two cells for every ordered pair of shards, and rounds alternate between them. In round r a shard
//! writes its row of cells, arrives at the barrier, waits until all have arrived, and reads its column. The shard may
//! then start round r + 1 and write the *other* cells while a slow shard still reads the cells of round r. The shard
//! cannot start round r + 2 before the slow shard has arrived at the barrier of round r + 1. The slow shard arrives
//! there only after it has read the cells of round r. So one barrier per window is enough, and no cell is written and
//! read at the same time. The barrier's counter is only incremented, with acquire-release ordering, so a thread that
//! sees all arrivals has synchronised with every other thread.
//!
//! Batches are swapped, never copied: in exchange for each batch, a shard gets back the batch that its partner emptied
//! two rounds before, so that its memory is reused.

use super::loans::{Loan, Loans};
use super::writer_cell::Cell;
use crate::sync::{AtomicBool, AtomicU64, Ordering, spins, wait};
use std::ops::Deref;

/// A shard's contribution to the reduction at a barrier, and the result of the reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reduction {
    /// The window of the next event; `u64::MAX` if there is none.
    pub(super) next: u64,
    /// The time after which no event is handled, because the root has ended.
    pub(super) end: u64,
    /// True if the run must stop now.
    pub(super) halt: bool,
    /// True if the run must pause before the next window.
    pub(super) pause: bool,
    /// True if the last window had events.
    pub(super) busy: bool,
    /// The highest number of events of a shard in the last window.
    pub(super) events: u64,
    /// The time at which the last message or timer was handled.
    pub(super) last: u64,
}

impl Reduction {
    /// The contribution of a shard without events.
    pub(super) const NONE: Reduction = Reduction {
        next: u64::MAX,
        end: u64::MAX,
        halt: false,
        pause: false,
        busy: false,
        events: 0,
        last: 0,
    };

    /// Combines two contributions.
    #[inline]
    pub(super) fn and(self, other: Reduction) -> Reduction {
        Reduction {
            next: self.next.min(other.next),
            end: self.end.min(other.end),
            halt: self.halt | other.halt,
            pause: self.pause | other.pause,
            busy: self.busy | other.busy,
            events: self.events.max(other.events),
            last: self.last.max(other.last),
        }
    }
}

/// A shard's side of the exchanges between windows.
pub(super) trait Exchange<P> {
    /// Passes `out[to]` to every other shard, fills `inbox[from]` from every other shard, and returns the reduction
    /// over all shards. Batches of `inbox` return to their senders some rounds later, empty, in `out`. While the shard
    /// waits, `idle` is called repeatedly as long as it returns true.
    fn exchange(
        &mut self,
        contribution: Reduction,
        out: &mut [P],
        inbox: &mut [P],
        idle: impl FnMut() -> bool,
    ) -> Reduction;

    /// True if one thread can run all shards for some time.
    fn can_lend(&self) -> bool {
        true
    }

    /// Lends a shard's loop to the first shard, which gets the loops of all other shards. All shards call this method
    /// after the same exchange. Until the method returns, only the first shard uses the loop.
    fn lend<E>(&mut self, mine: *mut E) -> Loan<E>;

    /// Gives the borrowed loops back to their shards. Only the first shard calls this.
    fn give_back(&mut self);
}

/// The exchange of a single shard, which has no partner.
pub(super) struct Alone;

impl<P> Exchange<P> for Alone {
    #[inline]
    fn exchange(
        &mut self,
        contribution: Reduction,
        _: &mut [P],
        _: &mut [P],
        _: impl FnMut() -> bool,
    ) -> Reduction {
        contribution
    }

    fn lend<E>(&mut self, _: *mut E) -> Loan<E> {
        Loan::All(Vec::new())
    }

    fn give_back(&mut self) {}
}

/// The exchange of shards that are threads of one process.
pub(super) struct Matrix<P> {
    shards: usize,
    spins: u32,
    /// The batches by parity of the round, then by `from * shards + to`.
    batches: [Box<[Cell<P>]>; 2],
    /// The shards' contributions to the reduction, by parity of the round, then by shard.
    contributions: [Box<[Cell<Reduction>]>; 2],
    /// The number of arrivals at the barrier, over all rounds.
    arrivals: AtomicU64,
    /// True if a shard will never arrive at the barrier. Shards that wait for this shard then stop.
    broken: AtomicBool,
    lending: Loans,
}

// SAFETY: only the cells are not `Sync` themselves. By the protocol in the module's documentation, each cell has one
// writer or one reader at a time, ordered by the barrier. Batches move between threads, which `P: Send` allows.
unsafe impl<P: Send> Sync for Matrix<P> {}

impl<P: Default> Matrix<P> {
    pub(super) fn new(shards: usize) -> Matrix<P> {
        let batches = || {
            (0..shards * shards)
                .map(|_| Cell::new(P::default()))
                .collect()
        };
        let contributions = || (0..shards).map(|_| Cell::new(Reduction::NONE)).collect();
        let spins = spins(shards);
        Matrix {
            shards,
            spins,
            lending: Loans::new(shards, spins),
            batches: [batches(), batches()],
            contributions: [contributions(), contributions()],
            arrivals: AtomicU64::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Records that a shard will never arrive. Shards that wait for it then stop.
    pub(super) fn abandon(&self) {
        self.broken.store(true, Ordering::Release);
        self.lending.wake();
    }

    /// Returns the port of shard `me`. Each shard takes its port once.
    pub(super) fn port(&self, me: usize) -> Port<P, &Matrix<P>> {
        Port::new(self, me)
    }
}

/// The port of one shard to a [`Matrix`], which it borrows or shares.
pub(super) struct Port<P, R: Deref<Target = Matrix<P>>> {
    matrix: R,
    me: usize,
    round: u64,
    loans: u64,
}

impl<P, R: Deref<Target = Matrix<P>>> Port<P, R> {
    /// Creates the port of shard `me`. Each shard has one.
    pub(super) fn new(matrix: R, me: usize) -> Port<P, R> {
        assert!(me < matrix.shards);
        Port {
            matrix,
            me,
            round: 0,
            loans: 0,
        }
    }

    /// Marks that this shard will not arrive any more.
    #[cfg(feature = "serde")]
    pub(super) fn abandon(&self)
    where
        P: Default,
    {
        self.matrix.abandon();
    }

    /// True if some shard will never arrive.
    #[cfg(feature = "serde")]
    pub(super) fn is_broken(&self) -> bool {
        self.matrix.broken.load(Ordering::Acquire)
    }
}

impl<P, R: Deref<Target = Matrix<P>>> Exchange<P> for Port<P, R> {
    fn exchange(
        &mut self,
        contribution: Reduction,
        out: &mut [P],
        inbox: &mut [P],
        mut idle: impl FnMut() -> bool,
    ) -> Reduction {
        let Matrix {
            shards,
            spins,
            batches,
            contributions,
            arrivals,
            broken,
            lending: _,
        } = &*self.matrix;
        let (batches, contributions) = (
            &batches[self.round as usize % 2],
            &contributions[self.round as usize % 2],
        );
        for (to, batch) in out.iter_mut().enumerate().filter(|(to, _)| *to != self.me) {
            // SAFETY: before the barrier of a round, only the sending shard accesses its row of cells.
            unsafe { batches[self.me * shards + to].swap(batch) };
        }
        // SAFETY: only shard `me` writes this cell, and other shards read it only after the barrier.
        contributions[self.me]
            .0
            .with_mut(|cell| unsafe { *cell = contribution });

        self.round += 1;
        let all = self.round * *shards as u64;
        if arrivals.fetch_add(1, Ordering::AcqRel) + 1 < all {
            let (mut tries, mut useful) = (0, true);
            while arrivals.load(Ordering::Acquire) < all {
                if broken.load(Ordering::Acquire) {
                    return Reduction {
                        halt: true,
                        ..contribution
                    };
                }
                useful = useful && idle();
                if !useful {
                    wait(&mut tries, *spins);
                }
            }
        }

        for (from, batch) in inbox
            .iter_mut()
            .enumerate()
            .filter(|(from, _)| *from != self.me)
        {
            // SAFETY: after the barrier of a round, only the receiving shard accesses its column of cells.
            unsafe { batches[from * shards + self.me].swap(batch) };
        }
        let contribution_of = |contribution: &Cell<Reduction>| {
            // SAFETY: after the barrier, no thread writes to the cells of this round.
            contribution.0.with(|cell| unsafe { *cell })
        };
        contributions
            .iter()
            .map(contribution_of)
            .fold(contribution, Reduction::and)
    }

    fn lend<E>(&mut self, mine: *mut E) -> Loan<E> {
        self.loans += 1;
        let Matrix {
            lending, broken, ..
        } = &*self.matrix;
        lending.lend(self.me, mine, self.loans, broken)
    }

    fn give_back(&mut self) {
        self.matrix.lending.give_back();
    }
}

impl<P, R: Deref<Target = Matrix<P>>> Drop for Port<P, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.matrix.broken.store(true, Ordering::Release);
            self.matrix.lending.wake();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Runs some rounds in which every shard sends its number and the round to every other shard, and checks what it
    /// receives.
    fn meet(shards: usize, rounds: u64) {
        let matrix = Matrix::<Vec<u64>>::new(shards);
        std::thread::scope(|scope| {
            for me in 0..shards {
                let matrix = &matrix;
                scope.spawn(move || {
                    let mut port = matrix.port(me);
                    let mut out = vec![Vec::new(); shards];
                    let mut inbox = vec![Vec::new(); shards];
                    for round in 0..rounds {
                        for (to, batch) in out.iter_mut().enumerate() {
                            assert!(batch.is_empty());
                            batch.push(round << 32 | (me as u64) << 16 | to as u64);
                        }
                        let contribution = Reduction {
                            next: round * 100 + me as u64,
                            end: u64::MAX - me as u64,
                            halt: me == 1,
                            pause: me == 1,
                            busy: me == 0,
                            events: me as u64,
                            last: 0,
                        };
                        let agreed = port.exchange(contribution, &mut out, &mut inbox, || false);
                        assert_eq!(agreed.next, round * 100);
                        assert_eq!(agreed.end, u64::MAX - (shards as u64 - 1));
                        assert!(agreed.halt && agreed.pause && agreed.busy);
                        for (from, batch) in inbox.iter_mut().enumerate() {
                            if from != me {
                                assert_eq!(
                                    std::mem::take(batch),
                                    [round << 32 | (from as u64) << 16 | me as u64]
                                );
                            }
                        }
                        out[me].clear();
                    }
                });
            }
        });
    }

    // Guarantee: core-86.
    #[test]
    fn every_parcel_reaches_its_shard_in_its_round() {
        let rounds = if cfg!(miri) { 5 } else { 2000 };
        for shards in 2..=4 {
            meet(shards, rounds);
        }
    }

    #[test]
    fn what_is_lent_comes_back_as_the_first_shard_left_it() {
        let turns = if cfg!(miri) { 3 } else { 200 };
        let matrix = &Matrix::<()>::new(4);
        std::thread::scope(|scope| {
            for me in 1..4 {
                scope.spawn(move || {
                    let (mut port, mut number) = (matrix.port(me), 0u64);
                    for turn in 1..=turns {
                        assert_eq!(port.lend(&raw mut number), Loan::Back);
                        assert_eq!(number, turn * me as u64);
                    }
                });
            }
            let mut port = matrix.port(0);
            for turn in 0..turns {
                if turn % 50 == 1 {
                    // Long enough for the other threads to fall asleep.
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                let Loan::All(lent) = port.lend(std::ptr::null_mut::<u64>()) else {
                    panic!("the first shard gets what is lent");
                };
                for (number, me) in lent.into_iter().zip(1..) {
                    // SAFETY: the owner of the number waits until it is given back.
                    unsafe { *number += me };
                }
                port.give_back();
            }
        });
    }

    #[test]
    fn who_has_lent_to_a_lost_shard_is_reported() {
        let matrix = &Matrix::<()>::new(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut number = 0u64;
                matrix.port(1).lend(&raw mut number) == Loan::Lost
            });
            let lost = scope.spawn(|| {
                let mut port = matrix.port(0);
                assert!(matches!(
                    port.lend(std::ptr::null_mut::<u64>()),
                    Loan::All(_)
                ));
                std::thread::sleep(std::time::Duration::from_millis(5));
                std::panic::resume_unwind(Box::new("lost"));
            });
            assert!(lost.join().is_err());
            assert!(waiting.join().unwrap());
        });
    }

    // Guarantee: core-86.
    #[test]
    fn a_lost_shard_does_not_hang_the_others() {
        let matrix = Matrix::<()>::new(2);
        let contribution = Reduction {
            next: 0,
            end: 0,
            halt: false,
            pause: false,
            busy: false,
            events: 0,
            last: 0,
        };
        std::thread::scope(|scope| {
            let lost = scope.spawn(|| {
                let _port = matrix.port(0);
                std::panic::resume_unwind(Box::new("lost"));
            });
            let waiting = scope.spawn(|| {
                matrix
                    .port(1)
                    .exchange(contribution, &mut [(), ()], &mut [(), ()], || false)
            });
            assert!(lost.join().is_err());
            assert!(waiting.join().unwrap().halt);
        });
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    // Guarantee: core-86.
    /// Under every interleaving that loom finds, no cell is accessed by two sides at once, and each batch arrives in
    /// its round.
    #[test]
    fn loom_two_shards_meet_three_times() {
        loom::model(|| {
            let matrix = Arc::new(Matrix::<Option<u64>>::new(2));
            let shard = |matrix: Arc<Matrix<Option<u64>>>, me: usize| {
                let mut port = matrix.port(me);
                for round in 0..3 {
                    let mut out = [Some(round), Some(round)];
                    let mut inbox = [None, None];
                    let contribution = Reduction {
                        next: round + me as u64,
                        end: 9,
                        halt: false,
                        pause: false,
                        busy: false,
                        events: 0,
                        last: 0,
                    };
                    let agreed = port.exchange(contribution, &mut out, &mut inbox, || false);
                    assert_eq!(agreed.next, round);
                    assert_eq!(inbox[1 - me], Some(round));
                }
            };
            let other = Arc::clone(&matrix);
            let thread = loom::thread::spawn(move || shard(other, 1));
            shard(matrix, 0);
            thread.join().unwrap();
        });
    }

    /// Under every interleaving, one side at a time uses a loan, and the owner sees what the first shard has
    /// written.
    #[test]
    fn loom_a_loop_is_lent_and_given_back() {
        use loom::cell::UnsafeCell;
        loom::model(|| {
            let matrix = Arc::new(Matrix::<()>::new(2));
            let other = Arc::clone(&matrix);
            let thread = loom::thread::spawn(move || {
                let mut port = other.port(1);
                let mine = Box::into_raw(Box::new(UnsafeCell::new(0)));
                for turn in 1..=2u64 {
                    // SAFETY: the pointer comes from a box, and the value is not lent now.
                    unsafe { (*mine).with_mut(|number| *number += 1) };
                    assert!(matches!(port.lend(mine), Loan::Back));
                    // SAFETY: the loop was given back, so only this thread accesses it.
                    unsafe { (*mine).with(|number| assert_eq!(*number, turn * 11)) };
                }
                // SAFETY: the loop was given back for the last time, and is not used again.
                drop(unsafe { Box::from_raw(mine) });
            });
            let mut port = matrix.port(0);
            for _ in 0..2 {
                let nothing: *mut UnsafeCell<u64> = std::ptr::null_mut();
                match port.lend(nothing) {
                    // SAFETY: the lent value exists until it is given back, and its owner waits.
                    Loan::All(lent) => unsafe { (*lent[0]).with_mut(|number| *number += 10) },
                    other => panic!("{other:?}"),
                }
                port.give_back();
            }
            thread.join().unwrap();
        });
    }
}
