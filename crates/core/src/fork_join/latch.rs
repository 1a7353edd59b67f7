//! Latches signal to a worker that awaited work is over.
#![allow(unsafe_code, reason = "a latch may be freed as soon as it is set")]

use super::worker::Worker;
use crate::sync::AtomicBool;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// A latch that is set once, when the awaited work is done.
pub(super) struct Latch {
    set: AtomicBool,
    waits: NonNull<Worker>,
}

impl Latch {
    /// Creates a latch for which the worker `waits` will wait.
    pub(super) fn new(waits: &Worker) -> Latch {
        Latch {
            set: AtomicBool::new(false),
            waits: NonNull::from(waits),
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Sets the latch and wakes the worker that waits for it. The caller's earlier writes are visible to a thread that
    /// finds the latch set.
    ///
    /// # Safety
    /// `latch` is valid until it is set, and the caller is a worker of the pool whose worker waits.
    pub(super) unsafe fn set(latch: *const Latch) {
        // SAFETY: the latch is valid until it is set. Then the waiter may free it at any time, so the waiting worker is
        // read before, and the latch is not accessed afterwards. The worker exists, because it belongs to the pool
        // whose thread runs this.
        unsafe {
            let waits = (*latch).waits;
            (*latch).set.store(true, Ordering::Release);
            waits.as_ref().wake();
        }
    }
}
