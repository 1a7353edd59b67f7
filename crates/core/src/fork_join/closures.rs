//! The closure form of fork-join.
#![allow(
    unsafe_code,
    reason = "the second half lies on the stack of the fork while another worker runs it"
)]

use super::job::{Job, JobHandle};
use super::latch::Latch;
use super::offer::Offer;
use super::pool::Pool;
use super::stack::on_fresh_stack;
use super::worker::Worker;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::thread;

/// Runs two closures, potentially at the same time, and returns both results.
///
/// The calling worker runs `a` at once and then `b`, unless another worker has begun `b` in the meantime. A fork that
/// no other worker takes costs a few nanoseconds, so recursive functions need no sequential cut-off for small inputs.
/// Only memory limits the depth of recursion.
///
/// Outside a pool, for example in an actor, the join runs in the [global pool](Pool::global) and blocks the calling
/// thread until both closures are over. So in virtual time a join is part of the event in which it is called, and takes
/// no virtual time.
///
/// ```
/// use corsair::fork_join::join;
/// let mut numbers = [3, 1, 2, 4];
/// let (low, high) = numbers.split_at_mut(2);
/// join(|| low.sort(), || high.sort());
/// assert_eq!(numbers, [1, 3, 2, 4]);
/// ```
///
/// # Panics
/// If `a` or `b` panics, after both are over; if both panic, with the panic of `a`. Also panics if the recursion is
/// deeper than memory allows.
#[inline(always)]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match Worker::current() {
        Some(worker) => join_on(worker, a, b),
        None => join_outside(a, b),
    }
}

#[cold]
#[inline(never)]
fn join_outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    Pool::global().install(|| join(a, b))
}

/// The second half, on the stack of its fork.
#[repr(C)]
struct Half<B, RB> {
    offer: Offer,
    work: UnsafeCell<MaybeUninit<B>>,
    result: UnsafeCell<MaybeUninit<thread::Result<RB>>>,
}

/// The job of a second half that was handed out to another worker.
#[repr(C)]
struct HalfJob<B, RB> {
    job: Job,
    half: *const Half<B, RB>,
    over: Latch,
}

/// The outcome of a second half.
enum Second {
    /// No other worker has begun the half, and none will begin it. So the worker of the fork runs the half.
    Mine,
    /// Another worker has run the half; the result is stored in it.
    Over,
}

#[inline(always)]
fn join_on<A, B, RA, RB>(worker: &Worker, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let mut half = MaybeUninit::<Half<B, RB>>::uninit();
    let half = half.as_mut_ptr();
    let offer = half.cast::<Offer>();
    // Another worker would run the copy in the half; this worker runs the original, so it need not read the work back
    // from memory. Exactly one of the two is used; `MaybeUninit`, because the copy may be in use elsewhere while the
    // original is passed on.
    let b = MaybeUninit::new(b);
    // SAFETY: `half` is memory for a `B`. It stays in place until `unlink`, `settle` or `go_deeper` ensures that no
    // other worker will access it: nothing before unwinds or returns.
    unsafe {
        (&raw mut (*half).work)
            .cast::<B>()
            .copy_from_nonoverlapping(b.as_ptr(), 1);
        worker.offers.link(offer, Half::<B, RB>::hand_out);
    }
    let here = half.addr();
    if worker.must_attend(here) && !worker.attend(here) {
        // SAFETY: the half was linked last, by this worker.
        return unsafe { Half::go_deeper(half, worker, a, b) };
    }
    let ra = catch_unwind(AssertUnwindSafe(a));
    // SAFETY: `offer` is the newest linked offer, because `a` has unlinked all offers that it linked. If it was unlinked
    // here, no other thread uses the copy of the work; otherwise it was handed out, and `b` is the original.
    unsafe {
        if !worker.offers.unlink(offer) {
            return Half::settle(half, worker, ra, b);
        }
        let b = b.assume_init();
        match ra {
            Ok(ra) => (ra, b()),
            Err(panic) => panicked(panic, b),
        }
    }
}

impl<B: FnOnce() -> RB, RB> Half<B, RB> {
    /// Converts a half to a job.
    ///
    /// # Safety
    /// The offer begins a half of this type that was linked by this worker, and is handed out once.
    unsafe fn hand_out(offer: *const Offer, worker: &Worker) -> JobHandle {
        let handed = Box::new(HalfJob::<B, RB> {
            job: Job::new(Self::run),
            half: offer.cast(),
            over: Latch::new(worker),
        });
        // SAFETY: `Half::run` expects the address of a `HalfJob` of these types, which begins with this job. The box exists
        // until the job has run or was taken back. The half is `Send`, because `join` requires it.
        unsafe { JobHandle::new(NonNull::from(Box::leak(handed)).cast()) }
    }

    /// Runs a half on the worker that took it.
    ///
    /// # Safety
    /// The job is one that [`Half::hand_out`] made, and was taken by this worker alone.
    unsafe fn run(job: NonNull<Job>, _: &Worker) {
        let handed = job.cast::<HalfJob<B, RB>>().as_ptr();
        // SAFETY: the half and the box exist until `over` is set, because the fork waits for it; the fork does not use
        // its original of the work, because it did not get the job back.
        unsafe {
            let half = (*handed).half;
            let work = (*(*half).work.get()).assume_init_read();
            let result = catch_unwind(AssertUnwindSafe(work));
            (*(*half).result.get()).write(result);
            Latch::set(&raw const (*handed).over);
        }
    }

    /// Takes a handed-out half back, or waits until it is over.
    ///
    /// # Safety
    /// This worker has linked the half, and it has been handed out. This is called once.
    unsafe fn get_back(half: *const Self, worker: &Worker) -> Second {
        // SAFETY: the half was handed out by this worker, so it has a job, which is the box that `hand_out` made. The
        // box is freed when no other worker has access to it.
        unsafe {
            let Some(job) = Offer::job(half.cast()) else {
                return Second::Mine;
            };
            let handed = job.cast::<HalfJob<B, RB>>().as_ptr();
            let second = if worker.mailbox().take_back(job) {
                Second::Mine
            } else {
                worker.wait(&(*handed).over);
                Second::Over
            };
            drop(Box::from_raw(handed));
            second
        }
    }

    /// Completes a fork whose second half was handed out.
    ///
    /// # Safety
    /// As for [`Half::get_back`]; `b` is the original of the half's work.
    #[cold]
    #[inline(never)]
    unsafe fn settle<RA>(
        half: *const Self,
        worker: &Worker,
        ra: thread::Result<RA>,
        b: MaybeUninit<B>,
    ) -> (RA, RB) {
        // SAFETY: the half was handed out. If this worker got it back, only the original of the work is used; if not,
        // the half's runner has stored the result.
        unsafe {
            let rb = match Half::get_back(half, worker) {
                Second::Mine => catch_unwind(AssertUnwindSafe(b.assume_init())),
                Second::Over => (*(*half).result.get()).assume_init_read(),
            };
            both(ra, rb)
        }
    }

    /// Runs both halves of the fork on a new stack, because the current stack is nearly full.
    ///
    /// # Safety
    /// This worker has linked the half last, or it was handed out since; `b` is the original of its work.
    #[cold]
    #[inline(never)]
    unsafe fn go_deeper<A, RA>(
        half: *const Self,
        worker: &Worker,
        a: A,
        b: MaybeUninit<B>,
    ) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: Send,
        RA: Send,
        RB: Send,
    {
        // SAFETY: the half is the newest linked offer, or `attend` has handed it out. If it is back, no other thread uses
        // the copy of the work; otherwise it is over, so its runner has stored the result.
        unsafe {
            let back = worker.offers.unlink(half.cast())
                || matches!(Half::get_back(half, worker), Second::Mine);
            if back {
                let b = b.assume_init();
                return on_fresh_stack(worker, || join(a, b));
            }
            let ra = catch_unwind(AssertUnwindSafe(|| on_fresh_stack(worker, a)));
            both(ra, (*(*half).result.get()).assume_init_read())
        }
    }
}

/// Runs the second half after the first has panicked.
#[cold]
#[inline(never)]
fn panicked<B: FnOnce() -> RB, RA, RB>(panic: Box<dyn std::any::Any + Send>, b: B) -> (RA, RB) {
    both(Err(panic), catch_unwind(AssertUnwindSafe(b)))
}

/// Returns both results, or resumes the panic of the first half that panicked.
fn both<RA, RB>(ra: thread::Result<RA>, rb: thread::Result<RB>) -> (RA, RB) {
    match (ra, rb) {
        (Ok(ra), Ok(rb)) => (ra, rb),
        (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
    }
}
