//! Asynchronous halves: a future in its place, and everything that can happen to it.
//!
//! The functions here work on the half `H` of a block: they compute where in the block it lies, and
//! rely on its [`State`] for who may do what. Each says for whom it is.

use super::block::{Home, Shared};
use super::job::Job;
use super::registry::Registry;
use super::state::{Cancel, Pause, State};
use super::worker::Worker;
use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;

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

fn result<H: Home>(block: NonNull<Shared>) -> *mut thread::Result<<H::Future as Future>::Output> {
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
    unsafe {
        (*half::<H>(block))
            .state
            .get()
            .cast::<State>()
            .write(State::running())
    };
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
        block.as_ref().let_out();
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
        (*half::<H>(block))
            .state
            .get()
            .cast::<State>()
            .write(State::scheduled());
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
        block.as_ref().take_in();
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
        let registry = block.as_ref().home().as_ref().registry_pointer();
        match Worker::current() {
            Some(worker) if std::ptr::eq(worker.registry_pointer(), registry) => {
                worker.enqueue(job::<H>(block));
            }
            _ => {
                Registry::hold(registry);
                (*registry).enqueue(job::<H>(block));
                Registry::let_go(registry);
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
    RawWaker::new(
        block.as_ptr().cast_const().cast(),
        const { &waker_functions::<H>() },
    )
}

/// What a waker of a half does. Its data is the block. A cloned waker is a party to it; a lent one
/// is used only while its runner is one.
const fn waker_functions<H: Home>() -> RawWakerVTable {
    unsafe fn clone<H: Home>(data: *const ()) -> RawWaker {
        // SAFETY: the waker's party, or its lender's, keeps the block.
        unsafe {
            let block = block_of(data);
            block.as_ref().join_in();
            raw_waker::<H>(block)
        }
    }
    unsafe fn wake<H: Home>(data: *const ()) {
        // SAFETY: only clones are used up; the clone's party ends with the second call.
        unsafe {
            wake_by_ref::<H>(data);
            drop_waker::<H>(data);
        }
    }
    unsafe fn wake_by_ref<H: Home>(data: *const ()) {
        // SAFETY: as for `clone`. The state says whether the half is to be queued, once.
        unsafe {
            let block = block_of(data);
            if state::<H>(block).wake() {
                enqueue::<H>(block);
            }
        }
    }
    unsafe fn drop_waker<H: Home>(data: *const ()) {
        // SAFETY: only clones are dropped, and each is a party.
        unsafe { Shared::leave::<H>(block_of(data)) }
    }
    RawWakerVTable::new(clone::<H>, wake::<H>, wake_by_ref::<H>, drop_waker::<H>)
}

/// The block of a waker.
///
/// # Safety
/// `data` is that of a waker that [`raw_waker`] has made.
unsafe fn block_of(data: *const ()) -> NonNull<Shared> {
    // SAFETY: a waker's data is the address of a block.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}
