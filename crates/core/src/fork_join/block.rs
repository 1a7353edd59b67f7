//! Blocks: the shared memory of asynchronous halves, and its release.
//!
//! A block starts with the shared header and holds one half (for a root) or two (for a fork). Its [`State`] decides
//! which party may access which part, and which step is the last one; that step frees the block.
#![allow(
    unsafe_code,
    reason = "a block is reached by its address until its last party leaves"
)]

use super::half;
use super::offer::Offer;
use super::registry::Registry;
use super::state::{After, Side, State, Wait};
use super::worker::Worker;
use crate::sync::UnsafeCell;
use std::cell::Cell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    /// not end within the call that began it ([`Header::part`]).
    home: NonNull<Worker>,
}

/// A pointer with two uses. Until the call of a fork ends, it links the offer of the second half; afterwards, it stores
/// the join's waker.
union Link {
    /// The second half of a fork, until its call ends.
    offer: ManuallyDrop<Offer>,
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

/// The position of a half in a kind of block.
///
/// # Safety
/// A block of this kind begins with a [`Header`] and has a [`Half<Self::Future>`](super::half::Half) at
/// `OFFSET`.
pub(super) unsafe trait Home {
    type Future: Future;

    /// The side of the half in the block's [`State`].
    const SIDE: Side;

    /// The offset of the half in bytes.
    const OFFSET: usize;

    /// Frees the memory of a block that no party uses, whose halves are over and whose results were taken.
    unsafe fn free(block: NonNull<Header>);
}

impl Header {
    /// Returns the second half of a fork, while its call is running.
    #[inline(always)]
    pub(super) fn offer(block: NonNull<Header>) -> *mut Offer {
        // SAFETY: computes an address inside the block, which begins with the header.
        unsafe { (&raw mut (*block.as_ptr()).link.offer).cast() }
    }

    /// Returns the block of the fork to which an offer belongs.
    #[inline(always)]
    pub(super) fn of_offer(offer: NonNull<Offer>) -> NonNull<Header> {
        offer.cast()
    }

    /// Initialises a fork's block except for its offer.
    ///
    /// # Safety
    /// `block` is memory for a block.
    #[inline(always)]
    pub(super) unsafe fn begin(block: NonNull<Header>) {
        let shared = block.as_ptr();
        // SAFETY: memory for a block begins with memory for a header.
        unsafe {
            (&raw mut (*shared).state).write(State::new(State::of_fork()));
            (&raw mut (*shared).turn).write(Cell::new(Side::First));
        }
    }

    /// Records that the call of a fork now polls the second half.
    ///
    /// # Safety
    /// The caller is the fork's call, and has polled the first half to its end.
    #[inline(always)]
    pub(super) unsafe fn turn_to_second(block: NonNull<Header>) {
        // SAFETY: `begin` has initialised `turn`; wakers that were lent for the first half, through which others read
        // `turn`, are gone.
        unsafe { (&raw mut (*block.as_ptr()).turn).write(Cell::new(Side::Second)) };
    }

    /// Returns the half that the call of a fork polls.
    ///
    /// # Safety
    /// The caller was lent a waker for this poll only.
    pub(super) unsafe fn turn(block: NonNull<Header>) -> Side {
        // SAFETY: `turn` was set before the waker was lent, and does not change while the waker is lent.
        unsafe { (&raw const (*block.as_ptr()).turn).read().get() }
    }

    /// True if only the call of the fork has changed the block's state.
    ///
    /// # Safety
    /// The caller is the fork's call.
    #[inline(always)]
    pub(super) unsafe fn is_untouched(block: NonNull<Header>) -> bool {
        // SAFETY: `begin` has initialised the state.
        unsafe { (*block.as_ptr()).state.is_untouched() }
    }

    /// Prepares a block for halves that run separately and may outlive the call. The block then keeps the registry
    /// alive.
    ///
    /// # Safety
    /// Called once, by the join, before any half runs separately. The caller is on the thread of `home`.
    pub(super) unsafe fn part(block: NonNull<Header>, home: &Worker) {
        let shared = block.as_ptr();
        // SAFETY: no other thread reads these fields before a half runs separately.
        unsafe {
            (&raw mut (*shared).home).write(NonNull::from(home));
            home.spend_reference();
        }
    }

    /// Returns an initialised block with its own memory, which keeps the registry alive.
    pub(super) fn parted(home: &Worker, state: State) -> Header {
        // SAFETY: the registry lives as long as `home`, one of its workers.
        unsafe { Registry::hold(home.registry_pointer()) };
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

    /// Returns the state of a block.
    pub(super) fn state(block: NonNull<Header>) -> NonNull<State> {
        // SAFETY: computes an address inside the block, which begins with the header.
        unsafe { NonNull::new_unchecked(&raw mut (*block.as_ptr()).state) }
    }

    pub(super) fn home(&self) -> NonNull<Worker> {
        self.home
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

    /// Performs the action that a step of the state has returned, for the half `H`.
    ///
    /// # Safety
    /// `after` is the result of a step that the caller was entitled to. Afterwards the caller does not access
    /// the block, unless it is a party in some other way.
    pub(super) unsafe fn follow<H: Home>(block: NonNull<Header>, after: After) {
        // SAFETY: the state returned this action only to this caller. The block exists until the action is done: a half
        // to queue is not over, and a caller that must wake the join is a party until `leave`.
        unsafe {
            match after {
                After::Nothing => {}
                After::Queue => half::enqueue_next::<H>(block),
                After::Wake => {
                    let waiter = block.as_ref().take_waiter();
                    Header::leave::<H>(block);
                    // A waker is foreign code; its panics must not affect the half that wakes it.
                    let _ = catch_unwind(AssertUnwindSafe(|| waiter.wake()));
                }
                After::Free => Header::free::<H>(block),
            }
        }
    }

    /// Removes a party; the last party frees the block.
    ///
    /// # Safety
    /// The caller acts for one party and does not access the block afterwards. The block was prepared by
    /// `part` before its last party leaves.
    pub(super) unsafe fn leave<H: Home>(block: NonNull<Header>) {
        // SAFETY: the block exists as long as there is a party; the last party frees it.
        unsafe {
            if block.as_ref().state.leave() == After::Free {
                Header::free::<H>(block);
            }
        }
    }

    unsafe fn free<H: Home>(block: NonNull<Header>) {
        // SAFETY: the last party has left, so no other thread accesses the block; its home and registry outlive it,
        // because the block holds the registry.
        unsafe {
            let registry = block.as_ref().home.as_ref().registry_pointer();
            H::free(block);
            Registry::let_go(registry);
        }
    }
}
