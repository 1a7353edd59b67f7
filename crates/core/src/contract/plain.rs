//! Plain data: types whose values all have the same size when written as bytes.

use super::{Addr, SpanId, Time, Token};
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64,
};
use std::time::Duration;

/// A type whose values are all written as the same number of bytes, without a serializer.
///
/// Messages of plain data travel between the processes of a run in loops over whole batches
/// ([`Kinds::plain`](crate::Kinds::plain)). `#[derive(Plain)]` implements the trait for structs and enums of plain
/// fields: numbers, `bool`, times, addresses, and options and arrays of these. An enum is written as one byte for the
/// variant and the size of its largest variant.
///
/// ```
/// use corsair::{Addr, Plain};
///
/// #[derive(Plain, PartialEq, Debug)]
/// enum Word {
///     Hello { name: u32 },
///     Meet(Addr, bool),
/// }
///
/// assert_eq!(Word::SIZE, 1 + 4 + 1);
/// let mut bytes = [0; Word::SIZE];
/// Word::Hello { name: 258 }.write_to(&mut bytes);
/// assert_eq!(bytes, [0, 2, 1, 0, 0, 0]);
/// assert_eq!(Word::read_from(&bytes), Some(Word::Hello { name: 258 }));
/// assert_eq!(Word::read_from(&[2; 6]), None, "there is no third variant");
/// ```
pub trait Plain: Sized {
    /// The size of a value in bytes.
    const SIZE: usize;

    /// Writes the value to [`Plain::SIZE`] bytes.
    ///
    /// # Panics
    /// If `to` has fewer bytes than that.
    fn write_to(&self, to: &mut [u8]);

    /// Reads a value that [`Plain::write_to`] has written; `None` if the bytes are not a value of this type.
    fn read_from(from: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Plain for $number {
            const SIZE: usize = size_of::<$number>();

            #[inline(always)]
            fn write_to(&self, to: &mut [u8]) {
                to[..Self::SIZE].copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn read_from(from: &[u8]) -> Option<Self> {
                from.first_chunk().map(|bytes| Self::from_le_bytes(*bytes))
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

/// Implements `Plain` by converting to another plain type.
macro_rules! written_as {
    ($($this:ty: $other:ty, $write:expr, $read:expr;)*) => {$(
        impl Plain for $this {
            const SIZE: usize = <$other>::SIZE;

            #[inline(always)]
            fn write_to(&self, to: &mut [u8]) {
                let write: fn(&Self) -> $other = $write;
                write(self).write_to(to);
            }

            #[inline(always)]
            fn read_from(from: &[u8]) -> Option<Self> {
                let read: fn($other) -> Option<Self> = $read;
                <$other>::read_from(from).and_then(read)
            }
        }
    )*};
}

written_as! {
    NonZeroU8: u8, |it| it.get(), NonZeroU8::new;
    NonZeroU16: u16, |it| it.get(), NonZeroU16::new;
    NonZeroU32: u32, |it| it.get(), NonZeroU32::new;
    NonZeroU64: u64, |it| it.get(), NonZeroU64::new;
    NonZeroI8: i8, |it| it.get(), NonZeroI8::new;
    NonZeroI16: i16, |it| it.get(), NonZeroI16::new;
    NonZeroI32: i32, |it| it.get(), NonZeroI32::new;
    NonZeroI64: i64, |it| it.get(), NonZeroI64::new;
    bool: u8, |it| u8::from(*it), |byte| (byte < 2).then_some(byte == 1);
    char: u32, |it| u32::from(*it), char::from_u32;
    Time: u64, |it| it.as_nanos(), |nanos| Some(Time::from_nanos(nanos));
    Addr: u32, |it| it.as_u32(), |number| Some(Addr::from_u32(number));
    SpanId: u64, |it| it.0, |number| Some(SpanId(number));
    Token: u32, |it| it.0, |number| Some(Token(number));
}

impl Plain for () {
    const SIZE: usize = 0;

    fn write_to(&self, _: &mut [u8]) {}

    fn read_from(_: &[u8]) -> Option<()> {
        Some(())
    }
}

impl Plain for Duration {
    const SIZE: usize = 12;

    #[inline]
    fn write_to(&self, to: &mut [u8]) {
        self.as_secs().write_to(to);
        self.subsec_nanos().write_to(&mut to[8..]);
    }

    #[inline]
    fn read_from(from: &[u8]) -> Option<Duration> {
        let (seconds, nanos) = (u64::read_from(from)?, u32::read_from(from.get(8..)?)?);
        (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
    }
}

/// An option is written as a byte, which is 1 if there is a value, followed by the value.
impl<T: Plain> Plain for Option<T> {
    const SIZE: usize = 1 + T::SIZE;

    #[inline]
    fn write_to(&self, to: &mut [u8]) {
        self.is_some().write_to(to);
        match self {
            Some(value) => value.write_to(&mut to[1..]),
            None => to[1..Self::SIZE].fill(0),
        }
    }

    #[inline]
    fn read_from(from: &[u8]) -> Option<Option<T>> {
        match bool::read_from(from)? {
            true => T::read_from(from.get(1..)?).map(Some),
            false => Some(None),
        }
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    const SIZE: usize = N * T::SIZE;

    #[inline]
    fn write_to(&self, to: &mut [u8]) {
        for (index, value) in self.iter().enumerate() {
            value.write_to(&mut to[index * T::SIZE..]);
        }
    }

    #[inline]
    fn read_from(from: &[u8]) -> Option<[T; N]> {
        let mut read = [const { None }; N];
        for (index, place) in read.iter_mut().enumerate() {
            *place = Some(T::read_from(from.get(index * T::SIZE..)?)?);
        }
        // Every element was read.
        Some(read.map(|value| value.expect("it was read")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Plain;

    #[derive(Plain, Clone, Copy, PartialEq, Debug)]
    struct Pair<T>(T, Option<NonZeroU16>);

    #[derive(Plain, Clone, Copy, PartialEq, Debug)]
    enum Word {
        Nothing,
        Number(u64),
        Many { pairs: [Pair<u8>; 3], at: Duration },
        Who(Addr, Time),
    }

    /// Checks that values survive writing and reading, and that a slice that is one byte too short gives
    /// `None`.
    fn goes_and_comes<T: Plain + PartialEq + std::fmt::Debug>(value: T) {
        let (mut zeroes, mut ones) = (vec![0; T::SIZE], vec![0xFF; T::SIZE + 1]);
        value.write_to(&mut zeroes);
        value.write_to(&mut ones);
        assert_eq!(
            zeroes,
            ones[..T::SIZE],
            "{value:?} leaves what was there before"
        );
        assert_eq!(ones[T::SIZE], 0xFF, "{value:?} writes more than its bytes");
        assert_eq!(T::read_from(&zeroes).as_ref(), Some(&value));
        if T::SIZE > 0 && zeroes[0] != 0 {
            let short = &zeroes[..T::SIZE - 1];
            // A variant that does not use the last byte can be read without it.
            let read = T::read_from(short);
            assert!(read.is_none() || read == Some(value), "{read:?}");
        }
    }

    // Guarantee: cluster-1.
    #[test]
    fn values_come_out_as_they_went_in_and_leave_no_byte_as_it_was() {
        goes_and_comes(Word::Nothing);
        goes_and_comes(Word::Number(u64::MAX - 3));
        let pairs = [Pair(1, None), Pair(2, NonZeroU16::new(700)), Pair(3, None)];
        let at = Duration::new(5, 999_999_999);
        goes_and_comes(Word::Many { pairs, at });
        goes_and_comes(Word::Who(Addr::NONE, Time::from_nanos(77)));
        goes_and_comes(Some('ß'));
        goes_and_comes((-1.5_f64, 0).0);
        goes_and_comes(Pair(-3_i64, NonZeroU16::new(1)));
        assert_eq!(Word::SIZE, 1 + 3 * (1 + 1 + 2) + 12);
    }

    #[test]
    fn bytes_that_are_no_value_are_none() {
        assert_eq!(bool::read_from(&[2]), None);
        assert_eq!(NonZeroU16::read_from(&[0, 0]), None);
        assert_eq!(char::read_from(&[0, 0xD8, 0, 0]), None);
        assert_eq!(Duration::read_from(&[0xFF; 12]), None);
        assert_eq!(Option::<u8>::read_from(&[2, 0]), None);
        assert_eq!(<[u32; 2]>::read_from(&[0; 7]), None);
        assert_eq!(Word::read_from(&[4; Word::SIZE]), None);
        assert_eq!(Word::read_from(&[]), None);
    }
}
