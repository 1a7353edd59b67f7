//! Asynchronous halves: a future in its slot, and the operations on it.
//!
//! The functions of this module access the half `H` of a block. They compute the position of the half in the block, and
//! the block's [`State`] determines which thread may access it. Each function documents who may call it.
#![allow(
    unsafe_code,
    reason = "a half is reached by the address of its block and polled in place"
)]

use super::block::{Header, Home};
use super::job::Job;
use super::registry::Registry;
use super::state::{Cancel, Pause, Side, State, Unwanted};
use super::worker::Worker;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;

/// A half, and its result when it is over.
#[repr(C)]
pub(super) struct Half<F: Future> {
    /// Initialised when the half runs separately.
    job: UnsafeCell<MaybeUninit<Job>>,
    place: UnsafeCell<MaybeUninit<Place<F>>>,
}

/// The future, and after its end the result.
union Place<F: Future> {
    future: ManuallyDrop<F>,
    result: ManuallyDrop<thread::Result<F::Output>>,
}

/// Returns the half `H` of a block.
fn half<H: Home>(block: NonNull<Header>) -> *mut Half<H::Future> {
    // `Home` guarantees that the half is inside the block at `OFFSET`.
    block.as_ptr().wrapping_byte_add(H::OFFSET).cast()
}

/// # Safety
/// The block exists for the whole of `'a`.
unsafe fn state<'a>(block: NonNull<Header>) -> &'a State {
    // SAFETY: the block exists for the whole of `'a`, and its state is initialised by `Header::begin` or
    // `Header::parted`. This creates no reference to the whole header, because parts of it may be uninitialised.
    unsafe { Header::state(block).as_ref() }
}

fn place_of<H: Home>(block: NonNull<Header>) -> *mut Place<H::Future> {
    // SAFETY: computes an address inside the block only.
    unsafe { (&raw mut (*half::<H>(block)).place).cast() }
}

fn future<H: Home>(block: NonNull<Header>) -> *mut H::Future {
    // SAFETY: computes an address inside the block only. `ManuallyDrop` is transparent.
    unsafe { (&raw mut (*place_of::<H>(block)).future).cast() }
}

fn result<H: Home>(block: NonNull<Header>) -> *mut thread::Result<<H::Future as Future>::Output> {
    // SAFETY: computes an address inside the block only. `ManuallyDrop` is transparent.
    unsafe { (&raw mut (*place_of::<H>(block)).result).cast() }
}

fn job<H: Home>(block: NonNull<Header>) -> NonNull<Job> {
    // The job is the half's first field.
    // SAFETY: an address inside a block is not null.
    unsafe { NonNull::new_unchecked(half::<H>(block).cast()) }
}

/// Writes a future into its slot.
///
/// # Safety
/// `block` is memory for a block; no other thread knows the half.
#[inline(always)]
pub(super) unsafe fn place<H: Home>(block: NonNull<Header>, value: H::Future) {
    // SAFETY: `block` is memory for a block that no other thread knows, so the slot is empty and unshared.
    unsafe { future::<H>(block).write(value) };
}

/// Polls a half, and drops its future when it is over.
///
/// # Safety
/// The caller is the half's runner, and the waker of `context` wakes this half.
#[inline(always)]
pub(super) unsafe fn poll<H: Home>(
    block: NonNull<Header>,
    context: &mut Context<'_>,
) -> Poll<thread::Result<<H::Future as Future>::Output>> {
    let future = future::<H>(block);
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let panicking = DropIfPanicking(block, PhantomData::<H>);
        // SAFETY: only the runner accesses the future, which stays in its slot until it is dropped.
        let polled = unsafe { Pin::new_unchecked(&mut *future).poll(context) };
        std::mem::forget(panicking);
        if polled.is_ready() {
            // SAFETY: the future is over, and is not accessed again.
            unsafe { future.drop_in_place() };
        }
        polled
    }));
    match polled {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    }
}

/// Drops the future of a half whose poll panics.
struct DropIfPanicking<H: Home>(NonNull<Header>, PhantomData<H>);

impl<H: Home> Drop for DropIfPanicking<H> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: the runner, which created this guard, does not access the future again.
        unsafe { drop_quietly(future::<H>(self.0)) };
    }
}

/// Records that a half is over, and leaves its result to the join.
///
/// # Safety
/// The caller is the half's runner.
unsafe fn finish<H: Home>(
    block: NonNull<Header>,
    value: thread::Result<<H::Future as Future>::Output>,
) {
    // SAFETY: the future was dropped, so the slot is empty; the block exists until the half is over.
    unsafe {
        result::<H>(block).write(value);
        let after = state(block).finish(H::SIDE).unwrap_or_else(|Unwanted| {
            drop_quietly(result::<H>(block));
            state(block).end(H::SIDE)
        });
        Header::follow::<H>(block, after);
    }
}

/// Stores the result of a half that the join itself has run.
///
/// # Safety
/// The caller is the join, and the half's runner.
pub(super) unsafe fn store_result<H: Home>(
    block: NonNull<Header>,
    value: thread::Result<<H::Future as Future>::Output>,
) {
    // SAFETY: the join is the half's runner, so only the join accesses the slot, and the future is over.
    unsafe { finish::<H>(block, value) };
}

/// Marks a half as over without storing a result, because the caller already has the result. The half's wakers then
/// have no effect.
///
/// # Safety
/// As for [`store_result`]; in addition, the join does not wait.
pub(super) unsafe fn retire<H: Home>(block: NonNull<Header>) {
    // SAFETY: the join is a party, so the block exists.
    unsafe {
        let after = state(block).end(H::SIDE);
        Header::follow::<H>(block, after);
    }
}

/// Takes the result.
///
/// # Safety
/// The caller is the join. The half is over and was not cancelled. Called once.
pub(super) unsafe fn take_result<H: Home>(
    block: NonNull<Header>,
) -> thread::Result<<H::Future as Future>::Output> {
    // SAFETY: the half is over and was not cancelled, so its result is in place; the join reads it once.
    unsafe { result::<H>(block).read() }
}

/// True if the half was cancelled.
///
/// # Safety
/// The caller acts for a party.
pub(super) unsafe fn is_cancelled<H: Home>(block: NonNull<Header>) -> bool {
    // SAFETY: the caller's party keeps the block alive.
    unsafe { state(block).is_cancelled(H::SIDE) }
}

/// Prepares a half for running separately and returns its job, which the caller queues or puts into a mailbox.
///
/// # Safety
/// The block was prepared by [`Header::part`]; the caller holds the half, and no other thread has its job.
pub(super) unsafe fn detach<H: Home>(block: NonNull<Header>) -> NonNull<Job> {
    // SAFETY: no other thread uses the job before the caller publishes it. `run` expects the address of the job of a
    // half `H`.
    unsafe { (*(*half::<H>(block)).job.get()).write(Job::new(run::<H>)) };
    job::<H>(block)
}

/// Lets a half run separately, after the join has polled the half and it was not ready.
///
/// # Safety
/// The block was prepared by [`Header::part`]; the caller is the join and the half's runner.
pub(super) unsafe fn depart<H: Home>(block: NonNull<Header>) {
    // SAFETY: the block was prepared by `part`, and the join is the half's runner until `pause` releases the half.
    unsafe {
        detach::<H>(block);
        pause::<H>(block);
    }
}

/// Runs a half that runs separately.
///
/// # Safety
/// `found` is the job of a half `H`, found by this caller alone.
unsafe fn run<H: Home>(found: NonNull<Job>, worker: &Worker) {
    // SAFETY: the job is the first field of its half, which is at `OFFSET`. The block exists until the half is over.
    // The waker is only lent, so it is not dropped; each clone of it is a party.
    unsafe {
        let block = found.byte_sub(H::OFFSET).cast::<Header>();
        if !state(block).begin(H::SIDE) {
            return discard::<H>(block);
        }
        let waker = ManuallyDrop::new(Waker::from_raw(raw_waker::<H>(block)));
        match poll::<H>(block, &mut Context::from_waker(&waker)) {
            Poll::Pending => pause::<H>(block),
            Poll::Ready(value) => worker.at_the_end(|| finish::<H>(block, value)),
        }
    }
}

/// Pauses a half after a poll that was not ready. Afterwards the caller is not the half's runner.
unsafe fn pause<H: Home>(block: NonNull<Header>) {
    // SAFETY: the caller is the half's runner, up to the change of state.
    unsafe {
        match state(block).pause(H::SIDE) {
            Pause::Idle => {}
            Pause::Again => enqueue::<H>(block),
            Pause::Discard => discard::<H>(block),
        }
    }
}

/// Drops the future of a half that runs separately, which ends the half.
///
/// # Safety
/// A step of the block's state has returned the action to discard the future, only to this caller.
unsafe fn discard<H: Home>(block: NonNull<Header>) {
    // SAFETY: the state tells only one thread to discard the future, so no other thread accesses it.
    unsafe {
        drop_quietly(future::<H>(block));
        let after = state(block).end(H::SIDE);
        Header::follow::<H>(block, after);
    }
}

/// Queues a woken half so that a worker finds it soon.
///
/// # Safety
/// The caller holds the half until this call.
pub(super) unsafe fn enqueue_next<H: Home>(block: NonNull<Header>) {
    // SAFETY: the caller holds the half, so its job is queued once; `Worker::enqueue_next` has the same requirements as
    // `enqueue`.
    unsafe { enqueue_by::<H>(block, Worker::enqueue_next) };
}

/// Queues a half behind all others.
///
/// # Safety
/// The caller holds the half until this call.
unsafe fn enqueue<H: Home>(block: NonNull<Header>) {
    // SAFETY: the caller holds the half, so its job is queued once.
    unsafe { enqueue_by::<H>(block, Worker::enqueue) };
}

unsafe fn enqueue_by<H: Home>(block: NonNull<Header>, here: unsafe fn(&Worker, NonNull<Job>)) {
    // SAFETY: the half is held once, so its job is in one place at a time. The home and the registry outlive the block.
    // The block may be freed as soon as the job is queued, and releases the registry then, so this function holds the
    // registry as well.
    unsafe {
        let registry = block.as_ref().home().as_ref().registry_pointer();
        match Worker::current() {
            Some(worker) if std::ptr::eq(worker.registry_pointer(), registry) => {
                here(worker, job::<H>(block));
            }
            _ => {
                Registry::hold(registry);
                (*registry).enqueue(job::<H>(block));
                Registry::let_go(registry);
            }
        }
    }
}

/// Cancels the interest in a half's result. Never waits.
///
/// # Safety
/// The caller acts for a party and will not use the result.
pub(super) unsafe fn cancel<H: Home>(block: NonNull<Header>, defer: bool) {
    // SAFETY: the caller's party keeps the block alive. The state returns each action to only one thread: to discard or
    // queue a half that this thread now holds, or to drop a result that no party takes.
    unsafe {
        match state(block).cancel(H::SIDE, defer) {
            Cancel::Discard => discard::<H>(block),
            Cancel::Queue => enqueue::<H>(block),
            Cancel::Leave => {}
            Cancel::Over => drop_quietly(result::<H>(block)),
        }
    }
}

/// Cancels a half whose result belongs to another party: that party takes or drops a finished result.
///
/// # Safety
/// The caller acts for a party.
pub(super) unsafe fn abort<H: Home>(block: NonNull<Header>) {
    // SAFETY: the caller's party keeps the block alive; the state tells only one thread to discard the future, and that
    // thread then holds the half.
    unsafe {
        if state(block).cancel(H::SIDE, false) == Cancel::Discard {
            discard::<H>(block);
        }
    }
}

/// Drops an unneeded value and ignores a panic of its destructor.
unsafe fn drop_quietly<T>(value: *mut T) {
    // SAFETY: the callers own the value and do not use it afterwards.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { value.drop_in_place() }));
}

fn raw_waker<H: Home>(block: NonNull<Header>) -> RawWaker {
    RawWaker::new(
        block.as_ptr().cast_const().cast(),
        const { &RawWakerVTable::new(clone::<H>, wake::<H>, wake_by_ref::<H>, drop_waker::<H>) },
    )
}

/// The waker that the call of a fork lends to its two halves, one after the other. The block says which half is meant.
///
/// # Safety
/// The waker is used only while the call polls the halves, and is not dropped.
#[inline(always)]
pub(super) unsafe fn lent_waker<A: Home, B: Home>(block: NonNull<Header>) -> ManuallyDrop<Waker> {
    let functions = const {
        &RawWakerVTable::new(
            clone_lent::<A, B>,
            not_lent_for_good,
            wake_lent::<A, B>,
            not_lent_for_good,
        )
    };
    let data = block.as_ptr().cast_const().cast();
    // SAFETY: the functions expect the address of a block, which `data` is. The functions that consume the waker are
    // never called.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, functions)) })
}

// The functions of the wakers, as `RawWakerVTable` requires. A waker's data is the address of its block. A cloned waker
// is a party to the block; a lent waker is used only while its runner keeps the block alive.

unsafe fn clone<H: Home>(data: *const ()) -> RawWaker {
    // SAFETY: the waker's party, or the party of its lender, keeps the block alive.
    unsafe {
        let block = block_of(data);
        state(block).join_in();
        raw_waker::<H>(block)
    }
}

unsafe fn wake<H: Home>(data: *const ()) {
    // SAFETY: only clones are consumed; the clone is a party until `wake_and_leave`.
    unsafe {
        let block = block_of(data);
        let after = state(block).wake_and_leave(H::SIDE);
        Header::follow::<H>(block, after);
    }
}

unsafe fn wake_by_ref<H: Home>(data: *const ()) {
    // SAFETY: the waker's party, or the party of its lender, keeps the block alive; the state tells only one thread at
    // a time to queue the half.
    unsafe {
        let block = block_of(data);
        if state(block).wake(H::SIDE) {
            enqueue_next::<H>(block);
        }
    }
}

unsafe fn drop_waker<H: Home>(data: *const ()) {
    // SAFETY: only clones are dropped, and each is a party.
    unsafe { Header::leave::<H>(block_of(data)) }
}

unsafe fn clone_lent<A: Home, B: Home>(data: *const ()) -> RawWaker {
    // SAFETY: the waker is lent for the poll that `turn` names, so the block exists.
    unsafe {
        match Header::turn(block_of(data)) {
            Side::First => clone::<A>(data),
            Side::Second => clone::<B>(data),
        }
    }
}

unsafe fn wake_lent<A: Home, B: Home>(data: *const ()) {
    // SAFETY: the waker is lent for the poll that `turn` names, so that half is being polled and the block exists.
    unsafe {
        match Header::turn(block_of(data)) {
            Side::First => wake_by_ref::<A>(data),
            Side::Second => wake_by_ref::<B>(data),
        }
    }
}

unsafe fn not_lent_for_good(_: *const ()) {
    unreachable!("a waker that was only lent is not dropped");
}

/// Returns the block of a waker.
///
/// # Safety
/// `data` is the data of a waker of this module.
unsafe fn block_of(data: *const ()) -> NonNull<Header> {
    // SAFETY: a waker's data is the address of a block.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}
