//! A cell that threads write in turn.

use crate::sync::UnsafeCell;

/// A value that belongs to one writer between two barriers, on separate cache lines.
#[repr(align(128))]
pub(super) struct Cell<T>(pub(super) UnsafeCell<T>);

impl<T> Cell<T> {
    pub(super) fn new(value: T) -> Cell<T> {
        Cell(UnsafeCell::new(value))
    }

    /// Swaps the contents with `other`.
    ///
    /// # Safety
    /// No other thread may read or write the cell during the call.
    #[allow(
        clippy::swap_with_temporary,
        reason = "the pointer is the cell's, not a temporary"
    )]
    pub(super) unsafe fn swap(&self, other: &mut T) {
        // SAFETY: the caller guarantees that no other thread uses the cell.
        self.0
            .with_mut(|cell| std::mem::swap(unsafe { &mut *cell }, other));
    }
}
