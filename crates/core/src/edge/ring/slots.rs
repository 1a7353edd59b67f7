//! The memory of messages.
#![allow(unsafe_code, reason = "cells of messages may be uninitialised")]

use crate::sync::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

type Cell<T> = UnsafeCell<MaybeUninit<T>>;

/// Cells for messages. The positions of the ring decide which thread may read and write a cell.
#[derive(Debug)]
pub(super) struct Slots<T> {
    /// The cells; their number is a power of two.
    cells: Box<[Cell<T>]>,
}

impl<T> Slots<T> {
    /// Allocates at least `count` cells.
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

    /// Returns a view with faster access, valid while the slots exist.
    pub(super) fn view(&self) -> View<T> {
        View {
            cells: NonNull::from(&*self.cells).cast(),
            mask: self.cells.len() - 1,
        }
    }
}

/// A pointer to the cells of [`Slots`], which must outlive it.
#[derive(Debug)]
pub(super) struct View<T> {
    cells: NonNull<Cell<T>>,
    mask: usize,
}

// SAFETY: messages are reached only by the unsafe methods, whose callers have exclusive access to the cell, so `T:
// Send` suffices.
unsafe impl<T: Send> Send for View<T> {}
// SAFETY: a shared view computes only addresses. The callers of its unsafe methods ensure that no other thread accesses
// the cell in conflict.
unsafe impl<T: Send> Sync for View<T> {}

impl<T> View<T> {
    /// Returns the cell at a position or with a number.
    ///
    /// # Safety
    /// The slots still exist.
    #[inline]
    unsafe fn cell(&self, position: u64) -> &Cell<T> {
        // SAFETY: the number of cells is `mask + 1`, a power of two, so the masked index is within the allocation.
        unsafe { self.cells.add(position as usize & self.mask).as_ref() }
    }

    /// Writes a message into the cell of this position without dropping its old content.
    ///
    /// # Safety
    /// The slots still exist, and no other thread reads or writes the cell during the call.
    #[inline]
    pub(super) unsafe fn write(&self, position: u64, message: MaybeUninit<T>) {
        // SAFETY: the caller guarantees that the slots still exist.
        let cell = unsafe { self.cell(position) };
        // SAFETY: the pointer is valid, and the caller guarantees that no other thread accesses the cell.
        cell.with_mut(|cell| unsafe { *cell = message });
    }

    /// Returns a bitwise copy of the cell of this position. Only one of the copies of a message may be used
    /// as the message.
    ///
    /// # Safety
    /// The slots still exist, and no thread writes the cell during the call.
    #[inline]
    pub(super) unsafe fn copy(&self, position: u64) -> MaybeUninit<T> {
        // SAFETY: the caller guarantees that the slots still exist.
        let cell = unsafe { self.cell(position) };
        // SAFETY: the pointer is valid, and the caller guarantees that no thread writes the cell.
        cell.with(|cell| unsafe { cell.read() })
    }
}
