//! Memory for waiting entries. Freed pieces are reused for entries that need the same capacity.
//!
//! Entries for a time far ahead start in a small piece, and move to a piece of twice the capacity when it is
//! full. So the memory of pieces depends on their contents, not on their history.

use super::blocks::{Block, Blocks};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::ptr::{NonNull, null};

/// Entries in the order in which they were added, up to a capacity.
pub(super) struct Piece<T> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
    /// The block that contains the memory; null if the memory is from the allocator.
    block: *const Block,
}

/// Emptied pieces, by the logarithm of their capacity.
pub(super) struct Spare<T> {
    classes: Vec<Vec<Piece<T>>>,
    blocks: Blocks,
}

/// The largest size in bytes of pieces that are allocated in blocks.
const BLOCKED: usize = 8192;

impl<T> Piece<T> {
    /// Creates a piece without capacity.
    pub(super) const fn new() -> Piece<T> {
        Piece {
            start: NonNull::dangling(),
            len: 0,
            capacity: 0,
            block: null(),
        }
    }

    fn layout(capacity: usize) -> Layout {
        Layout::array::<T>(capacity).expect("what waits fits into memory")
    }

    /// Creates a piece with this capacity, which is not zero.
    fn with_capacity(capacity: usize, blocks: &mut Blocks) -> Piece<T> {
        const { assert!(size_of::<T>() > 0) }
        let layout = Piece::<T>::layout(capacity);
        let (start, block) = if layout.size() <= BLOCKED {
            let (start, block) = blocks.take(layout);
            (start.cast(), block)
        } else {
            // SAFETY: the layout's size is not zero.
            let start = NonNull::new(unsafe { alloc(layout) }.cast());
            (start.unwrap_or_else(|| handle_alloc_error(layout)), null())
        };
        Piece {
            start,
            len: 0,
            capacity,
            block,
        }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry; the piece must have free capacity.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: T) {
        assert!(self.len < self.capacity, "the piece has capacity");
        // SAFETY: the index is less than the capacity, and no entry is stored there.
        unsafe { self.start.add(self.len).write(entry) };
        self.len += 1;
    }

    /// Calls `each` with all entries. If that panics, the remaining entries are leaked.
    #[inline]
    pub(super) fn drain(&mut self, mut each: impl FnMut(T)) {
        let len = std::mem::replace(&mut self.len, 0);
        for index in 0..len {
            // SAFETY: the index is less than the former length, and each entry is moved out once.
            each(unsafe { self.start.add(index).read() });
        }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        // SAFETY: the piece contains `len` initialised entries.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }.iter()
    }

    /// Removes every entry for which `keep` is false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let (start, mut retained) = (self.start, 0);
        self.drain(|entry| {
            if keep(&entry) {
                // SAFETY: all entries up to this one have been moved out, and `retained`, of which there are fewer, have
                // been moved back.
                unsafe { start.add(retained).write(entry) };
                retained += 1;
            }
        });
        self.len = retained;
    }

    /// Appends all entries to another piece, which has the capacity for them.
    fn move_to(&mut self, other: &mut Piece<T>) {
        assert!(
            self.len <= other.capacity - other.len,
            "the capacity is enough for all"
        );
        // SAFETY: this piece contains `len` entries, and the other one has free capacity for them. They are separate
        // allocations, and `len` is set to 0.
        unsafe {
            let end = other.start.add(other.len);
            end.copy_from_nonoverlapping(self.start, self.len);
        }
        other.len += std::mem::replace(&mut self.len, 0);
    }

    /// Enlarges memory from the allocator, which may move the memory.
    fn extend(&mut self, capacity: usize) {
        debug_assert!(self.block.is_null() && 0 < self.capacity && self.capacity < capacity);
        let layout = Piece::<T>::layout(capacity);
        // SAFETY: the memory was allocated with the layout of its capacity; the new size is not zero.
        let start = unsafe {
            let old = Piece::<T>::layout(self.capacity);
            realloc(self.start.as_ptr().cast(), old, layout.size())
        };
        let start = NonNull::new(start.cast());
        self.start = start.unwrap_or_else(|| handle_alloc_error(layout));
        self.capacity = capacity;
    }
}

impl<T> Default for Piece<T> {
    fn default() -> Piece<T> {
        Piece::new()
    }
}

impl<T> Drop for Piece<T> {
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            self.drain(drop);
        }
        if self.capacity == 0 {
            return;
        }
        // SAFETY: the piece owns its memory, which comes from its block or, if that is null, from the allocator.
        unsafe {
            let layout = Piece::<T>::layout(self.capacity);
            if self.block.is_null() {
                dealloc(self.start.as_ptr().cast(), layout);
            } else {
                Block::release(self.block, layout.size());
            }
        }
    }
}

impl<T> Spare<T> {
    /// The initial capacity of pieces.
    const LEAST: usize = 16;

    pub(super) fn new() -> Spare<T> {
        Spare {
            classes: Vec::new(),
            blocks: Blocks::new(),
        }
    }

    /// Takes back an empty piece for reuse.
    pub(super) fn push(&mut self, piece: Piece<T>) {
        debug_assert!(piece.is_empty());
        let Some(class) = piece.capacity().checked_ilog2() else {
            return;
        };
        let class = class as usize;
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        self.classes[class].push(piece);
    }

    fn used(&mut self, capacity: usize) -> Option<Piece<T>> {
        self.classes.get_mut(capacity.ilog2() as usize)?.pop()
    }

    /// Returns a piece with this capacity, which is a power of two.
    pub(super) fn take(&mut self, capacity: usize) -> Piece<T> {
        let used = self.used(capacity);
        used.unwrap_or_else(|| Piece::with_capacity(capacity, &mut self.blocks))
    }

    /// Moves the contents of a full piece to one of twice the capacity.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(&mut self, piece: &mut Piece<T>) {
        let capacity = (2 * piece.len()).next_power_of_two().max(Spare::<T>::LEAST);
        let mut larger = match self.used(capacity) {
            Some(larger) => larger,
            // The allocator extends a large piece by mapping pages, without a copy.
            None if piece.capacity > 0 && piece.block.is_null() => return piece.extend(capacity),
            None => Piece::with_capacity(capacity, &mut self.blocks),
        };
        piece.move_to(&mut larger);
        self.push(std::mem::replace(piece, larger));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn fill<T>(spare: &mut Spare<T>, entries: impl Iterator<Item = T>) -> Piece<T> {
        let mut piece = Piece::new();
        for entry in entries {
            if piece.len() == piece.capacity() {
                spare.grow(&mut piece);
            }
            piece.push(entry);
        }
        piece
    }

    #[test]
    fn a_piece_grows_in_spare_memory_and_keeps_its_order() {
        let mut spare = Spare::<u32>::new();
        let mut large = fill(&mut spare, 0..1000);
        assert!(large.iter().copied().eq(0..1000));
        assert_eq!(large.capacity(), 1024);
        let place = large.start;
        large.drain(|_| {});
        spare.push(large);
        let small = fill(&mut spare, 0..100);
        assert_eq!(
            small.capacity(),
            128,
            "a large piece is left for what needs it"
        );
        let again = fill(&mut spare, 0..600);
        assert_eq!(again.start, place, "memory is used again");
        spare.push(Piece::new());
    }

    #[test]
    fn entries_are_dropped_once_wherever_their_memory_is_from() {
        let entry = Arc::new(());
        // Smaller than pieces in blocks, in a block, and larger than that.
        for count in [40, 1000, 3000] {
            let mut spare = Spare::new();
            let mut piece = fill(&mut spare, (0..count).map(|n| (n, Arc::clone(&entry))));
            assert_eq!(Arc::strong_count(&entry), count + 1);
            piece.retain(|&(n, _)| n % 3 == 0);
            assert_eq!(Arc::strong_count(&entry), count.div_ceil(3) + 1);
            assert!(piece.iter().map(|&(n, _)| n).eq((0..count).step_by(3)));
            let mut taken = Vec::new();
            piece.drain(|(n, _)| taken.push(n));
            assert_eq!(
                (taken.len(), Arc::strong_count(&entry)),
                (count.div_ceil(3), 1)
            );
            piece.push((0, Arc::clone(&entry)));
            drop(piece);
            assert_eq!(Arc::strong_count(&entry), 1);
        }
    }
}
