//! Memory for the blocks of asynchronous forks.
//!
//! Each worker keeps free blocks by size and allocates new ones from chunks. Allocating and freeing take a few plain
//! loads and stores. A block that is freed on another worker returns to its owner, so that no worker accumulates memory
//! that another worker needs. Chunks are freed with the pool.
#![allow(unsafe_code, reason = "blocks are carved out of chunks of memory")]

use crate::sync::AtomicPtr;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

/// Sizes and addresses of blocks are multiples of this.
const GRAIN: usize = 32;

/// The minimum size of blocks that the system's allocator allocates.
const LARGE: usize = 2048;

/// The maximum number of blocks that are taken from a chunk at once.
const AT_ONCE: usize = 32;

const CHUNK: Layout = match Layout::from_size_align(64 << 10, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("64 KiB at 4 KiB is a layout"),
};

/// A free block.
struct Free {
    next: *mut Free,
    /// The size in grains; set only in blocks that were freed on another worker.
    grains: usize,
}

/// The free blocks of one worker. Only this worker calls the methods.
pub(super) struct Frames {
    free: [Cell<*mut Free>; LARGE / GRAIN],
    /// The unused part of the newest chunk.
    rest: Cell<*mut u8>,
    left: Cell<usize>,
    chunks: RefCell<Vec<NonNull<u8>>>,
}

/// Blocks of a worker that were freed on other workers.
pub(super) struct ReturnedFrames(AtomicPtr<Free>);

impl Frames {
    pub(super) fn new() -> Frames {
        Frames {
            free: [const { Cell::new(ptr::null_mut()) }; LARGE / GRAIN],
            rest: Cell::new(ptr::null_mut()),
            left: Cell::new(0),
            chunks: RefCell::default(),
        }
    }

    /// Returns the size of a block for a `T` in grains; `None` if it is large.
    const fn grains<T>() -> Option<usize> {
        let grains = size_of::<T>().div_ceil(GRAIN);
        if grains * GRAIN < LARGE && align_of::<T>() <= GRAIN {
            Some(grains)
        } else {
            None
        }
    }

    /// Returns memory for a `T` from the free list. If the list is empty, returns `None`; the caller then calls
    /// [`refill`](Frames::refill).
    #[inline(always)]
    pub(super) fn take<T>(&self) -> Option<NonNull<T>> {
        let Some(grains) = (const { Self::grains::<T>() }) else {
            return Some(large::<T>());
        };
        let block = NonNull::new(self.free[grains].get())?;
        // SAFETY: a block in the list is free and begins with a `Free`.
        self.free[grains].set(unsafe { (*block.as_ptr()).next });
        Some(block.cast())
    }

    /// Ensures that memory for a `T` is available: from returned memory, or else from a chunk.
    pub(super) fn refill<T>(&self, returned: &ReturnedFrames) {
        if let Some(grains) = const { Self::grains::<T>() } {
            self.refill_grains(grains, returned);
        }
    }

    /// # Safety
    /// `block` came from [`Frames::take`] of this worker for the same `T`, and is not used any more.
    #[inline(always)]
    pub(super) unsafe fn give_back<T>(&self, block: NonNull<T>) {
        // SAFETY: the block is free now, and a grain is larger than a `Free`. `large` has allocated a large block with this
        // layout.
        unsafe {
            match const { Self::grains::<T>() } {
                Some(grains) => self.put(block.cast(), grains),
                None => dealloc(block.as_ptr().cast(), Layout::new::<T>()),
            }
        }
    }

    /// Puts a block of this size into its list.
    ///
    /// # Safety
    /// The block is free and belongs to this worker.
    #[inline(always)]
    unsafe fn put(&self, block: NonNull<Free>, grains: usize) {
        // SAFETY: the block is free, and a grain is larger than a `Free`.
        unsafe { (&raw mut (*block.as_ptr()).next).write(self.free[grains].get()) };
        self.free[grains].set(block.as_ptr());
    }

    #[cold]
    #[inline(never)]
    fn refill_grains(&self, grains: usize, returned: &ReturnedFrames) {
        let mut next = returned.0.swap(ptr::null_mut(), Ordering::Acquire);
        while let Some(block) = NonNull::new(next) {
            // SAFETY: `give_back` has written both fields, and the swap took the whole list, so no other thread uses
            // it.
            unsafe {
                next = (*block.as_ptr()).next;
                self.put(block, (*block.as_ptr()).grains);
            }
        }
        if !self.free[grains].get().is_null() {
            return;
        }
        let size = grains * GRAIN;
        if self.left.get() < size {
            let chunk = allocate(CHUNK);
            self.chunks.borrow_mut().push(chunk);
            self.rest.set(chunk.as_ptr());
            self.left.set(CHUNK.size());
        }
        // In reverse, so that the first block becomes the first of the list.
        let count = (self.left.get() / size).min(AT_ONCE);
        let first = self.rest.get();
        self.rest.set(first.wrapping_add(count * size));
        self.left.set(self.left.get() - count * size);
        for number in (0..count).rev() {
            // SAFETY: `count` blocks fit into the rest of the chunk, and none is in use.
            unsafe {
                self.put(
                    NonNull::new_unchecked(first.add(number * size)).cast(),
                    grains,
                )
            };
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        for chunk in self.chunks.get_mut().drain(..) {
            // SAFETY: `refill_grains` has allocated the chunk with this layout. Blocks in use keep the pool alive, so no block
            // of the chunk is in use.
            unsafe { dealloc(chunk.as_ptr(), CHUNK) };
        }
    }
}

impl ReturnedFrames {
    pub(super) fn new() -> ReturnedFrames {
        ReturnedFrames(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns a block on another worker's thread.
    ///
    /// # Safety
    /// `block` came from [`Frames::take`] of the worker that owns this list, for the same `T`, and is not used any
    /// more.
    pub(super) unsafe fn give_back<T>(&self, block: NonNull<T>) {
        let grains = const { Frames::grains::<T>() };
        let block = block.cast::<Free>().as_ptr();
        let mut next = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the block is free, and a grain is larger than a `Free`. `large` has allocated a large block with
            // this layout.
            unsafe {
                match grains {
                    Some(grains) => block.write(Free { next, grains }),
                    None => return dealloc(block.cast(), Layout::new::<T>()),
                }
            }
            // The owner takes only the whole list, so an equal head means an equal list (no ABA problem).
            match self
                .0
                .compare_exchange_weak(next, block, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(other) => next = other,
            }
        }
    }
}

#[cold]
fn large<T>() -> NonNull<T> {
    allocate(Layout::new::<T>()).cast()
}

fn allocate(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "chunks and large blocks have a size");
    // SAFETY: the layout's size is not zero.
    let block = unsafe { alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}
