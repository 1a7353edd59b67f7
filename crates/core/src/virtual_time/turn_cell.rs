//! Access to a shard by actors, their contexts and the engine, which take turns.

/// A pointer to a shard that several owners share, comparable to bevy's `UnsafeWorldCell`.
///
/// # Invariant
/// At any time there is at most one reference to the shard, and none while foreign code runs: handlers, bodies,
/// destructors, and methods of [`Message`](crate::Message). This follows from three facts:
///
/// - The code that makes a cell promises that the shard outlives all copies of the cell, and that only one thread at a
///   time uses it.
/// - [`TurnCell::with`] lends the shard for the duration of a closure, and closures passed to it run no foreign code.
///   Values that a shard must drop are returned from the closure and dropped afterwards.
/// - Closures do not use the cell again. Builds with debug assertions check this.
///
/// Code that accesses the shard by [`TurnCell::as_ptr`] must maintain the invariant itself, and documents how it does
/// so.
pub(super) struct TurnCell<S>(*mut S);

impl<S> Clone for TurnCell<S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for TurnCell<S> {}

impl<S> TurnCell<S> {
    /// Creates the cell of a shard.
    ///
    /// # Safety
    /// While the cell or a copy of it is used, the shard must exist, only this thread may use it, and the only
    /// references to it must be those of [`TurnCell::with`].
    #[inline(always)]
    pub(super) unsafe fn new(shard: *mut S) -> TurnCell<S> {
        TurnCell(shard)
    }

    /// Lends the shard to a closure that runs no foreign code.
    #[inline(always)]
    pub(super) fn with<T>(self, act: impl FnOnce(&mut S) -> T) -> T {
        #[cfg(debug_assertions)]
        let _lent = checked::LentGuard::new(self.0.cast());
        // SAFETY: the caller of `new` has guaranteed that the shard exists and that only this thread uses it. There is
        // no other reference: references are created only here, and the closure neither uses the cell nor runs code
        // that could.
        act(unsafe { &mut *self.0 })
    }

    /// Returns the pointer to the shard.
    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut S {
        self.0
    }
}

#[cfg(debug_assertions)]
mod checked {
    use std::cell::Cell;

    thread_local! {
        /// The shard that `TurnCell::with` currently lends on this thread.
        static LENT: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
    }

    /// A guard that prevents the shard from being lent again.
    pub(super) struct LentGuard(*const ());

    impl LentGuard {
        pub(super) fn new(shard: *const ()) -> LentGuard {
            let before = LENT.replace(shard);
            debug_assert!(before != shard, "a shard is lent once at a time");
            LentGuard(before)
        }
    }

    impl Drop for LentGuard {
        fn drop(&mut self) {
            LENT.set(self.0);
        }
    }
}
