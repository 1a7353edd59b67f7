//! The exact set of configurations that a search has visited; each takes a few words of memory.

use hashbrown::HashTable;
use std::hash::Hasher;

/// The set of operations that have been linearized.
///
/// Operations with a return are numbered in the order of their calls. Every operation that was called before the first
/// operation that is not linearized is itself linearized. So a configuration is described by the first word in which a
/// bit is missing and by the following words, up to the last word that has a bit. Operations without a return may never
/// take effect. They are numbered separately, so that their bits are not missing among the others.
#[derive(Debug)]
pub(super) struct Linearized {
    returned: Vec<u64>,
    /// The first word of `returned` that is not full.
    first: usize,
    /// One past the last word of `returned` that is not empty; at least `first`.
    end: usize,
    unknown: Vec<u64>,
}

impl Linearized {
    pub(super) fn new(returned: usize, unknown: usize) -> Linearized {
        Linearized {
            returned: vec![0; returned.div_ceil(64)],
            first: 0,
            end: 0,
            unknown: vec![0; unknown.div_ceil(64)],
        }
    }

    pub(super) fn insert_returned(&mut self, index: usize) {
        let word = index / 64;
        self.returned[word] |= 1 << (index % 64);
        while self.returned.get(self.first) == Some(&u64::MAX) {
            self.first += 1;
        }
        self.end = self.end.max(word + 1).max(self.first);
    }

    pub(super) fn remove_returned(&mut self, index: usize) {
        let word = index / 64;
        self.returned[word] &= !(1 << (index % 64));
        self.first = self.first.min(word);
        while self.end > self.first && self.returned[self.end - 1] == 0 {
            self.end -= 1;
        }
    }

    pub(super) fn insert_unknown(&mut self, index: usize) {
        self.unknown[index / 64] |= 1 << (index % 64);
    }

    pub(super) fn remove_unknown(&mut self, index: usize) {
        self.unknown[index / 64] &= !(1 << (index % 64));
    }

    pub(super) fn has_unknown(&self, index: usize) -> bool {
        self.unknown[index / 64] & (1 << (index % 64)) != 0
    }
}

/// Bits of a table entry that hold the length of a configuration.
const LENGTH_BITS: u32 = 20;

/// A set of configurations, each of which is a set of linearized operations and a state.
#[derive(Debug, Default)]
pub(super) struct Configurations {
    words: Vec<u64>,
    /// The position and length of each configuration in `words`.
    table: HashTable<u64>,
    scratch: Vec<u64>,
}

impl Configurations {
    /// Adds a configuration, and returns false if the set already contains it.
    pub(super) fn insert(&mut self, linearized: &Linearized, state: u32) -> bool {
        self.scratch.clear();
        self.scratch
            .push(u64::from(state) << 32 | linearized.first as u64);
        self.scratch.extend_from_slice(&linearized.unknown);
        self.scratch
            .extend_from_slice(&linearized.returned[linearized.first..linearized.end]);
        let Configurations {
            words,
            table,
            scratch,
        } = self;
        let at = |entry: u64| {
            let start = (entry >> LENGTH_BITS) as usize;
            start..start + (entry & ((1 << LENGTH_BITS) - 1)) as usize
        };
        let hash = hash(scratch);
        if table
            .find(hash, |entry| words[at(*entry)] == scratch[..])
            .is_some()
        {
            return false;
        }
        let entry = (words.len() as u64) << LENGTH_BITS | scratch.len() as u64;
        words.extend_from_slice(scratch);
        table.insert_unique(hash, entry, |entry| self::hash(&words[at(*entry)]));
        true
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * 8 + self.table.capacity() * 9
    }
}

fn hash(words: &[u64]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    for word in words {
        hasher.write_u64(*word);
    }
    hasher.finish()
}

/// The maximum number of operations in a configuration: a window of [`LENGTH_BITS`] words.
pub(super) const MOST_OPERATIONS: usize = 1 << 25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_new_once() {
        let (mut linearized, mut seen) = (Linearized::new(200, 70), Configurations::default());
        assert!(seen.insert(&linearized, 0));
        assert!(!seen.insert(&linearized, 0));
        assert!(seen.insert(&linearized, 1));
        linearized.insert_unknown(69);
        assert!(seen.insert(&linearized, 0));
        linearized.remove_unknown(69);
        for index in 0..130 {
            linearized.insert_returned(index);
            assert!(seen.insert(&linearized, 0), "{index}");
        }
        for index in (0..130).rev() {
            assert!(!seen.insert(&linearized, 0), "{index}");
            linearized.remove_returned(index);
        }
        assert!(!seen.insert(&linearized, 0));
        assert_eq!(seen.len(), 133);
    }
}
