//! Hash tables with internal numbers as keys: addresses and tokens. Nobody can choose colliding keys from
//! outside, so one multiplication is a sufficient hash.

use crate::contract::config::fold;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A hash table whose keys are numbers.
pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A set of numbers.
pub(super) type Numbers<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// A hasher for a single number.
#[derive(Clone, Copy, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = fold(
            self.0 ^ number ^ 0x9E37_79B9_7F4A_7C15,
            0xD1B5_4A32_D192_ED03,
        );
    }
}
