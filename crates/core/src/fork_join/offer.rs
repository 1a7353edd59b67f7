//! Offers: the second halves that a worker has not begun.
//!
//! Every fork links its second half into the list of its worker, and unlinks it when the worker begins the half. Only
//! that worker uses either end of the list: two plain stores to link, one to unlink, and no allocation, because the
//! link is stored in the fork itself. Forks end in reverse order, so the offer to unlink is always the newest one. The
//! oldest offer, which probably contains the most work, is handed to another worker that asks for work.
#![allow(
    unsafe_code,
    reason = "offers are a list of nodes on the stack and in blocks"
)]

use super::job::{Job, JobHandle};
use super::worker::Worker;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Converts an offer that has just left the list to a job for another worker.
pub(super) type HandOut = unsafe fn(*const Offer, &Worker) -> JobHandle;

/// A second half that has not begun. The offer is the first field of its fork, so both have the same address.
#[repr(C)]
pub(super) struct Offer {
    /// The next older offer, or the list's anchor; null once this offer was handed out.
    older: Cell<*const Offer>,
    /// The next newer offer, unless this is the newest; once this offer was handed out, its job.
    newer: Cell<*const ()>,
    hand_out: HandOut,
}

impl Offer {
    /// Returns the job that a handed-out offer became; `None` while the offer is in the list.
    ///
    /// # Safety
    /// `offer` is linked or was handed out, and the caller is on the thread that linked it.
    #[inline(always)]
    pub(super) unsafe fn job(offer: *const Offer) -> Option<NonNull<Job>> {
        // SAFETY: `Offers::link` has initialised `older`; only this thread writes to it. `Offers::take_oldest` nulls
        // `older` only together with setting `newer`.
        unsafe {
            if !(*offer).older.get().is_null() {
                return None;
            }
            NonNull::new((*offer).newer.get().cast_mut().cast())
        }
    }
}

/// The offers of one worker, in the order of their forks.
pub(super) struct Offers {
    newest: Cell<*const Offer>,
    /// A sentinel before the oldest offer, so that linking needs no special case for the empty list.
    anchor: Offer,
}

impl Offers {
    /// Creates a list. Before the list is used, it must be moved to its final place, and [`Offers::settle`] must be
    /// called there.
    pub(super) fn new() -> Offers {
        let anchor = Offer {
            older: Cell::new(ptr::dangling()),
            newer: Cell::new(ptr::null()),
            hand_out: |_, _| unreachable!("the anchor of a list of offers is never handed out"),
        };
        Offers {
            newest: Cell::new(ptr::null()),
            anchor,
        }
    }

    /// Makes the list usable. The list must not move afterwards.
    pub(super) fn settle(&self) {
        self.newest.set(&self.anchor);
    }

    /// Links an offer as the newest.
    ///
    /// # Safety
    /// `offer` points to memory for an offer (that need not be initialised), which stays in place until the offer is
    /// unlinked or its job is over. The caller is the list's worker.
    #[inline(always)]
    pub(super) unsafe fn link(&self, offer: *mut Offer, hand_out: HandOut) {
        let newest = self.newest.get();
        // SAFETY: `offer` is memory for an offer. The fields are written separately, because `newer` is unused until a
        // newer offer is linked, and with `write`, because `Cell::set` would read the uninitialised old value. `newest`
        // is a linked offer or the anchor, so it is initialised except for `newer`.
        unsafe {
            (&raw mut (*offer).older).write(Cell::new(newest));
            (&raw mut (*offer).hand_out).write(hand_out);
            (*newest).newer.as_ptr().write(offer.cast_const().cast());
        }
        self.newest.set(offer);
    }

    /// Unlinks the newest offer; false if it was handed out before.
    ///
    /// # Safety
    /// `offer` is the newest offer that was linked and not yet unlinked. The caller is the list's worker.
    #[inline(always)]
    pub(super) unsafe fn unlink(&self, offer: *const Offer) -> bool {
        // SAFETY: `link` has initialised `older`, and only this worker writes to it.
        let older = unsafe { (*offer).older.get() };
        if older.is_null() {
            return false;
        }
        self.newest.set(older);
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        ptr::eq(self.newest.get(), &self.anchor)
    }

    /// Takes the oldest offer out of the list and converts it to a job.
    pub(super) fn take_oldest(&self, worker: &Worker) -> Option<JobHandle> {
        if self.is_empty() {
            return None;
        }
        let newest = self.newest.get();
        let oldest = self.anchor.newer.get().cast::<Offer>();
        // SAFETY: the list is not empty, so `anchor.newer` is the oldest offer, which its fork keeps in place. If it is
        // not the newest offer, its `newer` points to the next one. The job is created last, after the offer has left
        // the list.
        unsafe {
            if ptr::eq(newest, oldest) {
                self.newest.set(&self.anchor);
            } else {
                let second = (*oldest).newer.get();
                self.anchor.newer.set(second);
                (*second.cast::<Offer>()).older.set(&self.anchor);
            }
            (*oldest).older.set(ptr::null());
            let job = ((*oldest).hand_out)(oldest, worker);
            let job = job.into_ptr();
            (*oldest).newer.as_ptr().write(job.cast_const().cast());
            JobHandle::from_ptr(job)
        }
    }
}
