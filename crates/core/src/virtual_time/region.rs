//! Memory for many actors that were spawned together, in which they never move.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Memory for the actors of one spawn on one shard: zeroed, fixed in place, given back as a whole.
pub(super) struct Region {
    start: NonNull<u8>,
    bytes: usize,
    align: usize,
}

/// The size of a huge page.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE: usize = 2 << 20;

impl Region {
    /// Zeroed memory for `count` values of this layout.
    ///
    /// Large regions come straight from the system, which zeroes them page by page as they are
    /// first touched, and in huge pages where it has them: a population costs nothing until it is
    /// spoken to, and then few page faults.
    pub(super) fn new(slot: Layout, count: usize) -> Region {
        let bytes = slot
            .size()
            .checked_mul(count)
            .expect("a population fits into the address space");
        let align = slot.align().max(64);
        if bytes == 0 {
            return Region {
                start: NonNull::dangling(),
                bytes,
                align,
            };
        }
        #[cfg(all(target_os = "linux", not(miri)))]
        if bytes >= HUGE
            && let Some(start) = map(bytes)
        {
            return Region {
                start,
                bytes,
                align: HUGE,
            };
        }
        let layout = Layout::from_size_align(bytes, align).expect("a valid layout");
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        Region {
            start: start.unwrap_or_else(|| handle_alloc_error(layout)),
            bytes,
            align,
        }
    }

    /// The address of the first byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn is_mapped(&self) -> bool {
        self.align == HUGE
    }
}

/// Maps zeroed memory at a multiple of the huge page's size.
#[cfg(all(target_os = "linux", not(miri)))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let reserve = bytes.checked_add(HUGE)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing else.
    let raw = unsafe { libc::mmap(std::ptr::null_mut(), reserve, protection, flags, -1, 0) };
    if raw == libc::MAP_FAILED {
        return None;
    }
    let before = raw.cast::<u8>().align_offset(HUGE);
    let start = raw.cast::<u8>().wrapping_add(before);
    let mapped = bytes.next_multiple_of(4096);
    let after = reserve.next_multiple_of(4096) - before - mapped;
    // SAFETY: both ends lie within the mapping just made, outside of the part that is handed out,
    // and at page boundaries. The advice changes no contents; its failure costs only speed.
    unsafe {
        if before > 0 {
            libc::munmap(raw, before);
        }
        if after > 0 {
            libc::munmap(start.add(mapped).cast(), after);
        }
        // The tail that does not fill a huge page stays on small ones.
        libc::madvise(start.cast(), bytes / HUGE * HUGE, libc::MADV_HUGEPAGE);
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
            // SAFETY: exactly this range was mapped by `map` and is not used any more.
            unsafe {
                libc::munmap(
                    self.start.as_ptr().cast(),
                    self.bytes.next_multiple_of(4096),
                )
            };
            return;
        }
        // SAFETY: allocated by `new` with this layout.
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
                // SAFETY: within the region, which is aligned for u64 and zeroed.
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
