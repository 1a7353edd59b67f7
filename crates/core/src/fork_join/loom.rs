//! Loom models of two threads that access one half at the same time: one takes it while the other takes it back, one
//! wakes it while the other pauses it, one finishes it while the other cancels it.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p corsair --lib fork_join::loom`
#![allow(
    unsafe_code,
    reason = "models of the protocols run jobs by their addresses"
)]

use super::block::Header;
use super::caller_join::Progress;
use super::job::{Job, JobHandle};
use super::latch::Latch;
use super::mailbox::Mailbox;
use super::state::{After, Cancel, Pause, Side, State, Unwanted};
use super::worker::Worker;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use std::ptr::{self, NonNull};
use std::task::{Wake, Waker};

/// Returns a job that never runs; the models use only its address.
fn some_job() -> Job {
    Job::new(|_, _| unreachable!("the models run no jobs"))
}

/// A number that the threads of a model share. Loom panics if accesses to it race.
struct Watched(UnsafeCell<u32>);

impl Watched {
    fn new(value: u32) -> Watched {
        Watched(UnsafeCell::new(value))
    }

    fn get(&self) -> u32 {
        // SAFETY: loom panics if this access races with a change.
        self.0.with(|value| unsafe { *value })
    }

    fn change(&self, by: i32) {
        // SAFETY: loom panics if this change races with another access.
        self.0
            .with_mut(|value| unsafe { *value = value.read().strict_add_signed(by) });
    }
}

/// What the threads of a model share.
struct Model<T>(T);

// SAFETY: the threads use a model only through its atomics, through cells that loom checks, and through the job that one
// of them finds.
unsafe impl<T> Sync for Model<T> {}
// SAFETY: as for `Sync`; the last thread drops the model.
unsafe impl<T> Send for Model<T> {}

impl<T> std::ops::Deref for Model<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

// Guarantee: core-87.
#[test]
fn a_handed_out_half_is_run_once_and_its_result_seen() {
    struct HandOut {
        mailbox: Mailbox,
        latch: Latch,
        /// The captured value of the half, later its result.
        half: Watched,
    }

    loom::model(|| {
        let worker = Box::new(Worker::new(0, ptr::null()));
        let model = Arc::new(Model(HandOut {
            mailbox: Mailbox::new(),
            latch: Latch::new(&worker),
            half: Watched::new(1),
        }));
        let job = Box::new(some_job());
        // SAFETY: no worker runs the job.
        model
            .mailbox
            .put(unsafe { JobHandle::new(NonNull::from(&*job)) });
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    let taken = model.mailbox.take().is_some();
                    if taken {
                        model.half.change(1);
                        // SAFETY: the model and the worker outlive the threads.
                        unsafe { Latch::set(&raw const model.latch) };
                    }
                    taken
                })
            })
            .collect();
        if model.mailbox.take_back(NonNull::from(&*job)) {
            model.half.change(1);
        } else {
            while !model.latch.is_set() {
                thread::yield_now();
            }
        }
        assert_eq!(model.half.get(), 2);
        for thief in thieves {
            thief.join().expect("thieves do not panic");
        }
    });
}

#[test]
fn work_beside_the_caller_is_begun_by_one_side_and_its_end_is_seen() {
    struct Offered {
        progress: Progress,
        work: Watched,
        unparked: AtomicU32,
    }

    loom::model(|| {
        let model = Arc::new(Model(Offered {
            progress: Progress::new(),
            work: Watched::new(0),
            unparked: AtomicU32::new(0),
        }));
        let worker = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                if model.progress.begin() {
                    model.work.change(1);
                    if model.progress.finish() {
                        model.unparked.store(1, Ordering::Release);
                    }
                }
            })
        };
        if model.progress.take_back() {
            model.work.change(1);
        } else {
            while model.progress.wait() {
                while model.unparked.load(Ordering::Acquire) == 0 {
                    thread::yield_now();
                }
            }
        }
        assert_eq!(model.work.get(), 1);
        worker.join().expect("the worker does not panic");
    });
}

/// Creates a fork whose halves are both held.
fn forked() -> Arc<State> {
    Arc::new(State::new(State::of_fork()))
}

#[test]
fn a_wake_during_a_poll_is_never_lost_and_queues_once() {
    loom::model(|| {
        let state = forked();
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let state = Arc::clone(&state);
                thread::spawn(move || state.wake(Side::First))
            })
            .collect();
        let again = state.pause(Side::First) == Pause::Again;
        let queued = wakers
            .into_iter()
            .filter_map(|waker| waker.join().ok())
            .filter(|it| *it);
        assert_eq!(usize::from(again) + queued.count(), 1);
    });
}

#[test]
fn what_was_written_before_a_wake_is_seen_by_the_poll_to_come() {
    loom::model(|| {
        let state = forked();
        let ready = Arc::new(AtomicU32::new(0));
        // The wake comes before or after the poll of the half.
        let waker = {
            let (state, ready) = (Arc::clone(&state), Arc::clone(&ready));
            thread::spawn(move || {
                ready.store(1, Ordering::Relaxed);
                state.wake(Side::First)
            })
        };
        assert!(state.begin(Side::First), "it is not cancelled");
        let seen = ready.load(Ordering::Relaxed) == 1;
        let again = state.pause(Side::First) == Pause::Again;
        let queued = waker.join().expect("waking does not panic");
        assert!(seen || again || queued, "no poll would follow");
    });
}

#[test]
fn a_result_is_dropped_by_the_runner_or_by_the_join() {
    loom::model(|| {
        let state = forked();
        let runner = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.finish(Side::First))
        };
        let joins = match state.cancel(Side::First, false) {
            Cancel::Over => true,
            Cancel::Leave => false,
            other => panic!("{other:?} of a half that runs"),
        };
        let finished = runner.join().expect("the runner does not panic");
        assert_eq!(
            finished,
            if joins {
                Ok(After::Nothing)
            } else {
                Err(Unwanted)
            },
            "the runner keeps it for the join, or drops it itself"
        );
    });
}

#[test]
fn a_cancelled_half_is_thrown_away_once() {
    for defer in [false, true] {
        loom::model(move || {
            let state = forked();
            let discards = Arc::new(AtomicU32::new(0));
            // Runs a queued half, as a worker does.
            let run = |state: &State, discards: &AtomicU32| {
                if state.begin(Side::First) {
                    assert_eq!(
                        state.pause(Side::First),
                        Pause::Discard,
                        "only the cancelling is to come"
                    );
                }
                discards.fetch_add(1, Ordering::Relaxed);
            };
            let waker = {
                let state = Arc::clone(&state);
                thread::spawn(move || state.wake(Side::First))
            };
            let runner = {
                let (state, discards) = (Arc::clone(&state), Arc::clone(&discards));
                thread::spawn(move || match state.pause(Side::First) {
                    Pause::Discard => {
                        discards.fetch_add(1, Ordering::Relaxed);
                        false
                    }
                    Pause::Again => true,
                    Pause::Idle => false,
                })
            };
            let cancelled = state.cancel(Side::First, defer);
            let queued = [
                waker.join().expect("waking does not panic"),
                runner.join().expect("running does not panic"),
                cancelled == Cancel::Queue,
            ];
            if cancelled == Cancel::Discard {
                discards.fetch_add(1, Ordering::Relaxed);
            }
            for _ in queued.into_iter().filter(|queued| *queued) {
                run(&state, &discards);
            }
            assert_eq!(
                discards.load(Ordering::Relaxed),
                1,
                "{cancelled:?}, queued: {queued:?}"
            );
        });
    }
}

/// A stand-in for the queue of woken halves, which only counts them.
struct ReadyQueue(AtomicU32);

impl Wake for ReadyQueue {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// A block with its results, and counters of the actions on it.
struct Block {
    shared: Header,
    results: [Watched; 2],
    freed: AtomicU32,
}

impl Block {
    fn new() -> Arc<Model<Block>> {
        Arc::new(Model(Block {
            shared: Header::model(State::new(State::of_fork())),
            results: [Watched::new(0), Watched::new(0)],
            freed: AtomicU32::new(0),
        }))
    }

    fn state(&self) -> &State {
        self.shared.state()
    }

    /// Performs the action of a step, like [`Header::follow`].
    fn follow(&self, after: After) {
        match after {
            After::Nothing => {}
            After::Queue => panic!("nothing of the models pauses"),
            After::Wake => {
                let waiter = self.shared.take_waiter();
                let after = self.state().leave();
                assert_ne!(after, After::Wake, "only the end of a half wakes");
                self.follow(after);
                waiter.wake();
            }
            After::Free => {
                // Loom panics if another thread still uses the block.
                for result in &self.results {
                    result.change(0);
                }
                self.freed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Runs a half to its end.
    fn run(&self, side: Side) {
        let result = &self.results[side as usize];
        result.change(1);
        let after = self.state().finish(side).unwrap_or_else(|Unwanted| {
            result.change(-1);
            self.state().end(side)
        });
        self.follow(after);
    }
}

#[test]
fn a_join_that_waits_is_woken_by_the_last_half_and_frees_the_block_once() {
    loom::model(|| {
        let block = Block::new();
        let woken = std::sync::Arc::new(ReadyQueue(AtomicU32::new(0)));
        let halves = [Side::First, Side::Second].map(|side| {
            let block = Arc::clone(&block);
            thread::spawn(move || block.run(side))
        });
        let waker = Waker::from(std::sync::Arc::clone(&woken));
        if !block.shared.poll_finished(&waker) {
            while woken.0.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
        }
        assert!(block.shared.is_finished(), "woken, but not finished");
        for result in &block.results {
            assert_eq!(result.get(), 1);
        }
        block.follow(block.state().leave());
        for half in halves {
            half.join().expect("halves do not panic");
        }
        assert_eq!(block.freed.load(Ordering::Relaxed), 1);
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&woken), 1, "a waker is left");
    });
}

#[test]
fn a_join_that_is_polled_anew_has_its_latest_waker_woken() {
    loom::model(|| {
        let block = Block::new();
        let woken = [(); 2].map(|()| std::sync::Arc::new(ReadyQueue(AtomicU32::new(0))));
        block.run(Side::First);
        let half = {
            let block = Arc::clone(&block);
            thread::spawn(move || block.run(Side::Second))
        };
        let finished = woken.iter().any(|woken| {
            let waker = Waker::from(std::sync::Arc::clone(woken));
            block.shared.poll_finished(&waker)
        });
        half.join().expect("halves do not panic");
        assert!(
            finished || woken[1].0.load(Ordering::Relaxed) == 1,
            "no poll would follow"
        );
        for woken in &woken {
            assert_eq!(std::sync::Arc::strong_count(woken), 1, "a waker is left");
        }
        block.follow(block.state().leave());
        assert_eq!(block.freed.load(Ordering::Relaxed), 1);
    });
}

/// Drops a join: takes back its waker and its claim to the results.
fn drop_join(block: &Block) {
    block.shared.wait_no_more();
    for side in [Side::First, Side::Second] {
        if block.state().cancel(side, false) == Cancel::Over {
            block.results[side as usize].change(-1);
        }
    }
    block.follow(block.state().leave());
}

#[test]
fn a_join_that_is_dropped_leaves_neither_result_nor_waker() {
    loom::model(|| {
        let block = Block::new();
        block.run(Side::First);
        let woken = std::sync::Arc::new(ReadyQueue(AtomicU32::new(0)));
        let finished = block
            .shared
            .poll_finished(&Waker::from(std::sync::Arc::clone(&woken)));
        assert!(!finished, "the second half has not begun");
        let half = {
            let block = Arc::clone(&block);
            thread::spawn(move || block.run(Side::Second))
        };
        drop_join(&block);
        half.join().expect("halves do not panic");
        assert_eq!(block.results.each_ref().map(Watched::get), [0, 0]);
        assert_eq!(block.freed.load(Ordering::Relaxed), 1);
        assert_eq!(std::sync::Arc::strong_count(&woken), 1, "a waker is left");
    });
}

#[test]
fn the_last_of_join_half_and_waker_frees_the_block() {
    loom::model(|| {
        let block = Block::new();
        block.run(Side::First);
        block.state().join_in();
        let half = {
            let block = Arc::clone(&block);
            thread::spawn(move || block.run(Side::Second))
        };
        let waker = {
            let block = Arc::clone(&block);
            thread::spawn(move || block.follow(block.state().wake_and_leave(Side::Second)))
        };
        block.follow(block.state().leave());
        half.join().expect("halves do not panic");
        waker.join().expect("waking does not panic");
        assert_eq!(block.freed.load(Ordering::Relaxed), 1);
    });
}
