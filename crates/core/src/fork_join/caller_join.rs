//! Joins between a thread outside of a pool and a worker of the pool: the thread keeps working, and the worker helps.
#![allow(
    unsafe_code,
    reason = "an offer outlives the call only until it is taken back or over"
)]

use super::job::{Job, JobHandle};
use super::pool::Pool;
use super::worker::Worker;
use crate::sync::AtomicU32;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The time for which a caller spins for a worker that has begun, before it sleeps.
const AWAKE: Duration = Duration::from_micros(100);

/// No worker has begun the work yet.
const OFFERED: u32 = 0;
/// The caller has taken the work back. A worker that still finds the offer discards it.
const TAKEN_BACK: u32 = 1;
/// A worker is running the work.
const BEGUN: u32 = 2;
/// A worker is running the work, and must wake the caller at the end.
const AWAITED: u32 = 3;
/// The result is in place.
const OVER: u32 = 4;

/// The progress of work that was offered to a pool: exactly one side begins it.
pub(super) struct Progress(AtomicU32);

impl Progress {
    pub(super) fn new() -> Progress {
        Progress(AtomicU32::new(OFFERED))
    }

    fn step(&self, from: u32, to: u32) -> bool {
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// A worker calls this before it runs the work. Returns false if the caller has taken the work back.
    pub(super) fn begin(&self) -> bool {
        self.step(OFFERED, BEGUN)
    }

    /// The caller calls this to take the work back. Returns true if no worker has begun the work; then none will begin
    /// it.
    pub(super) fn take_back(&self) -> bool {
        self.step(OFFERED, TAKEN_BACK)
    }

    /// The worker calls this when it has run the work. Returns true if the caller sleeps or is about to sleep.
    pub(super) fn finish(&self) -> bool {
        self.0.swap(OVER, Ordering::AcqRel) == AWAITED
    }

    /// The caller calls this before it sleeps. Returns false if the work is done.
    pub(super) fn wait(&self) -> bool {
        self.step(BEGUN, AWAITED) || !self.is_over()
    }

    /// True if the result is in place and visible.
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == OVER
    }
}

/// The work and its result, on the stack of the thread that offers the work.
struct Slot<B, RB> {
    work: UnsafeCell<Option<B>>,
    result: UnsafeCell<Option<thread::Result<RB>>>,
}

/// An offer of the work in a slot. The offer is allocated separately, because a worker may find it in a queue after the
/// caller has taken back the work.
#[repr(C)]
struct Offer<B, RB> {
    job: Job,
    progress: Progress,
    slot: *const Slot<B, RB>,
    caller: Thread,
}

impl Pool {
    /// Runs `local` on the calling thread and `offered` on a worker of this pool, potentially at the
    /// same time, and returns both results.
    ///
    /// Unlike [`install`](Pool::install), this method keeps the calling thread working and never waits until a worker
    /// wakes: if no worker has begun `offered` when `local` is over, the calling thread runs `offered` as well. Waking
    /// a worker takes tens of microseconds, so `offered` should take hundreds of microseconds. Forks within `offered`
    /// are shared among the workers of this pool. Each call allocates memory once.
    ///
    /// ```
    /// use corsair::fork_join::Pool;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// let pool = Pool::new(1)?;
    /// let next = AtomicU64::new(0);
    /// let take = || std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
    /// let sum = || take().take_while(|n| *n <= 1000).sum::<u64>();
    /// let (local, offered) = pool.join_with_caller(sum, sum);
    /// assert_eq!(local + offered, 500_500);
    /// # Ok::<(), corsair::fork_join::PoolError>(())
    /// ```
    ///
    /// # Panics
    /// If `local` or `offered` panics, after both are over; if both panic, with the panic of `local`.
    pub fn join_with_caller<A, B, RA, RB>(&self, local: A, offered: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        let slot = Slot {
            work: UnsafeCell::new(Some(offered)),
            result: UnsafeCell::new(None),
        };
        let offer = NonNull::from(Box::leak(Box::new(Offer {
            job: Job::new(Offer::<B, RB>::run),
            progress: Progress::new(),
            slot: &raw const slot,
            caller: thread::current(),
        })));
        // SAFETY: `Offer::run` expects the address of an `Offer` of these types. If the work is taken back, the worker that
        // finds the offer frees it; otherwise this function frees the offer when the work is over. The slot stays in
        // place until then, because nothing unwinds before.
        self.registry
            .enqueue(unsafe { JobHandle::new(offer.cast()) });
        let ra = catch_unwind(AssertUnwindSafe(local));
        // SAFETY: no worker frees the offer before the work is taken back. If a worker has begun the work, this thread
        // frees the offer.
        let is_taken_back = unsafe {
            let is_taken_back = offer.as_ref().progress.take_back();
            if !is_taken_back {
                self.wait_for(&offer.as_ref().progress);
                drop(Box::from_raw(offer.as_ptr()));
            }
            is_taken_back
        };
        let rb = if is_taken_back {
            let work = slot.work.into_inner();
            work.map(|work| catch_unwind(AssertUnwindSafe(work)))
        } else {
            slot.result.into_inner()
        };
        match (ra, rb) {
            (Ok(ra), Some(Ok(rb))) => (ra, rb),
            (Err(panic), _) | (_, Some(Err(panic))) => resume_unwind(panic),
            (Ok(_), None) => unreachable!("a worker that begins stores a result"),
        }
    }

    fn wait_for(&self, progress: &Progress) {
        if let Some(worker) = self.worker() {
            return worker.work_until(|| progress.is_over());
        }
        if self.registry.has_spare_core() {
            let until = Instant::now() + AWAKE;
            while !progress.is_over() && Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        while progress.wait() {
            thread::park();
        }
    }
}

impl<B: FnOnce() -> RB, RB> Offer<B, RB> {
    /// # Safety
    /// `job` begins an offer that this caller alone has taken from a queue.
    unsafe fn run(job: NonNull<Job>, _: &Worker) {
        let offer = job.cast::<Self>();
        // SAFETY: the offer exists until this worker frees it, if the work was taken back, or until `finish`, after
        // which the caller may free it. The slot exists from `begin` to `finish`. After `finish` only the copied handle
        // of the caller is used.
        unsafe {
            if !offer.as_ref().progress.begin() {
                return drop(Box::from_raw(offer.as_ptr()));
            }
            let slot = offer.as_ref().slot;
            let work = (*(*slot).work.get()).take();
            let result = work.map(|work| catch_unwind(AssertUnwindSafe(work)));
            *(*slot).result.get() = result;
            let caller = offer.as_ref().caller.clone();
            if offer.as_ref().progress.finish() {
                caller.unpark();
            }
        }
    }
}
