//! Access to a shard and its parts by actors, their contexts and the engine, which take turns.

use std::ptr::NonNull;

/// A pointer to a shard, or to a part of one, that several owners share, comparable to bevy's `UnsafeWorldCell`.
///
/// # Invariant
/// At any time there is at most one reference for changes to the value, and no other reference beside it; there is none
/// while foreign code runs: handlers, bodies, destructors, and methods of [`Message`](crate::Message). This follows from
/// three facts:
///
/// - The code that makes a cell promises that the value outlives all copies of the cell, and that only one thread at a
///   time uses it.
/// - [`TurnCell::with`] lends the value for the duration of a closure, and closures passed to it run no foreign code.
///   Values that a shard must drop are returned from the closure and dropped afterwards.
/// - Closures do not use the cell again, except that closures passed to [`TurnCell::read`] may read. Builds with debug
///   assertions check this.
///
/// Code that accesses the value by [`TurnCell::as_ptr`] must maintain the invariant itself, and documents how it does
/// so.
pub(super) struct TurnCell<S>(NonNull<S>);

impl<S> Clone for TurnCell<S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for TurnCell<S> {}

impl<S> TurnCell<S> {
    /// Creates the cell of a value.
    ///
    /// # Safety
    /// While the cell or a copy of it is used, the value must exist, only this thread may use it, and the only
    /// references to it must be those of [`TurnCell::with`] and [`TurnCell::read`].
    #[inline(always)]
    pub(super) unsafe fn new(value: *mut S) -> TurnCell<S> {
        // SAFETY: the value exists, so its address is not null.
        TurnCell(unsafe { NonNull::new_unchecked(value) })
    }

    /// Lends the value to a closure that runs no foreign code.
    #[inline(always)]
    pub(super) fn with<T>(mut self, act: impl FnOnce(&mut S) -> T) -> T {
        #[cfg(debug_assertions)]
        let _lent = checked::LentGuard::new(self.0.as_ptr(), true);
        // SAFETY: the caller of `new` has guaranteed that the value exists and that only this thread uses it. There is
        // no other reference: references are created only here and in `read`, and the closure neither uses the cell nor
        // runs code that could.
        act(unsafe { self.0.as_mut() })
    }

    /// Lends the value for reading to a closure that runs no foreign code which could use the cell.
    #[inline(always)]
    pub(super) fn read<T>(self, act: impl FnOnce(&S) -> T) -> T {
        #[cfg(debug_assertions)]
        let _lent = checked::LentGuard::new(self.0.as_ptr(), false);
        // SAFETY: the caller of `new` has guaranteed that the value exists and that only this thread uses it. There is
        // no reference for changes: such references are created only in `with`, whose closures do not use the cell, and
        // the closure does not change the value.
        act(unsafe { self.0.as_ref() })
    }

    /// Returns the pointer to the value.
    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut S {
        self.0.as_ptr()
    }
}

/// The check of the third fact. It is called for each of an engine's thousands of closures. Its functions are not generic,
/// return one number and do not unwind, so that each call is short: the check was once a sixth of a development build.
#[cfg(debug_assertions)]
mod checked {
    use std::cell::Cell;

    thread_local! {
        /// The address of the value that a `TurnCell` lent last on this thread and lends still, plus one if it is lent for
        /// changes.
        static LENT: Cell<usize> = const { Cell::new(0) };
    }

    /// A guard that prevents the value from being lent again, except for reading beside reading.
    pub(super) struct LentGuard(usize);

    impl LentGuard {
        #[inline(always)]
        pub(super) fn new<S>(value: *const S, changes: bool) -> LentGuard {
            const {
                assert!(
                    align_of::<S>() > 1,
                    "the last bit of an address says how it is lent"
                )
            };
            LentGuard(lend(value.cast(), changes))
        }
    }

    impl Drop for LentGuard {
        #[inline(always)]
        fn drop(&mut self) {
            end(self.0);
        }
    }

    extern "C" fn lend(value: *const (), changes: bool) -> usize {
        let value = value.addr() + usize::from(changes);
        let before = LENT.replace(value);
        assert!(
            before & !1 != value & !1 || before & 1 == 0 && value & 1 == 0,
            "a value is lent for changes once at a time"
        );
        before
    }

    extern "C" fn end(before: usize) {
        LENT.set(before);
    }
}
