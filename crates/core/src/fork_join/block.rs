//! Blocks: what the parties to an asynchronous half share, and who still needs it.
//!
//! A block holds one half (of a root) or two (of a fork), and in front of them what the parties
//! share. Parties are the join, every half that runs on its own, and every waker that was cloned.
//! The last one to go frees the block; until then all of them may touch what is shared. A half
//! itself belongs to one of them at a time, as its [`State`](super::state::State) says.

use super::registry::Registry;
use super::sync::{AtomicU32, Mutex, fence};
use super::worker::Worker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::Waker;

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

/// Which half of which kind of block.
///
/// # Safety
/// A block of this kind begins with a [`Shared`] and has a [`Half<Self::Future>`](super::half::Half) at `OFFSET`.
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
            Registry::hold(home.registry_pointer());
        }
    }

    /// A block of which all is initialised, with memory of its own.
    pub(super) fn parted(home: &Worker) -> Shared {
        // SAFETY: its worker is alive, so the registry is.
        unsafe { Registry::hold(home.registry_pointer()) };
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
            let waiter = self
                .waiter
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(waiter) = waiter {
                // A waker is foreign code; that it panics is nothing to the one who wakes.
                let _ = catch_unwind(AssertUnwindSafe(|| waiter.wake()));
            }
        }
    }

    /// A further party.
    pub(super) fn join_in(&self) {
        let before = self.parties.fetch_add(1, Ordering::Relaxed);
        assert!(
            before < u32::MAX / 2,
            "fork-join: too many wakers of one half"
        );
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
                let registry = block.as_ref().home.as_ref().registry_pointer();
                H::free(block);
                Registry::let_go(registry);
            }
        }
    }

    /// A half begins to run on its own: one more party, and one more to wait for.
    pub(super) fn let_out(&self) {
        self.unfinished.fetch_add(1, Ordering::Relaxed);
        self.join_in();
    }

    /// Undoes [`Shared::let_out`]; the join, which calls this, stays a party.
    pub(super) fn take_in(&self) {
        self.unfinished.fetch_sub(1, Ordering::Relaxed);
        self.parties.fetch_sub(1, Ordering::Relaxed);
    }
}
