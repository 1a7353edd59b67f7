//! Blocks: an asynchronous half, what it leaves, and who still needs it.
//!
//! A block holds one half (of a root) or two (of a fork), and in front of them what the parties
//! share. Parties are the join, every half that runs on its own, and every waker that was cloned.
//! The last one to go frees the block; until then all of them may touch what is shared. A half
//! itself belongs to one of them at a time, as its [`State`] says.

use super::job::Job;
use super::registry::Registry;
use super::state::{Cancel, Pause, State};
use super::sync::{AtomicU32, Mutex, fence};
use super::worker::Worker;
use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;

/// What the parties to a block share; every block begins with it.
#[repr(C)]
pub(super) struct Shared {
    /// How many parties there are.
    parties: AtomicU32,
    /// How many halves run on their own and are not over. From here on fields are initialised only
    /// once something does not end within the call that began it ([`Shared::part`]).
    unfinished: AtomicU32,
    /// The worker from which the memory is, if it is a worker's; in any case one of the pool.
    home: NonNull<Worker>,
    /// Whom to wake when no half is unfinished.
    waiter: Mutex<Option<Waker>>,
}

/// A half and, when it is over, its result.
#[repr(C)]
pub(super) struct Half<F: Future> {
    /// Initialised once the half runs on its own.
    job: UnsafeCell<MaybeUninit<Job>>,
    state: UnsafeCell<MaybeUninit<State>>,
    place: UnsafeCell<MaybeUninit<Place<F>>>,
}

/// The future, and when that is over its result.
union Place<F: Future> {
    future: ManuallyDrop<F>,
    result: ManuallyDrop<thread::Result<F::Output>>,
}

/// Which half of which kind of block.
///
/// # Safety
/// A block of this kind begins with a [`Shared`] and has a `Half<Self::Future>` at `OFFSET`.
pub(super) unsafe trait Home {
    type Future: Future;

    /// Where the half is, in bytes from the beginning of the block.
    const OFFSET: usize;

    /// Gives back the memory of a block that nobody needs any more, whose halves are over and
    /// whose results are gone.
    unsafe fn free(block: NonNull<Shared>);
}

impl Shared {
    /// Begins the life of a block: one party, the join.
    ///
    /// # Safety
    /// `block` is memory for a block.
    #[inline(always)]
    pub(super) unsafe fn begin(block: NonNull<Shared>) {
        // SAFETY: memory for a block begins with memory for this.
        unsafe { (&raw mut (*block.as_ptr()).parties).write(AtomicU32::new(1)) };
    }

    /// Whether the join is the only party.
    #[inline(always)]
    pub(super) unsafe fn is_alone(block: NonNull<Shared>) -> bool {
        // SAFETY: `begin` has initialised it.
        unsafe { (*block.as_ptr()).parties.load(Ordering::Acquire) == 1 }
    }

    /// Makes a block ready for halves that run on their own, and for a life beyond the call. From
    /// here on the block holds the registry.
    ///
    /// # Safety
    /// Called once, by the join, before any half runs on its own.
    pub(super) unsafe fn part(block: NonNull<Shared>, home: &Worker) {
        let shared = block.as_ptr();
        // SAFETY: nobody else looks at these fields before a half runs on its own.
        unsafe {
            (&raw mut (*shared).unfinished).write(AtomicU32::new(0));
            (&raw mut (*shared).home).write(NonNull::from(home));
            (&raw mut (*shared).waiter).write(Mutex::new(None));
        }
        Registry::hold(home.registry());
    }

    /// A block of which all is initialised, with memory of its own.
    pub(super) fn parted(home: &Worker) -> Shared {
        Registry::hold(home.registry());
        Shared {
            parties: AtomicU32::new(1),
            unfinished: AtomicU32::new(0),
            home: NonNull::from(home),
            waiter: Mutex::new(None),
        }
    }

    /// A block with so many unfinished halves, for models of what parties do to it.
    #[cfg(all(test, loom))]
    pub(super) fn model(unfinished: u32) -> Shared {
        Shared {
            parties: AtomicU32::new(1 + unfinished),
            unfinished: AtomicU32::new(unfinished),
            home: NonNull::dangling(),
            waiter: Mutex::new(None),
        }
    }

    pub(super) fn home(&self) -> NonNull<Worker> {
        self.home
    }

    /// Whether all halves that run on their own are over; the results are then visible.
    pub(super) fn is_finished(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 0
    }

    /// Whether all halves are over; if not, `waker` is woken when they are.
    pub(super) fn poll_finished(&self, waker: &Waker) -> bool {
        if self.is_finished() {
            return true;
        }
        let mut waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &*waiter {
            Some(known) if known.will_wake(waker) => None,
            _ => waiter.replace(waker.clone()),
        };
        drop(waiter);
        drop(before);
        // The last half counts itself off first and looks for a waiter then: it has seen this one,
        // or is seen here.
        self.is_finished()
    }

    /// A half is over; the last one wakes who waits.
    pub(super) fn count_off(&self) {
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waiter) = waiter {
                // A waker is foreign code; that it panics is nothing to the one who wakes.
                let _ = catch_unwind(AssertUnwindSafe(|| waiter.wake()));
            }
        }
    }

    /// A further party.
    pub(super) fn join_in(&self) {
        let before = self.parties.fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX / 2, "fork-join: too many wakers of one half");
    }

    /// A party goes; the last one frees the block.
    ///
    /// # Safety
    /// The caller speaks for one party and does not touch the block after. Blocks were parted
    /// before their last party goes this way.
    pub(super) unsafe fn leave<H: Home>(block: NonNull<Shared>) {
        // SAFETY: the block is there as long as there is a party.
        unsafe {
            if block.as_ref().parties.fetch_sub(1, Ordering::Release) == 1 {
                fence(Ordering::Acquire);
                (&raw mut (*block.as_ptr()).waiter).drop_in_place();
                let registry = block.as_ref().home.as_ref().registry();
                let registry = NonNull::from(registry);
                H::free(block);
                Registry::let_go(registry);
            }
        }
    }
}

/// The half `H` of a block.
fn half<H: Home>(block: NonNull<Shared>) -> *mut Half<H::Future> {
    // Stays inside the block, by the contract of `Home`.
    block.as_ptr().wrapping_byte_add(H::OFFSET).cast()
}

/// # Safety
/// The state was set.
unsafe fn state<'a, H: Home>(block: NonNull<Shared>) -> &'a State {
    // SAFETY: by the caller; the block outlives the uses within this module's functions, each of
    // which speaks for a party.
    unsafe { (*(*half::<H>(block)).state.get()).assume_init_ref() }
}

fn place_of<H: Home>(block: NonNull<Shared>) -> *mut Place<H::Future> {
    // SAFETY: computes an address inside the block only.
    unsafe { (&raw mut (*half::<H>(block)).place).cast() }
}

fn future<H: Home>(block: NonNull<Shared>) -> *mut H::Future {
    // SAFETY: as above. `ManuallyDrop` is transparent.
    unsafe { (&raw mut (*place_of::<H>(block)).future).cast() }
}

fn result<H: Home>(
    block: NonNull<Shared>,
) -> *mut thread::Result<<H::Future as Future>::Output> {
    // SAFETY: as above.
    unsafe { (&raw mut (*place_of::<H>(block)).result).cast() }
}

fn job<H: Home>(block: NonNull<Shared>) -> NonNull<Job> {
    // The job is the half's first field.
    // SAFETY: an address inside a block is not null.
    unsafe { NonNull::new_unchecked(half::<H>(block).cast()) }
}

/// Puts a future into its place.
///
/// # Safety
/// `block` is memory for a block; nobody else knows the half.
#[inline(always)]
pub(super) unsafe fn place<H: Home>(block: NonNull<Shared>, value: H::Future) {
    // SAFETY: by the caller.
    unsafe { future::<H>(block).write(value) };
}

/// Says that the caller runs the half, which nobody else knows.
///
/// # Safety
/// As for [`place`].
#[inline(always)]
pub(super) unsafe fn set_running<H: Home>(block: NonNull<Shared>) {
    // SAFETY: by the caller.
    unsafe { (*half::<H>(block)).state.get().cast::<State>().write(State::running()) };
}

/// Polls a half, and drops its future once that is over.
///
/// # Safety
/// The caller is the half's runner.
#[inline(always)]
pub(super) unsafe fn poll<H: Home>(
    block: NonNull<Shared>,
) -> Poll<thread::Result<<H::Future as Future>::Output>> {
    let future = future::<H>(block);
    let polled = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the waker is only lent. Whoever clones it becomes a party; until then the
        // runner's party keeps the block.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker::<H>(block)) });
        // SAFETY: the runner alone touches the future, which stays in its place until dropped.
        unsafe { Pin::new_unchecked(&mut *future).poll(&mut Context::from_waker(&waker)) }
    }));
    let value = match polled {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(value)) => Ok(value),
        Err(panic) => Err(panic),
    };
    // SAFETY: as above; the future is over and not touched again.
    let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { future.drop_in_place() }));
    Poll::Ready(match dropped {
        Ok(()) => value,
        Err(panic) => value.and(Err(panic)),
    })
}

/// Puts the result of a half that its own join has run into place.
///
/// # Safety
/// The caller is the join and the half's runner; the half does not run on its own.
pub(super) unsafe fn keep<H: Home>(
    block: NonNull<Shared>,
    value: thread::Result<<H::Future as Future>::Output>,
) {
    // SAFETY: the future is gone, so the place is free.
    unsafe {
        result::<H>(block).write(value);
        state::<H>(block).finish();
    }
}

/// Says of a half whose result was passed on at once that wakers have nothing to wake any more.
///
/// # Safety
/// As for [`keep`].
pub(super) unsafe fn retire<H: Home>(block: NonNull<Shared>) {
    // SAFETY: the state was set before the half was run.
    unsafe { state::<H>(block).finish() };
}

/// Takes the result.
///
/// # Safety
/// The caller is the join, the half is over and was not cancelled; once only.
pub(super) unsafe fn take_result<H: Home>(
    block: NonNull<Shared>,
) -> thread::Result<<H::Future as Future>::Output> {
    // SAFETY: by the caller.
    unsafe { result::<H>(block).read() }
}

/// Whether the half was cancelled.
///
/// # Safety
/// The caller speaks for a party; the state was set.
pub(super) unsafe fn is_cancelled<H: Home>(block: NonNull<Shared>) -> bool {
    // SAFETY: by the caller.
    unsafe { state::<H>(block).is_cancelled() }
}

/// Makes a half run on its own: it becomes a party, and has a job.
///
/// # Safety
/// The block was parted; the caller is the join and the half's runner, or nobody has run it yet.
unsafe fn emancipate<H: Home>(block: NonNull<Shared>) {
    // SAFETY: nobody uses the job before the state says scheduled, which is the caller's to say.
    // `run` takes the address of a half's job.
    unsafe {
        (*(*half::<H>(block)).job.get()).write(Job::new(run::<H>));
        let shared = block.as_ref();
        shared.unfinished.fetch_add(1, Ordering::Relaxed);
        shared.join_in();
    }
}

/// Makes a job of a half that nobody has run, for the caller to put where a worker finds it.
///
/// # Safety
/// The block was parted; the caller is the join; nobody else knows the half.
pub(super) unsafe fn schedule<H: Home>(block: NonNull<Shared>) -> NonNull<Job> {
    // SAFETY: by the caller.
    unsafe {
        emancipate::<H>(block);
        (*half::<H>(block)).state.get().cast::<State>().write(State::scheduled());
    }
    job::<H>(block)
}

/// Undoes [`schedule`] of a half that no worker has got.
///
/// # Safety
/// The caller is the join, and has taken the job back.
pub(super) unsafe fn unschedule<H: Home>(block: NonNull<Shared>) {
    // SAFETY: by the caller; the join stays a party.
    unsafe {
        state::<H>(block).take_back();
        let shared = block.as_ref();
        shared.unfinished.fetch_sub(1, Ordering::Relaxed);
        shared.parties.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Leaves a half to itself that its join has polled, and that was not ready.
///
/// # Safety
/// The block was parted; the caller is the join and the half's runner.
pub(super) unsafe fn depart<H: Home>(block: NonNull<Shared>) {
    // SAFETY: by the caller.
    unsafe {
        emancipate::<H>(block);
        pause::<H>(block);
    }
}

/// Runs a half that runs on its own.
///
/// # Safety
/// `found` is the job of a half `H`, found by this caller alone.
unsafe fn run<H: Home>(found: NonNull<Job>, _: &Worker) {
    // SAFETY: the job is the first field of its half, which is at `OFFSET`. A half that is not
    // over is a party, so the block is there; what follows speaks for it.
    unsafe {
        let block = found.byte_sub(H::OFFSET).cast::<Shared>();
        if !state::<H>(block).begin() {
            return discard::<H>(block);
        }
        match poll::<H>(block) {
            Poll::Pending => pause::<H>(block),
            Poll::Ready(value) => {
                result::<H>(block).write(value);
                if !state::<H>(block).finish() {
                    drop_quietly(result::<H>(block));
                }
                block.as_ref().count_off();
                Shared::leave::<H>(block);
            }
        }
    }
}

/// After a poll that was not ready. The caller's part in the half ends here.
unsafe fn pause<H: Home>(block: NonNull<Shared>) {
    // SAFETY: the caller is the half's runner, up to the change of state.
    unsafe {
        match state::<H>(block).pause() {
            Pause::Idle => {}
            Pause::Again => enqueue::<H>(block),
            Pause::Discard => discard::<H>(block),
        }
    }
}

/// Throws away the future of a half that runs on its own. It ceases to be a party.
unsafe fn discard<H: Home>(block: NonNull<Shared>) {
    // SAFETY: the caller is the one whom the state has told to.
    unsafe {
        drop_quietly(future::<H>(block));
        state::<H>(block).discarded();
        block.as_ref().count_off();
        Shared::leave::<H>(block);
    }
}

/// Puts a scheduled half where a worker finds it.
pub(super) unsafe fn enqueue<H: Home>(block: NonNull<Shared>) {
    // SAFETY: scheduled halves are in one place at a time. The home, and with it the registry,
    // outlives the block; but the block may be gone as soon as the job is queued, and the block
    // holds the registry: so it is held here.
    unsafe {
        let registry = block.as_ref().home.as_ref().registry();
        match Worker::current() {
            Some(worker) if std::ptr::eq(worker.registry(), registry) => {
                worker.enqueue(job::<H>(block));
            }
            _ => {
                Registry::hold(registry);
                registry.enqueue(job::<H>(block));
                Registry::let_go(NonNull::from(registry));
            }
        }
    }
}

/// Takes back the wish for a half's result. Never waits.
///
/// # Safety
/// The caller speaks for a party and will not use the result; the state was set.
pub(super) unsafe fn cancel<H: Home>(block: NonNull<Shared>, defer: bool) {
    // SAFETY: by the caller, and as the state decides.
    unsafe {
        match state::<H>(block).cancel(defer) {
            Cancel::Discard => discard::<H>(block),
            Cancel::Schedule => enqueue::<H>(block),
            Cancel::Leave => {}
            Cancel::Over => drop_quietly(result::<H>(block)),
        }
    }
}

/// Cancels a half without a claim to its result: if it is over, that is left to whoever has one.
///
/// # Safety
/// The caller speaks for a party; the state was set.
pub(super) unsafe fn abort<H: Home>(block: NonNull<Shared>) {
    // SAFETY: by the caller, and as the state decides.
    unsafe {
        if state::<H>(block).cancel(false) == Cancel::Discard {
            discard::<H>(block);
        }
    }
}

/// Drops a value that nobody waits for; if that panics, nobody can be told.
unsafe fn drop_quietly<T>(value: *mut T) {
    // SAFETY: the value is the caller's to drop.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { value.drop_in_place() }));
}

fn raw_waker<H: Home>(block: NonNull<Shared>) -> RawWaker {
    RawWaker::new(block.as_ptr().cast_const().cast(), const { &waker_functions::<H>() })
}

const fn waker_functions<H: Home>() -> RawWakerVTable {
    // SAFETY (of all four): the data of a waker is its block; a cloned waker is a party to it, and
    // a lent one is used while its runner is.
    unsafe fn clone<H: Home>(data: *const ()) -> RawWaker {
        unsafe {
            let block = NonNull::new_unchecked(data.cast_mut().cast::<Shared>());
            block.as_ref().join_in();
            raw_waker::<H>(block)
        }
    }
    unsafe fn wake<H: Home>(data: *const ()) {
        unsafe {
            wake_by_ref::<H>(data);
            drop_waker::<H>(data);
        }
    }
    unsafe fn wake_by_ref<H: Home>(data: *const ()) {
        unsafe {
            let block = NonNull::new_unchecked(data.cast_mut().cast::<Shared>());
            if state::<H>(block).wake() {
                enqueue::<H>(block);
            }
        }
    }
    unsafe fn drop_waker<H: Home>(data: *const ()) {
        unsafe { Shared::leave::<H>(NonNull::new_unchecked(data.cast_mut().cast::<Shared>())) }
    }
    RawWakerVTable::new(clone::<H>, wake::<H>, wake_by_ref::<H>, drop_waker::<H>)
}
