//! Memory for many actors that were spawned together, in which they never move.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
#[cfg(all(target_os = "linux", not(miri)))]
use std::cell::Cell;
use std::ptr::NonNull;

/// Memory for the actors of one spawn on one shard. It is zeroed, does not move, and is freed at once.
pub(super) struct Region {
    start: NonNull<u8>,
    bytes: usize,
    align: usize,
    /// The distance in bytes between two consecutive values.
    #[cfg(all(target_os = "linux", not(miri)))]
    stride: usize,
    /// The number of huge pages, from the first one on, that are in use.
    #[cfg(all(target_os = "linux", not(miri)))]
    used: Cell<usize>,
    /// The number of huge pages that have memory.
    #[cfg(all(target_os = "linux", not(miri)))]
    populated: Cell<usize>,
}

/// The outcome of pre-faulting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefault {
    /// Pre-faulting was not needed, and will not be needed later.
    Done,
    /// Pre-faulting is not needed yet: some resident memory is still unused.
    Early,
    /// The next huge page was populated with memory.
    Populated,
}

/// The size of a huge page.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE: usize = 2 << 20;

/// Returns the number of bytes to map. The last part of the region uses small pages, unless it fills most of a huge
/// page: then a huge page is faster.
#[cfg(all(target_os = "linux", not(miri)))]
fn mapped(bytes: usize) -> Option<usize> {
    if bytes % HUGE >= HUGE / 2 {
        bytes.checked_next_multiple_of(HUGE)
    } else {
        bytes.checked_next_multiple_of(4096)
    }
}

impl Region {
    /// Allocates zeroed memory for `count` values of this layout.
    ///
    /// Large regions are mapped by the system, which zeroes pages when they are first accessed, and uses huge pages if
    /// it has them. So a population costs no memory until its actors get messages, and causes few page faults then.
    pub(super) fn new(slot: Layout, count: usize) -> Region {
        let bytes = slot
            .size()
            .checked_mul(count)
            .expect("a population fits into the address space");
        let region = |start, align| Region {
            start,
            bytes,
            align,
            #[cfg(all(target_os = "linux", not(miri)))]
            stride: slot.size(),
            #[cfg(all(target_os = "linux", not(miri)))]
            used: Cell::new(0),
            #[cfg(all(target_os = "linux", not(miri)))]
            populated: Cell::new(0),
        };
        let align = slot.align().max(64);
        if bytes == 0 {
            return region(NonNull::dangling(), align);
        }
        #[cfg(all(target_os = "linux", not(miri)))]
        if bytes >= HUGE
            && let Some(start) = map(bytes)
        {
            return region(start, HUGE);
        }
        let layout = Layout::from_size_align(bytes, align).expect("a valid layout");
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        region(start.unwrap_or_else(|| handle_alloc_error(layout)), align)
    }

    /// Returns the address of the first byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn is_mapped(&self) -> bool {
        self.align == HUGE
    }

    /// Makes the system allocate the next huge page if nearly all populated pages are in use: there are no unused
    /// pages, or fewer than a sixteenth of the number of used pages. Values that are used in order then cause no page
    /// faults. A value is in use if its first byte is not zero. The thread of the values calls this method when it is
    /// idle.
    #[cfg(all(target_os = "linux", not(miri)))]
    pub(super) fn populate_ahead(&self) -> Prefault {
        let (mut used, mut populated) = (self.used.get(), self.populated.get());
        // The bytes after the last complete huge page are not pre-faulted.
        let whole = if self.is_mapped() {
            self.bytes / HUGE
        } else {
            0
        };
        if populated >= whole {
            return Prefault::Done;
        }
        while used < populated {
            // The value that contains the first byte of the page; it begins on a page that has memory.
            let first = used * HUGE / self.stride * self.stride;
            // SAFETY: this is the first byte of a value, within the region, whose bytes were initialised with zero. The
            // region is not `Sync`, so no other thread writes to the byte.
            if unsafe { self.start().add(first).read() } == 0 {
                break;
            }
            used += 1;
        }
        while used == populated && populated < whole && self.has_memory(populated) {
            // The page has been used before it was pre-faulted.
            (used, populated) = (used + 1, populated + 1);
        }
        self.used.set(used);
        self.populated.set(populated);
        if populated >= whole {
            return Prefault::Done;
        }
        if used == 0 || populated - used >= (used / 16).max(1) {
            return Prefault::Early;
        }
        let page = self.page(populated);
        // SAFETY: the page is mapped, and its contents do not change.
        let done = unsafe { libc::madvise(page, HUGE, libc::MADV_POPULATE_WRITE) };
        if done != 0 {
            // The kernel does not support this call, or has no memory: pages are faulted in when they are used.
            self.populated.set(usize::MAX);
            return Prefault::Done;
        }
        self.populated.set(populated + 1);
        Prefault::Populated
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn page(&self, number: usize) -> *mut libc::c_void {
        self.start().wrapping_add(number * HUGE).cast()
    }

    /// True if the huge page with this number has memory.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn has_memory(&self, number: usize) -> bool {
        let mut resident = 0;
        // SAFETY: the page is mapped, and `mincore` writes one byte for one page.
        let known = unsafe { libc::mincore(self.page(number), 4096, &raw mut resident) } == 0;
        known && resident & 1 == 1
    }

    /// Does nothing, because the memory comes from the allocator.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(super) fn populate_ahead(&self) -> Prefault {
        Prefault::Done
    }
}

/// Maps zeroed memory at a multiple of the huge page's size.
#[cfg(all(target_os = "linux", not(miri)))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let mapped = mapped(bytes)?;
    let reserve = mapped.checked_add(HUGE)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address that the system chooses affects no other memory.
    let raw = unsafe { libc::mmap(std::ptr::null_mut(), reserve, protection, flags, -1, 0) };
    if raw == libc::MAP_FAILED {
        return None;
    }
    let before = raw.cast::<u8>().align_offset(HUGE);
    let start = raw.cast::<u8>().wrapping_add(before);
    let after = reserve - before - mapped;
    // SAFETY: both ends are page-aligned parts of the new mapping, outside of the returned range. The advice changes no
    // contents; if it fails, only speed is lost.
    unsafe {
        if before > 0 {
            libc::munmap(raw, before);
        }
        if after > 0 {
            libc::munmap(start.add(mapped).cast(), after);
        }
        libc::madvise(start.cast(), mapped / HUGE * HUGE, libc::MADV_HUGEPAGE);
    }
    NonNull::new(start)
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        #[cfg(all(target_os = "linux", not(miri)))]
        if self.is_mapped() {
            // SAFETY: `map` has mapped exactly this range, and nothing uses it any more.
            unsafe {
                let mapped = mapped(self.bytes).expect("as it was mapped");
                libc::munmap(self.start.as_ptr().cast(), mapped)
            };
            return;
        }
        // SAFETY: `new` has allocated the memory with this layout.
        unsafe {
            dealloc(
                self.start.as_ptr(),
                Layout::from_size_align_unchecked(self.bytes, self.align),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_zeroed_aligned_and_writable_to_their_end() {
        let counts: &[usize] = if cfg!(miri) {
            &[0, 1, 300]
        } else {
            &[0, 1, 300, 20_000, 70_001]
        };
        for &count in counts {
            let layout = Layout::new::<[u64; 17]>();
            let region = Region::new(layout, count);
            let words = region.start().cast::<u64>();
            for index in (0..count * 17)
                .step_by(61)
                .chain((count * 17).checked_sub(1))
            {
                // SAFETY: the address is within the region, which is aligned for `u64` and zeroed.
                unsafe {
                    assert_eq!(words.add(index).read(), 0);
                    words.add(index).write(u64::MAX);
                }
            }
            assert_eq!(
                region.start().align_offset(if count == 0 { 1 } else { 64 }),
                0
            );
        }
    }
}
