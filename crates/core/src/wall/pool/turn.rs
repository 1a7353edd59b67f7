//! The right to queue a job and the right to run it.
//!
//! ```text
//!           wake                 taken
//!   IDLE ─────────▶ QUEUED ─────────────▶ RUNNING ──▶ IDLE      (it waits)
//!                      ▲                     │ wake
//!                      └────── AGAIN ◀───────┘        (it has waited, and is queued again)
//! ```
//!
//! Each step is a read-modify-write, even if it changes nothing, so that the next run sees everything that a waker
//! wrote before it woke the job, even if the job was already queued.

use crate::sync::{AtomicU8, Ordering};
use Ordering::{AcqRel, Acquire};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const AGAIN: u8 = 3;

/// The state of a job; see the [module](self).
#[derive(Debug)]
pub(super) struct Turn(AtomicU8);

impl Turn {
    /// Creates the turn of a job that its creator queues.
    pub(super) fn queued() -> Turn {
        Turn(AtomicU8::new(QUEUED))
    }

    /// Records that the job has work to do. Returns true if the caller must queue it.
    pub(super) fn wake(&self) -> bool {
        let next = |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(AGAIN),
            same => Some(same),
        };
        self.0.fetch_update(AcqRel, Acquire, next) == Ok(IDLE)
    }

    /// Starts a run: the job was taken out of the queue, and only the caller runs it.
    pub(super) fn begin(&self) {
        self.0.swap(RUNNING, AcqRel);
    }

    /// Records that the job waits. Returns true if it was woken during the poll; then the caller must queue it.
    pub(super) fn end(&self) -> bool {
        let woken = self.0.compare_exchange(RUNNING, IDLE, AcqRel, Acquire);
        if woken.is_err() {
            self.0.swap(QUEUED, AcqRel);
        }
        woken.is_err()
    }
}

/// Loom models: `RUSTFLAGS="--cfg loom" cargo test -p corsair --lib pool::turn::loom`.
#[cfg(all(test, loom))]
#[allow(unsafe_code, reason = "loom watches a cell that the model shares")]
mod loom {
    use super::Turn;
    use crate::sync::{AtomicU32, AtomicU64, Ordering::Relaxed, UnsafeCell};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// A job and its count in the run queue. When the job runs, it reads the value that its wakers have written.
    struct Job {
        turn: Turn,
        /// The number of times that the job is in the queue.
        queue: Mutex<u32>,
        /// The value that wakers write before they wake it.
        written: AtomicU64,
        seen: AtomicU64,
        /// A cell that only the thread that runs the job writes; loom detects concurrent writes.
        body: UnsafeCell<u32>,
        runs: AtomicU32,
    }

    // SAFETY: only the thread that has taken the job out of the queue writes `body`. Loom reports any concurrent
    // access.
    unsafe impl Sync for Job {}
    // SAFETY: threads access the job only through its atomics and through the cell that loom checks.
    unsafe impl Send for Job {}

    impl Job {
        fn wake(&self, what: u64) {
            self.written.fetch_or(what, Relaxed);
            if self.turn.wake() {
                *self.queue.lock().unwrap() += 1;
            }
        }

        /// Runs the job if it is in the queue.
        fn work(&self) {
            let taken = {
                let mut queue = self.queue.lock().unwrap();
                assert!(*queue <= 1, "queued twice");
                std::mem::take(&mut *queue) == 1
            };
            if !taken {
                return;
            }
            self.turn.begin();
            // SAFETY: this thread has taken the job out of the queue, so no other thread accesses `body`.
            self.body.with_mut(|body| unsafe { *body += 1 });
            self.seen.store(self.written.load(Relaxed), Relaxed);
            self.runs.fetch_add(1, Relaxed);
            if self.turn.end() {
                *self.queue.lock().unwrap() += 1;
            }
        }
    }

    #[test]
    fn no_wake_up_is_lost_and_one_thread_at_a_time_runs_a_job() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let job = Arc::new(Job {
                turn: Turn::queued(),
                queue: Mutex::new(1),
                written: AtomicU64::new(0),
                seen: AtomicU64::new(0),
                body: UnsafeCell::new(0),
                runs: AtomicU32::new(0),
            });
            let waker = {
                let job = Arc::clone(&job);
                thread::spawn(move || job.wake(1))
            };
            let worker = {
                let job = Arc::clone(&job);
                thread::spawn(move || job.work())
            };
            job.wake(2);
            waker.join().unwrap();
            worker.join().unwrap();
            // One worker runs the job until the queue is empty: at most one further run sees all writes.
            while *job.queue.lock().unwrap() > 0 {
                job.work();
            }
            assert_eq!(job.seen.load(Relaxed), 3, "both were noticed");
            assert!(job.runs.load(Relaxed) <= 3);
        });
    }
}
