//! Small pieces of memory, allocated from the system in blocks.
//!
//! A shard's memory grows in small pieces: chunks for event buffers, slots for waiting entries. If pieces were
//! allocated one by one, each would cost a page fault, and with several threads a system call and a lock. Therefore
//! pieces are parts of larger blocks. The first blocks are small; later blocks use huge pages, if the system has them.
//! Any thread may free a piece. A block is returned to the system when its last piece is freed.

use super::region::Region;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// A block of memory that is divided into pieces.
pub(super) struct Block {
    /// The bytes that have not been freed, including those that were never allocated.
    bytes: AtomicUsize,
    /// The memory of the block, which is freed when its last piece is freed.
    _memory: Memory,
}

/// The memory of a block, by its source.
enum Memory {
    Allocator(NonNull<u8>, Layout),
    System { _region: Region },
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Allocator(start, layout) = self {
            // SAFETY: the memory was allocated with this layout, and is freed only here.
            unsafe { dealloc(start.as_ptr(), *layout) };
        }
    }
}

/// An allocator of pieces from blocks.
pub(super) struct Blocks {
    /// The current block; null before the first one.
    block: *const Block,
    /// The start of the next piece.
    at: *mut u8,
    /// The free bytes at the end of the block.
    left: usize,
    /// The total size of all blocks so far, in bytes.
    taken: usize,
}

// SAFETY: only this allocator uses the free bytes of its block. It shares only the atomic count of bytes with other
// threads.
unsafe impl Send for Blocks {}

/// The size of the first block in bytes.
const FIRST: usize = if cfg!(miri) { 16 << 10 } else { 32 << 10 };
/// The total size up to which blocks are small, because many runs need no more.
const SMALL: usize = 32 * FIRST;
/// The size of all later blocks in bytes.
const LARGE: usize = if cfg!(miri) { SMALL } else { 2 << 20 };

impl Blocks {
    pub(super) const fn new() -> Blocks {
        Blocks {
            block: null(),
            at: null_mut(),
            left: 0,
            taken: 0,
        }
    }

    /// Allocates a piece, to be freed by [`Block::release`], and returns it with its block.
    ///
    /// Sizes are multiples of the alignment, and not zero; the alignment is the same for all pieces.
    #[inline]
    pub(super) fn take(&mut self, piece: Layout) -> (NonNull<u8>, *const Block) {
        if self.left < piece.size() {
            self.begin(piece);
        }
        let start = NonNull::new(self.at).expect("a block begins somewhere");
        self.left -= piece.size();
        // SAFETY: `begin` ensures that at least `piece.size()` bytes are left in the block.
        self.at = unsafe { self.at.add(piece.size()) };
        (start, self.block)
    }

    /// Starts a block that this piece fits into. The rest of the previous block is not used.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, piece: Layout) {
        debug_assert!(piece.size() > 0 && piece.size().is_multiple_of(piece.align()));
        self.give_up_rest();
        let bytes = match self.taken {
            0 => FIRST,
            taken if taken < SMALL => SMALL - taken,
            _ => LARGE,
        };
        let bytes = bytes.max(piece.size());
        let layout = Layout::from_size_align(bytes, piece.align());
        let layout = layout.expect("a block fits into memory");
        let (start, memory) = if bytes == LARGE {
            let region = Region::new(layout, 1);
            (region.start(), Memory::System { _region: region })
        } else {
            // SAFETY: the layout's size is not zero.
            let start = NonNull::new(unsafe { alloc(layout) });
            let start = start.unwrap_or_else(|| handle_alloc_error(layout));
            (start.as_ptr(), Memory::Allocator(start, layout))
        };
        self.block = Box::into_raw(Box::new(Block {
            bytes: AtomicUsize::new(bytes),
            _memory: memory,
        }));
        (self.at, self.left) = (start, bytes);
        self.taken += bytes;
    }

    fn give_up_rest(&mut self) {
        let left = std::mem::replace(&mut self.left, 0);
        if left > 0 {
            // SAFETY: these bytes belong to the current block, and no piece contains them.
            unsafe { Block::release(self.block, left) };
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.give_up_rest();
    }
}

impl Block {
    /// Frees pieces of a block, `bytes` bytes in all.
    ///
    /// # Safety
    /// The pieces were [taken](Blocks::take) from this block, and nothing uses them any more.
    pub(super) unsafe fn release(block: *const Block, bytes: usize) {
        // SAFETY: a block exists until its last byte is released. Each release uses `Ordering::Release`, so all uses of
        // the other pieces happen before the block is freed.
        unsafe {
            if (*block).bytes.fetch_sub(bytes, Ordering::Release) == bytes {
                fence(Ordering::Acquire);
                drop(Box::from_raw(block.cast_mut()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Piece(NonNull<u8>, usize, *const Block);

    // SAFETY: any thread may release a piece.
    unsafe impl Send for Piece {}

    #[test]
    fn pieces_are_apart_and_may_be_given_back_by_anybody() {
        for (sizes, align) in [
            ([8192, 256, 1024], 8),
            ([96, 32, 64], 32),
            ([3 << 20; 3], 16),
        ] {
            let mut blocks = Blocks::new();
            let (mut pieces, mut all) = (Vec::new(), 0);
            while all < SMALL + LARGE + LARGE / 2 && pieces.len() < 2000 {
                let number = pieces.len();
                let size = sizes[number % 3];
                let layout = Layout::from_size_align(size, align).unwrap();
                let (start, block) = blocks.take(layout);
                assert_eq!(start.as_ptr().align_offset(align), 0);
                // SAFETY: the piece belongs to this test and is large enough.
                unsafe {
                    start.cast::<usize>().write(number);
                    start.add(size - 1).write(7);
                }
                pieces.push(Piece(start, size, block));
                all += size;
            }
            let place = |piece: &Piece| (piece.0.addr().get(), piece.1);
            let mut places: Vec<_> = pieces.iter().map(place).collect();
            places.sort_unstable();
            assert!(
                places
                    .windows(2)
                    .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
            );
            drop(blocks);
            let count = pieces.len();
            std::thread::scope(|scope| {
                for half in pieces.chunks_mut(count.div_ceil(2)) {
                    scope.spawn(move || {
                        for &mut Piece(start, size, block) in half {
                            // SAFETY: the piece was written above, and is released once.
                            unsafe {
                                assert!(start.cast::<usize>().read() < count);
                                Block::release(block, size);
                            }
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn those_who_need_little_take_little() {
        let layout = Layout::from_size_align(4096, 8).unwrap();
        let mut blocks = Blocks::new();
        let mut taken = Vec::new();
        for number in 0..SMALL / 4096 {
            taken.push(blocks.take(layout).1);
            assert_eq!(blocks.taken == FIRST, number < FIRST / 4096);
            assert!(blocks.taken <= SMALL);
        }
        // SAFETY: no thread uses these pieces.
        taken
            .into_iter()
            .for_each(|block| unsafe { Block::release(block, 4096) });
    }
}
