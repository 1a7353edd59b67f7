//! The memory of messages.

use crate::sync::UnsafeCell;
use std::mem::MaybeUninit;

/// Cells for messages. Who may read and write which is said by the positions of the ring, and
/// never by this.
#[derive(Debug)]
pub(super) struct Slots<T> {
    /// A power of two of them.
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

impl<T> Slots<T> {
    /// At least this many.
    pub(super) fn new(count: usize) -> Slots<T> {
        Slots {
            cells: (0..count.next_power_of_two())
                .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
                .collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The cell of a position, or of a number.
    #[inline]
    fn cell(&self, position: u64) -> &UnsafeCell<MaybeUninit<T>> {
        let index = position as usize & (self.cells.len() - 1);
        // SAFETY: the length is a power of two, so the masked index is less.
        unsafe { self.cells.get_unchecked(index) }
    }

    /// Puts a message into the cell of this position; what is there is overwritten.
    ///
    /// # Safety
    /// Nobody else reads or writes the cell meanwhile.
    #[inline]
    pub(super) unsafe fn write(&self, position: u64, message: MaybeUninit<T>) {
        // SAFETY: the pointer is valid, and the access is exclusive by contract.
        self.cell(position)
            .with_mut(|cell| unsafe { *cell = message });
    }

    /// A bitwise copy of what lies in the cell of this position. Of all copies of one message, one may
    /// be taken for the message.
    ///
    /// # Safety
    /// Nobody writes the cell meanwhile.
    #[inline]
    pub(super) unsafe fn copy(&self, position: u64) -> MaybeUninit<T> {
        // SAFETY: the pointer is valid, and nobody writes, by contract.
        self.cell(position).with(|cell| unsafe { cell.read() })
    }
}
