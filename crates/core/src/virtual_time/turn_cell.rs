//! Access to a shard and its parts by actors, their contexts and the engine, which take turns.

use std::panic::{AssertUnwindSafe, catch_unwind};

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
///
/// Its functions use operators on pointers instead of methods, because each method is a call in a development build.
pub(super) struct TurnCell<S>(*mut S);

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
        const { assert!(align_of::<S>() > 1) };
        #[cfg(debug_assertions)]
        checked::forget(value as *const ());
        TurnCell(value)
    }

    /// Lends the value to a closure that runs no foreign code.
    #[inline(always)]
    pub(super) fn with<T>(self, act: impl FnOnce(&mut S) -> T) -> T {
        #[cfg(debug_assertions)]
        let before = checked::lend(self.0 as *const (), true);
        // SAFETY: the caller of `new` has guaranteed that the value exists and that only this thread uses it. There is
        // no other reference: references are created only here and in `read`, and the closure neither uses the cell nor
        // runs code that could.
        let result = act(unsafe { &mut *self.0 });
        #[cfg(debug_assertions)]
        checked::end(before);
        result
    }

    /// Lends the value for reading to a closure that runs no foreign code which could use the cell.
    #[inline(always)]
    pub(super) fn read<T>(self, act: impl FnOnce(&S) -> T) -> T {
        #[cfg(debug_assertions)]
        let before = checked::lend(self.0 as *const (), false);
        // SAFETY: the caller of `new` has guaranteed that the value exists and that only this thread uses it. There is
        // no reference for changes: such references are created only in `with`, whose closures do not use the cell, and
        // the closure does not change the value.
        let result = act(unsafe { &*self.0 });
        #[cfg(debug_assertions)]
        checked::end(before);
        result
    }

    /// Returns the pointer to the value.
    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut S {
        self.0
    }
}

/// Runs a closure and returns its panic. A panic ends the loans that the closure has begun.
#[inline(always)]
pub(super) fn caught<T>(act: impl FnOnce() -> T) -> std::thread::Result<T> {
    #[cfg(debug_assertions)]
    let before = checked::lent();
    let result = catch_unwind(AssertUnwindSafe(act));
    #[cfg(debug_assertions)]
    if result.is_err() {
        checked::end(before);
    }
    result
}

/// The check of the third fact. The engine has thousands of closures that call it, so its functions are not generic, return
/// one number and do not unwind, and no guard is dropped. With a guard, the check was a sixth of a development build.
#[cfg(debug_assertions)]
mod checked {
    use std::cell::Cell;

    thread_local! {
        /// The address of the value that a `TurnCell` lent last on this thread and lends still, plus one if it is lent for
        /// changes. All values are aligned to more than a byte.
        static LENT: Cell<usize> = const { Cell::new(0) };
    }

    /// Notes that the value is lent, and returns what was lent before. A value that is lent for changes must not be lent
    /// again, unless a panic has interrupted the closure.
    pub(super) extern "C" fn lend(value: *const (), changes: bool) -> usize {
        let value = value.addr() + usize::from(changes);
        let before = LENT.replace(value);
        assert!(
            before & !1 != value & !1
                || before & 1 == 0 && value & 1 == 0
                || std::thread::panicking(),
            "a value is lent for changes once at a time"
        );
        before
    }

    pub(super) extern "C" fn end(before: usize) {
        LENT.set(before);
    }

    pub(super) extern "C" fn lent() -> usize {
        LENT.get()
    }

    /// Forgets that the value is lent, as a new cell's value is not: a panic may have interrupted the run of another value at
    /// this address.
    pub(super) extern "C" fn forget(value: *const ()) {
        if LENT.get() & !1 == value.addr() {
            LENT.set(0);
        }
    }
}
