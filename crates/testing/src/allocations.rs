//! A global allocator that counts the allocations of all threads of the process.
//!
//! Allocations and reallocations are counted only while a [`Count`] is in progress. Otherwise each costs one read of a
//! shared flag, which is not written during that time. The trade-off: there are only two shared counters, so a program
//! that allocates on many threads at once runs slower while it is being counted. Measure times and counts in separate
//! runs.
//!
//! ```
//! use corsair_testing::allocations::{Count, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let count = Count::start();
//! let buffer: Vec<u8> = Vec::with_capacity(100);
//! let total = count.stop();
//! assert!(total.allocations >= 1 && total.bytes >= 100);
//! # drop(buffer);
//! ```

#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// The number of counts in progress.
static COUNTING: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// The bytes allocated minus the bytes freed since the start of the first of the current counts.
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// The system's allocator with counters. Make it the `#[global_allocator]` of a binary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

impl Counting {
    #[inline]
    fn note(bytes: usize) {
        if COUNTING.load(Ordering::Relaxed) > 0 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
            let live = LIVE.fetch_add(bytes as i64, Ordering::Relaxed) + bytes as i64;
            PEAK.fetch_max(live, Ordering::Relaxed);
        }
    }

    #[inline]
    fn note_given_back(bytes: usize) {
        if COUNTING.load(Ordering::Relaxed) > 0 {
            LIVE.fetch_sub(bytes as i64, Ordering::Relaxed);
        }
    }
}

// SAFETY: every method returns what `System` returns for the same arguments. Counting touches atomics
// only, so it neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::note(layout.size());
        // SAFETY: `layout` has a size other than 0, as the caller of `alloc` guarantees.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::note(layout.size());
        // SAFETY: `layout` has a size other than 0, as the caller of `alloc_zeroed` guarantees.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::note_given_back(layout.size());
        Counting::note(size);
        // SAFETY: `alloc` and `realloc` of this type return only blocks of `System`, so `System` has allocated `block`
        // with this layout. `size` is not 0, as the caller of `realloc` guarantees.
        unsafe { System.realloc(block, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Counting::note_given_back(layout.size());
        // SAFETY: `alloc` and `realloc` of this type return only blocks of `System`, so `System` has allocated `block`
        // with this layout. The block is not used again.
        unsafe { System.dealloc(block, layout) }
    }
}

/// The allocations during a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The number of allocated blocks; a block that grows counts again.
    pub allocations: u64,
    /// The number of allocated bytes; a block that grows counts again with its new size.
    pub bytes: u64,
    /// The largest number of bytes in use at the same time, minus those in use at the start of the first of the current
    /// counts.
    pub peak: u64,
}

/// A count of all allocations of the process from its start to its stop.
#[derive(Debug)]
pub struct Count {
    before: Total,
}

impl Count {
    /// Starts to count. Without [`Counting`] as global allocator, nothing is counted.
    pub fn start() -> Count {
        if COUNTING.fetch_add(1, Ordering::SeqCst) == 0 {
            LIVE.store(0, Ordering::SeqCst);
            PEAK.store(0, Ordering::SeqCst);
        }
        Count { before: so_far() }
    }

    /// Stops the count, and returns the allocations since its start.
    pub fn stop(self) -> Total {
        let now = so_far();
        Total {
            allocations: now.allocations - self.before.allocations,
            bytes: now.bytes - self.before.bytes,
            peak: now.peak,
        }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        COUNTING.fetch_sub(1, Ordering::SeqCst);
    }
}

fn so_far() -> Total {
    Total {
        allocations: ALLOCATIONS.load(Ordering::SeqCst),
        bytes: BYTES.load(Ordering::SeqCst),
        peak: PEAK.load(Ordering::SeqCst).max(0) as u64,
    }
}
