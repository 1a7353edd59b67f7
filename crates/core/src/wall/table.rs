//! An append-only table from addresses to the shared part of actors, which is read without locks.
//!
//! Entries are added once, in any order, and never move. They are in buckets of 64, 128, 256, … entries. A bucket is
//! allocated when its first entry is added, so a look-up reads two words that do not change any more.

use std::sync::OnceLock;

/// The binary logarithm of the number of entries in the first bucket.
const FIRST: u32 = 6;
/// The number of buckets, enough for all 2^32 indices.
const BUCKETS: usize = 33 - FIRST as usize;

type Bucket<T> = OnceLock<Box<[OnceLock<T>]>>;

/// The table; see the [module](self).
pub(crate) struct Table<T> {
    buckets: [Bucket<T>; BUCKETS],
}

impl<T> Table<T> {
    pub(crate) fn new() -> Table<T> {
        Table {
            buckets: [const { OnceLock::new() }; BUCKETS],
        }
    }

    /// Returns the entry with this index, if it exists.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (bucket, offset) = place(index);
        self.buckets[bucket].get()?[offset].get()
    }

    /// Returns the entry with this index, creating it if it does not exist. The flag is true if this call has created
    /// it.
    pub(crate) fn get_or_make(&self, index: u32, make: impl FnOnce() -> T) -> (&T, bool) {
        let (bucket, offset) = place(index);
        let entries = self.buckets[bucket].get_or_init(|| {
            (0..1usize << (FIRST as usize + bucket))
                .map(|_| OnceLock::new())
                .collect()
        });
        let mut made = false;
        let entry = entries[offset].get_or_init(|| {
            made = true;
            make()
        });
        (entry, made)
    }

    /// Iterates over all entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.buckets
            .iter()
            .filter_map(OnceLock::get)
            .flatten()
            .filter_map(OnceLock::get)
    }
}

/// Returns the bucket of an index and the offset in it.
#[inline]
const fn place(index: u32) -> (usize, usize) {
    let shifted = index as u64 + (1 << FIRST);
    let bits = shifted.ilog2();
    ((bits - FIRST) as usize, (shifted - (1 << bits)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let table = Table::new();
        for index in (0..3000).rev() {
            assert_eq!(table.get_or_make(index, || index), (&index, true));
        }
        for index in 0..3000 {
            assert_eq!(table.get(index), Some(&index));
        }
        assert_eq!(table.get(5000), None);
        assert_eq!(table.iter().count(), 3000);
    }

    #[test]
    fn the_last_address_has_a_place() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(63), (0, 63));
        assert_eq!(place(64), (1, 0));
        assert_eq!(place(u32::MAX), (BUCKETS - 1, 63));
    }

    #[test]
    fn an_entry_is_made_once() {
        let table = Table::new();
        assert_eq!(table.get_or_make(7, || 'a'), (&'a', true));
        assert_eq!(table.get_or_make(7, || 'b'), (&'a', false));
    }
}
