//! Asynchronous halves: a future in its slot, and the operations on it.
//!
//! The block's [`State`](super::state::State) determines which thread may access a half. This right is a value here:
//! [`Held`] is the right to run a half, [`Finished`] the right and duty to say what becomes of its result. The methods
//! consume these values, so that a right is used once.
#![allow(
    unsafe_code,
    reason = "a half is reached by the address of its block and polled in place"
)]

use super::block::{Block, BlockPtr, Party, free};
use super::job::{Job, JobHandle};
use super::state::{After, Cancel, Pause, Side, Unwanted};
use super::worker::Worker;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, offset_of};
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
    _future: ManuallyDrop<F>,
    _result: ManuallyDrop<thread::Result<F::Output>>,
}

/// The position of a half in a kind of block.
///
/// # Safety
/// A block of kind `Block` begins with a [`Header`](super::block::Header), and has a [`Half<Self::Future>`](Half) at
/// `OFFSET`, whose side in the state is `SIDE`.
pub(super) unsafe trait Home {
    type Future: Future;
    type Block: Block;

    /// The side of the half in the block's state.
    const SIDE: Side;

    /// The offset of the half in bytes.
    const OFFSET: usize;
}

/// The result of a half.
pub(super) type HalfResult<H> = thread::Result<<<H as Home>::Future as Future>::Output>;

/// The right to run the half `H` of a block. Only the holder accesses the future.
///
/// A block with a half that is not over exists. The block is parted if the half runs separately.
pub(super) struct Held<H: Home>(BlockPtr, PhantomData<H>);

/// A half whose future is over and was dropped. The holder stores the result, or drops it.
pub(super) struct Finished<H: Home>(BlockPtr, PhantomData<H>);

/// A half that was polled.
pub(super) enum Polled<H: Home> {
    Pending(Held<H>),
    Over(Finished<H>, HalfResult<H>),
}

/// Returns the address of the half `H` of a block.
fn half<H: Home>(block: BlockPtr) -> *mut Half<H::Future> {
    // `Home` guarantees that the half is inside the block at `OFFSET`.
    let block = block.address().as_ptr();
    block.wrapping_byte_add(H::OFFSET).cast()
}

/// Returns the address of the future of a half, and of its result, which replaces the future. `UnsafeCell` and
/// `ManuallyDrop` are transparent, and the fields of a union are at its address.
fn place<H: Home, T>(block: BlockPtr) -> *mut T {
    let offset = offset_of!(Half<H::Future>, place);
    half::<H>(block).wrapping_byte_add(offset).cast()
}

fn future<H: Home>(block: BlockPtr) -> *mut H::Future {
    place::<H, _>(block)
}

fn result<H: Home>(block: BlockPtr) -> *mut HalfResult<H> {
    place::<H, _>(block)
}

impl<H: Home> Held<H> {
    /// Returns the right to run a half.
    ///
    /// # Safety
    /// The block has a half `H`, whose future is in its slot. The block's state gives the right to this caller alone.
    #[inline(always)]
    pub(super) unsafe fn new(block: BlockPtr) -> Held<H> {
        Held(block, PhantomData)
    }

    /// Writes a future into its slot.
    ///
    /// # Safety
    /// The block has a half `H`, whose slot is empty. No other thread knows the half.
    #[inline(always)]
    pub(super) unsafe fn place(block: BlockPtr, value: H::Future) -> Held<H> {
        // SAFETY: the slot is empty and unshared.
        unsafe { future::<H>(block).write(value) };
        Held(block, PhantomData)
    }

    /// Polls the half, and drops its future when it is over. The waker of `context` wakes this half.
    #[inline(always)]
    pub(super) fn poll(self, context: &mut Context<'_>) -> Polled<H> {
        let block = self.0;
        let future = future::<H>(block);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let panicking = DropIfPanicking(block, PhantomData::<H>);
            // SAFETY: only the holder accesses the future, which stays in its slot until it is dropped. When it is over,
            // it is not accessed again.
            unsafe {
                let polled = Pin::new_unchecked(&mut *future).poll(context);
                std::mem::forget(panicking);
                if polled.is_ready() {
                    future.drop_in_place();
                }
                polled
            }
        }));
        match polled {
            Ok(Poll::Pending) => Polled::Pending(self),
            Ok(Poll::Ready(value)) => Polled::Over(Finished(block, PhantomData), Ok(value)),
            Err(panic) => Polled::Over(Finished(block, PhantomData), Err(panic)),
        }
    }

    /// Prepares the half for running separately and returns its job, which the caller queues or puts into a mailbox.
    ///
    /// # Safety
    /// The block is parted, and no other thread has the half's job.
    pub(super) unsafe fn detach(self) -> JobHandle {
        let half = half::<H>(self.0);
        // SAFETY: no other thread uses the job before the caller publishes it. `run` expects the address of the job of a
        // half `H`.
        unsafe { (*(*half).job.get()).write(Job::new(run::<H>)) };
        self.into_job()
    }

    /// Converts the right to run a half that runs separately to the handle of its job.
    fn into_job(self) -> JobHandle {
        // SAFETY: the job is the first field of the half, and was written by `detach`. The half is held once, so its job
        // is in one place at a time, and the block exists until the half is over. A half is `Send`, because the functions
        // that begin blocks require it.
        unsafe { JobHandle::new(NonNull::new_unchecked(half::<H>(self.0).cast())) }
    }

    /// Lets the half run separately, after the join has polled the half and it was not ready.
    ///
    /// # Safety
    /// As for [`Held::detach`].
    pub(super) unsafe fn depart(self) {
        let block = self.0;
        // SAFETY: the block is parted. The job is queued only when the half is woken.
        let _unqueued = unsafe { self.detach() };
        Held::<H>(block, PhantomData).pause();
    }

    /// Pauses a half that runs separately after a poll that was not ready.
    fn pause(self) {
        match self.0.state().pause(H::SIDE) {
            Pause::Idle => {}
            Pause::Again => self.enqueue(Worker::enqueue),
            Pause::Discard => self.discard(),
        }
    }

    /// Drops the future, which ends the half.
    fn discard(self) {
        // SAFETY: only the holder accesses the future, which is not accessed again.
        unsafe { drop_quietly(future::<H>(self.0)) };
        Finished::<H>(self.0, PhantomData).retire();
    }

    /// Queues a half that runs separately: by `here` if this thread is a worker of its pool.
    fn enqueue(self, here: fn(&Worker, JobHandle)) {
        // SAFETY: the half runs separately, so the block is parted, and exists until the job is queued.
        let home = unsafe { self.0.address().as_ref() }.home();
        match Worker::current() {
            Some(worker) if worker.shares_pool_with(home) => here(worker, self.into_job()),
            _ => {
                // The block may be freed as soon as the job is queued, and releases the registry then.
                let hold = home.hold_registry();
                hold.registry().enqueue(self.into_job());
            }
        }
    }
}

/// Drops the future of a half whose poll panics.
struct DropIfPanicking<H: Home>(BlockPtr, PhantomData<H>);

impl<H: Home> Drop for DropIfPanicking<H> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: the holder, which created this guard, does not access the future again.
        unsafe { drop_quietly(future::<H>(self.0)) };
    }
}

impl<H: Home> Finished<H> {
    /// True if only the call of a fork has changed the block's state.
    #[inline(always)]
    pub(super) fn is_untouched(&self) -> bool {
        self.0.state().is_untouched()
    }

    /// Stores the result for the join, and records that the half is over. The block is parted.
    pub(super) fn store(self, value: HalfResult<H>) {
        let result = result::<H>(self.0);
        // SAFETY: the future was dropped, so the slot is empty, and only this caller accesses it. If the state says that
        // the result is unwanted, it is not accessed again.
        let after = unsafe {
            result.write(value);
            self.0.state().finish(H::SIDE).unwrap_or_else(|Unwanted| {
                drop_quietly(result);
                self.0.state().end(H::SIDE)
            })
        };
        follow::<H>(self.0, after);
    }

    /// Records that the half is over without a result. The half's wakers then have no effect. The block is parted.
    pub(super) fn retire(self) {
        let after = self.0.state().end(H::SIDE);
        follow::<H>(self.0, after);
    }
}

/// Takes the result of a half.
///
/// # Safety
/// The caller is the join. The half is over and was not cancelled. Called once.
pub(super) unsafe fn take_result<H: Home>(join: &Party<H::Block>) -> HalfResult<H> {
    // SAFETY: the half is over and was not cancelled, so its result is in place; the join reads it once.
    unsafe { result::<H>(join.block()).read() }
}

/// Cancels the interest in a half's result, which the caller will not use. Never waits.
pub(super) fn cancel<H: Home>(party: &Party<H::Block>, defer: bool) {
    let block = party.block();
    // SAFETY: the state returns each action to only one thread: to discard or queue a half that this thread now holds, or
    // to drop a result that no party takes.
    unsafe {
        match block.state().cancel(H::SIDE, defer) {
            Cancel::Discard => Held::<H>::new(block).discard(),
            Cancel::Queue => Held::<H>::new(block).enqueue(Worker::enqueue),
            Cancel::Leave => {}
            Cancel::Over => drop_quietly(result::<H>(block)),
        }
    }
}

/// Cancels a half whose result belongs to another party: that party takes or drops a finished result.
pub(super) fn abort<H: Home>(party: &Party<H::Block>) {
    let block = party.block();
    if block.state().cancel(H::SIDE, false) == Cancel::Discard {
        // SAFETY: the state tells only this thread to discard the future, so it holds the half.
        unsafe { Held::<H>::new(block) }.discard();
    }
}

/// Performs the action that a step of the state has returned to this caller alone, for the half `H` of a parted block.
fn follow<H: Home>(block: BlockPtr, after: After) {
    // SAFETY: the state returned this action only to this caller. The block exists until the action is done: a half to
    // queue is not over, and a caller that must wake the join is a party.
    unsafe {
        match after {
            After::Nothing => {}
            After::Queue => Held::<H>::new(block).enqueue(Worker::enqueue_next),
            After::Wake => {
                let party = Party::<H::Block>::new(block);
                let waiter = party.header().take_waiter();
                drop(party);
                // A waker is foreign code; its panics must not affect the half that wakes it.
                let _ = catch_unwind(AssertUnwindSafe(|| waiter.wake()));
            }
            After::Free => free::<H::Block>(block),
        }
    }
}

/// Runs a half that runs separately.
///
/// # Safety
/// `found` is the job of a half `H`, found by this caller alone.
unsafe fn run<H: Home>(found: NonNull<Job>, worker: &Worker) {
    // SAFETY: the job is the first field of its half, which is at `OFFSET`. The block exists until the half is over.
    // The waker is only lent, so it is not dropped; each clone of it is a party.
    let (held, waker) = unsafe {
        let block = BlockPtr::new(found.byte_sub(H::OFFSET).cast());
        let waker = ManuallyDrop::new(Waker::from_raw(raw_waker::<H>(block)));
        (Held::<H>::new(block), waker)
    };
    if !held.0.state().begin(H::SIDE) {
        return held.discard();
    }
    match held.poll(&mut Context::from_waker(&waker)) {
        Polled::Pending(held) => held.pause(),
        Polled::Over(finished, value) => worker.at_the_end(|| finished.store(value)),
    }
}

/// Drops an unneeded value and ignores a panic of its destructor.
///
/// # Safety
/// The caller owns the value and does not use it afterwards.
unsafe fn drop_quietly<T>(value: *mut T) {
    // SAFETY: the caller owns the value and does not use it afterwards.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { value.drop_in_place() }));
}

/// Returns the block of a waker.
///
/// # Safety
/// `data` is the data of a waker of this module, which is a party, or is lent while its lender keeps the block alive.
unsafe fn block_of(data: *const ()) -> BlockPtr {
    // SAFETY: a waker's data is the address of a block, which exists.
    unsafe { BlockPtr::new(NonNull::new_unchecked(data.cast_mut().cast())) }
}

fn raw_waker<H: Home>(block: BlockPtr) -> RawWaker {
    let functions = const {
        &RawWakerVTable::new(
            // SAFETY: the waker's party, or the party of its lender, keeps the block alive.
            |data| clone::<H>(unsafe { block_of(data) }),
            |data| {
                // SAFETY: only clones are consumed; the clone is a party until `wake_and_leave`.
                let block = unsafe { block_of(data) };
                follow::<H>(block, block.state().wake_and_leave(H::SIDE));
            },
            // SAFETY: the waker's party, or the party of its lender, keeps the block alive.
            |data| wake::<H>(unsafe { block_of(data) }),
            // SAFETY: only clones are dropped, and each is a party of a parted block.
            |data| drop(unsafe { Party::<H::Block>::new(block_of(data)) }),
        )
    };
    RawWaker::new(block.address().as_ptr().cast_const().cast(), functions)
}

/// The waker that the call of a fork lends to its two halves, one after the other. The block says which half is meant.
///
/// # Safety
/// The waker is used only while the call polls the halves, and is not dropped.
#[inline(always)]
pub(super) unsafe fn lent_waker<A: Home, B: Home>(block: BlockPtr) -> ManuallyDrop<Waker> {
    fn not_lent_for_good(_: *const ()) {
        unreachable!("a waker that was only lent is not dropped");
    }
    let functions = const {
        &RawWakerVTable::new(
            |data| {
                // SAFETY: the waker is lent for the poll that `turn` names, so the block exists.
                let block = unsafe { block_of(data) };
                match block.turn().get() {
                    Side::First => clone::<A>(block),
                    Side::Second => clone::<B>(block),
                }
            },
            not_lent_for_good,
            |data| {
                // SAFETY: the waker is lent for the poll that `turn` names, so the block exists.
                let block = unsafe { block_of(data) };
                match block.turn().get() {
                    Side::First => wake::<A>(block),
                    Side::Second => wake::<B>(block),
                }
            },
            not_lent_for_good,
        )
    };
    let data = block.address().as_ptr().cast_const().cast();
    // SAFETY: the functions expect the address of a block, which `data` is. The functions that consume the waker are
    // never called.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, functions)) })
}

/// Clones a waker: the clone is a party of the block.
fn clone<H: Home>(block: BlockPtr) -> RawWaker {
    block.state().join_in();
    raw_waker::<H>(block)
}

/// Wakes a half without consuming the waker. The state tells only one thread at a time to queue the half.
fn wake<H: Home>(block: BlockPtr) {
    if block.state().wake(H::SIDE) {
        follow::<H>(block, After::Queue);
    }
}
