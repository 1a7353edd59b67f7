//! The hash of `#[derive(Message)]`.

use super::random::mix;
use std::hash::Hasher;

/// A hasher for [`Message::fingerprint`](crate::Message::fingerprint). Its result is equal in every process and on
/// every machine, provided that the type's [`Hash`] implementation is deterministic.
///
/// The fingerprint of a single number is the number itself, so derived and handwritten implementations for simple
/// messages give the same digest.
///
/// ```
/// use corsair::Fingerprint;
/// use std::hash::{Hash, Hasher};
///
/// let mut fingerprint = Fingerprint::new();
/// 7_u32.hash(&mut fingerprint);
/// assert_eq!(fingerprint.finish(), 7);
/// "seven".hash(&mut fingerprint);
/// assert_ne!(fingerprint.finish(), 7);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Creates the empty fingerprint, which is 0.
    #[inline]
    pub const fn new() -> Fingerprint {
        Fingerprint(0)
    }
}

/// Implements the methods for numbers, which are extended to 64 bits, so that the width of `usize` does not matter.
macro_rules! write_numbers {
    ($($name:ident: $type:ty,)*) => {
        $(
            #[inline]
            fn $name(&mut self, number: $type) {
                self.write_u64(number as u64);
            }
        )*
    };
}

impl Hasher for Fingerprint {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        // `mix` is a bijection that keeps 0.
        self.0 = mix(self.0) ^ number;
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            // At most seven bytes; the eighth contains their number, so that trailing zeros differ from absent bytes.
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            last[7] = rest.len() as u8;
            self.write_u64(u64::from_le_bytes(last));
        }
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64((number >> 64) as u64);
        self.write_u64(number as u64);
    }

    fn write_i128(&mut self, number: i128) {
        self.write_u128(number as u128);
    }

    write_numbers! {
        write_u8: u8, write_u16: u16, write_u32: u32, write_usize: usize,
        write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_isize: isize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    fn of(value: impl Hash) -> u64 {
        let mut fingerprint = Fingerprint::new();
        value.hash(&mut fingerprint);
        fingerprint.finish()
    }

    #[test]
    fn a_single_number_is_its_own_fingerprint() {
        assert_eq!(of(7_u8), 7);
        assert_eq!(of(7_usize), 7);
        assert_eq!(of(u32::MAX), u64::from(u32::MAX));
        assert_eq!(of(-1_i32), u64::MAX);
        assert_eq!(of(std::num::NonZeroU16::MAX), u64::from(u16::MAX));
        assert_eq!(of(()), 0);
    }

    #[test]
    fn order_length_and_place_make_a_difference() {
        let all = [
            of((1, 2)),
            of((2, 1)),
            of((0, 3)),
            of("a"),
            of("a\0"),
            of("ab"),
            of("aaaaaaaa"),
            of("aaaaaaaaa"),
            of(("a", "b")),
            of(("ab", "")),
            of([0_u8; 3]),
            of([0_u8; 4]),
            of(vec![0_u8; 9]),
            of(Some(0)),
            of(None::<u32>),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "number {index} is not new");
        }
    }
}
