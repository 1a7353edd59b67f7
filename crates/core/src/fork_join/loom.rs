//! Models of everything that two threads do to one half at a time, checked in every order:
//! taking against taking back, waking against pausing, finishing against cancelling.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p corsair --lib fork_join::loom`

use super::block::Shared;
use super::job::Job;
use super::latch::Latch;
use super::mailbox::Mailbox;
use super::state::{Cancel, Pause, State};
use super::worker::Worker;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use std::ptr::{self, NonNull};
use std::task::{Wake, Waker};

/// Never run; only its address counts.
fn some_job() -> Job {
    unsafe fn never(_: NonNull<Job>, _: &Worker) {
        unreachable!("the models run no jobs")
    }
    // SAFETY: it is not put where a worker finds it.
    unsafe { Job::new(never) }
}

#[test]
fn a_handed_out_half_is_run_once_and_its_result_seen() {
    struct Model {
        mailbox: Mailbox,
        latch: Latch,
        /// The half's capture, and then its result.
        half: UnsafeCell<u32>,
    }
    // SAFETY: that the models do not race is what loom checks.
    unsafe impl Sync for Model {}
    // SAFETY: as above.
    unsafe impl Send for Model {}

    loom::model(|| {
        let worker = Box::new(Worker::new(0, ptr::null()));
        let model = Arc::new(Model {
            mailbox: Mailbox::new(),
            latch: Latch::new(&worker),
            half: UnsafeCell::new(0),
        });
        let job = Box::new(some_job());
        // SAFETY (of all accesses to the half): loom panics if they race.
        model.half.with_mut(|half| unsafe { *half = 1 });
        model.mailbox.put(NonNull::from(&*job));
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    let taken = model.mailbox.take().is_some();
                    if taken {
                        model.half.with_mut(|half| unsafe { *half += 1 });
                        // SAFETY: the model and the worker outlive the threads.
                        unsafe { Latch::set(&raw const model.latch) };
                    }
                    taken
                })
            })
            .collect();
        if model.mailbox.take_back(NonNull::from(&*job)) {
            model.half.with_mut(|half| unsafe { *half += 1 });
        } else {
            while !model.latch.is_set() {
                thread::yield_now();
            }
        }
        assert_eq!(model.half.with(|half| unsafe { *half }), 2);
        for thief in thieves {
            thief.join().expect("thieves do not panic");
        }
    });
}

#[test]
fn a_wake_during_a_poll_is_never_lost_and_schedules_once() {
    loom::model(|| {
        let state = Arc::new(State::running());
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let state = Arc::clone(&state);
                thread::spawn(move || state.wake())
            })
            .collect();
        let again = state.pause() == Pause::Again;
        let queued = wakers
            .into_iter()
            .filter_map(|waker| waker.join().ok())
            .filter(|it| *it);
        assert_eq!(usize::from(again) + queued.count(), 1);
    });
}

#[test]
fn a_result_is_dropped_by_the_runner_or_by_the_join() {
    loom::model(|| {
        let state = Arc::new(State::running());
        let runner = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.finish())
        };
        let joins = match state.cancel(false) {
            Cancel::Over => true,
            Cancel::Leave => false,
            other => panic!("{other:?} of a half that runs"),
        };
        let wanted = runner.join().expect("the runner does not panic");
        assert_eq!(
            wanted, joins,
            "the runner keeps it for the join, or drops it itself"
        );
    });
}

#[test]
fn a_cancelled_half_is_thrown_away_once() {
    for defer in [false, true] {
        loom::model(move || {
            let state = Arc::new(State::running());
            let discards = Arc::new(AtomicU32::new(0));
            // Runs what was queued, as a worker does.
            let run = |state: &State, discards: &AtomicU32| {
                if state.begin() {
                    assert_eq!(
                        state.pause(),
                        Pause::Discard,
                        "only the cancelling is to come"
                    );
                }
                discards.fetch_add(1, Ordering::Relaxed);
            };
            let waker = {
                let state = Arc::clone(&state);
                thread::spawn(move || state.wake())
            };
            let runner = {
                let (state, discards) = (Arc::clone(&state), Arc::clone(&discards));
                thread::spawn(move || match state.pause() {
                    Pause::Discard => {
                        discards.fetch_add(1, Ordering::Relaxed);
                        false
                    }
                    Pause::Again => true,
                    Pause::Idle => false,
                })
            };
            let cancelled = state.cancel(defer);
            let queued = [
                waker.join().expect("waking does not panic"),
                runner.join().expect("running does not panic"),
                cancelled == Cancel::Schedule,
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

/// Counts how often it is woken.
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_join_that_waits_is_woken_by_the_last_half() {
    loom::model(|| {
        let shared = Arc::new(Shared::model(2));
        let woken = std::sync::Arc::new(Woken(AtomicU32::new(0)));
        let halves: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.count_off())
            })
            .collect();
        let finished = shared.poll_finished(&Waker::from(std::sync::Arc::clone(&woken)));
        for half in halves {
            half.join().expect("counting off does not panic");
        }
        assert!(
            finished || woken.0.load(Ordering::Relaxed) == 1,
            "nobody would poll again"
        );
        assert!(shared.is_finished());
    });
}
