//! Blocks: the shared memory of asynchronous halves, and its release.
//!
//! A block starts with the shared header and holds one half (for a root) or two (for a fork). Its [`State`] decides
//! which party may access which part, and which step is the last one; that step frees the block.
#![allow(
    unsafe_code,
    reason = "a block is reached by its address until its last party leaves"
)]

use super::offer::Offer;
use super::state::{After, Side, State, Wait};
use super::worker::Worker;
use crate::sync::UnsafeCell;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::Waker;

/// The header of a block, which all parties share.
#[repr(C)]
pub(super) struct Header {
    link: Link,
    state: State,
    /// The half that the call of the fork is currently polling.
    turn: Cell<Side>,
    /// The worker that owns the memory, or some worker of the pool if no worker does. Initialised only when a half does
    /// not end within the call that began it ([`BlockPtr::part`]).
    home: NonNull<Worker>,
}

/// A pointer with two uses. Until the call of a fork ends, it links the offer of the second half; afterwards, it stores
/// the join's waker.
union Link {
    /// The second half of a fork, until its call ends.
    _offer: ManuallyDrop<Offer>,
    /// The waker for the end of both halves; valid while the state says so.
    waiter: ManuallyDrop<UnsafeCell<MaybeUninit<Waker>>>,
}

impl Link {
    fn new() -> Link {
        Link {
            waiter: ManuallyDrop::new(UnsafeCell::new(MaybeUninit::uninit())),
        }
    }
}

/// A kind of block, which begins with a [`Header`].
pub(super) trait Block {
    /// Frees the memory of a block of this kind.
    ///
    /// # Safety
    /// The block is parted. No party uses it, its halves are over and their results were taken or dropped.
    unsafe fn free(block: NonNull<Header>);
}

/// The address of a block.
///
/// # Invariant
/// The block exists as long as a copy of the address is used, and its header is initialised by [`BlockPtr::begin`] or
/// [`Header::parted`]. The header is *parted* if its `home` is initialised as well; the block then keeps the registry
/// alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockPtr(NonNull<Header>);

impl BlockPtr {
    /// # Safety
    /// The invariant of the type holds.
    #[inline(always)]
    pub(super) unsafe fn new(block: NonNull<Header>) -> BlockPtr {
        BlockPtr(block)
    }

    /// Initialises a fork's block except for its offer.
    ///
    /// # Safety
    /// `block` is memory for a block, which exists as long as a copy of the returned value is used.
    #[inline(always)]
    pub(super) unsafe fn begin(block: NonNull<Header>) -> BlockPtr {
        let shared = block.as_ptr();
        // SAFETY: memory for a block begins with memory for a header.
        unsafe {
            (&raw mut (*shared).state).write(State::new(State::of_fork()));
            (&raw mut (*shared).turn).write(Cell::new(Side::First));
        }
        BlockPtr(block)
    }

    #[inline(always)]
    pub(super) fn address(self) -> NonNull<Header> {
        self.0
    }

    /// Returns the second half of a fork, while its call is running. It is at the beginning of the block.
    #[inline(always)]
    pub(super) fn offer(self) -> *mut Offer {
        self.0.as_ptr().cast()
    }

    /// Returns the state of the block.
    #[inline(always)]
    pub(super) fn state(&self) -> &State {
        // SAFETY: by the invariant, the block exists, and its state is initialised. This creates no reference to the
        // complete header, because parts of it may be uninitialised.
        unsafe { &(*self.0.as_ptr()).state }
    }

    /// Returns the half that the call of a fork polls. The call changes it only while no waker is lent.
    #[inline(always)]
    pub(super) fn turn(&self) -> &Cell<Side> {
        // SAFETY: by the invariant, the block exists, and its `turn` is initialised.
        unsafe { &(*self.0.as_ptr()).turn }
    }

    /// Prepares a block for halves that run separately and may outlive the call. The block then keeps the registry
    /// alive.
    ///
    /// # Safety
    /// Called once, by the call of a fork, before any half runs separately. The caller is on the thread of `home`.
    pub(super) unsafe fn part(self, home: &Worker) {
        // SAFETY: no other thread reads this field before a half runs separately.
        unsafe { (&raw mut (*self.0.as_ptr()).home).write(NonNull::from(home)) };
        home.spend_reference().leak();
    }
}

/// A party of a parted block. The block exists as long as it has a party; the last party frees it.
pub(super) struct Party<B: Block>(BlockPtr, PhantomData<B>);

impl<B: Block> Party<B> {
    /// # Safety
    /// The block is a parted block of kind `B`, and its state counts this party.
    #[inline(always)]
    pub(super) unsafe fn new(block: BlockPtr) -> Party<B> {
        Party(block, PhantomData)
    }

    /// Returns the address of the block.
    #[inline(always)]
    pub(super) fn block(&self) -> BlockPtr {
        self.0
    }

    /// Returns the header that the parties share.
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the block exists, because this is a party, and its header is initialised, because it is parted.
        unsafe { self.0.0.as_ref() }
    }

    /// Gives the party to somebody else, who makes it again with [`Party::new`]. Returns the block.
    pub(super) fn into_block(self) -> BlockPtr {
        ManuallyDrop::new(self).0
    }
}

impl<B: Block> Drop for Party<B> {
    fn drop(&mut self) {
        if self.0.state().leave() == After::Free {
            // SAFETY: this was the last party, and the halves are over.
            unsafe { free::<B>(self.0) };
        }
    }
}

/// Frees a block, and releases the registry.
///
/// # Safety
/// The block is a parted block of kind `B`. The last party has left, and both halves are over.
pub(super) unsafe fn free<B: Block>(block: BlockPtr) {
    // SAFETY: no other thread accesses the block. Its home and registry outlive it, because the block holds the
    // registry, and gives its reference up here.
    unsafe {
        let hold = block.address().as_ref().home().leaked_reference();
        B::free(block.address());
        drop(hold);
    }
}

impl Header {
    /// Returns an initialised block with its own memory, which keeps the registry alive.
    pub(super) fn parted(home: &Worker, state: State) -> Header {
        home.hold_registry().leak();
        Header {
            link: Link::new(),
            state,
            turn: Cell::new(Side::First),
            home: NonNull::from(home),
        }
    }

    /// Creates a block without a pool, for loom models.
    #[cfg(all(test, loom))]
    pub(super) fn model(state: State) -> Header {
        Header {
            link: Link::new(),
            state,
            turn: Cell::new(Side::First),
            home: NonNull::dangling(),
        }
    }

    /// Returns the state of the block.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Returns a worker of the block's pool: the one that owns the memory, if any.
    pub(super) fn home(&self) -> &Worker {
        // SAFETY: the block holds the registry, which owns the worker.
        unsafe { self.home.as_ref() }
    }

    /// True if all halves are over and their results are visible.
    pub(super) fn is_finished(&self) -> bool {
        self.state.wait_so_far() == Wait::Over
    }

    /// True if all halves are over; otherwise `waker` is woken when they are. Only the join calls this.
    pub(super) fn poll_finished(&self, waker: &Waker) -> bool {
        match self.state.wait_so_far() {
            Wait::Over => true,
            Wait::NotBegun => !self.leave_waker(waker),
            Wait::WakerLeft => self.exchange_waker(waker),
        }
    }

    /// Stores a waker if none is stored. Returns false if both halves are over.
    fn leave_waker(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        // SAFETY: the block stores no waker, so only the join accesses the cell.
        self.waiter()
            .with_mut(|waiter| unsafe { (*waiter).write(waker) });
        let left = self.state.wait();
        if !left {
            drop(self.take_waiter());
        }
        left
    }

    /// Replaces the stored waker by `waker` if they differ. Returns true if both halves are over.
    #[cold]
    fn exchange_waker(&self, waker: &Waker) -> bool {
        // SAFETY: the join has stored the waker. The last half to end may be copying it out and waking it, but this
        // only compares addresses.
        let same = self
            .waiter()
            .with(|waiter| unsafe { (*waiter).assume_init_ref() }.will_wake(waker));
        if same {
            return false;
        }
        if !self.state.wait_no_more() {
            return true;
        }
        let before = self.take_waiter();
        let left = self.leave_waker(waker);
        drop(before);
        !left
    }

    /// Takes back the join's waker, if it is stored.
    pub(super) fn wait_no_more(&self) {
        if self.state.wait_so_far() == Wait::WakerLeft && self.state.wait_no_more() {
            drop(self.take_waiter());
        }
    }

    fn waiter(&self) -> &UnsafeCell<MaybeUninit<Waker>> {
        // SAFETY: the offer ended with the call, so the union holds the cell, which needs no initialisation.
        unsafe { &self.link.waiter }
    }

    /// Copies the stored waker out of the block for the caller, to which the state has given it.
    pub(super) fn take_waiter(&self) -> Waker {
        // SAFETY: the state has given the waker to this caller alone, and the join stored a waker before.
        self.waiter()
            .with(|waiter| unsafe { (*waiter).assume_init_read() })
    }
}
