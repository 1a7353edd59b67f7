//! Addresses of actors, the same on every executor.

use std::fmt;
use std::ops::Range;

/// The address of an actor within one run.
///
/// An address takes four bytes, so that messages and states may contain many addresses. Addresses are never reused
/// within a run: a message to an actor that has ended becomes a dead letter and never reaches another actor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Addr(pub(crate) u32);

impl Addr {
    /// The address of no actor: the parent of the root, and the default for an unknown address.
    ///
    /// A message to this address is a dead letter.
    pub const NONE: Addr = Addr(u32::MAX);

    /// Returns the address as a number, for tables and logs.
    #[inline]
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// Returns the address with this number, the inverse of [`Addr::as_u32`].
    #[inline]
    pub const fn from_u32(number: u32) -> Addr {
        Addr(number)
    }
}

impl Default for Addr {
    fn default() -> Self {
        Addr::NONE
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Addr::NONE {
            f.write_str("nobody")
        } else {
            write!(f, "#{}", self.0)
        }
    }
}

/// The addresses of actors that were spawned together: consecutive numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "UncheckedRange"))]
pub struct AddrRange {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// A deserialized range that was not checked yet and may be invalid.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(rename = "AddrRange")]
struct UncheckedRange {
    first: u32,
    count: u32,
}

#[cfg(feature = "serde")]
impl TryFrom<UncheckedRange> for AddrRange {
    type Error = &'static str;

    fn try_from(
        UncheckedRange { first, count }: UncheckedRange,
    ) -> Result<AddrRange, &'static str> {
        match first.checked_add(count) {
            Some(_) => Ok(AddrRange { first, count }),
            None => Err("a range of addresses goes beyond the last one"),
        }
    }
}

/// Panics with the message that the range has no actor with this index. The function is separate and cold, so that
/// callers on the hot path stay small.
#[cold]
#[inline(never)]
fn beyond(index: u32, count: u32) -> ! {
    panic!("actor {index} of {count}")
}

impl AddrRange {
    /// Creates the range of `count` addresses from `first` on.
    ///
    /// # Panics
    /// If the range would reach [`Addr::NONE`], which is the address of no actor.
    pub const fn new(first: Addr, count: u32) -> AddrRange {
        assert!(
            first.0.checked_add(count).is_some(),
            "a range of addresses goes beyond the last one"
        );
        AddrRange {
            first: first.0,
            count,
        }
    }

    /// Returns the number of actors.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// True if the range is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the address of the actor that was spawned with this index.
    ///
    /// # Panics
    /// If `index` is not below [`AddrRange::len`].
    #[inline]
    pub fn get(&self, index: u32) -> Addr {
        if index >= self.count {
            beyond(index, self.count);
        }
        Addr(self.first + index)
    }

    /// Returns the address of the actor with this index without a check, for loops. The index must be below
    /// [`AddrRange::len`].
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Addr {
        debug_assert!(index < self.count);
        Addr(self.first.wrapping_add(index))
    }

    /// Returns the part of the range that contains the actors with these indices.
    ///
    /// # Panics
    /// If the indices are not in order, or the last one is beyond [`AddrRange::len`].
    ///
    /// ```
    /// # use corsair::{Addr, AddrRange};
    /// let all = AddrRange::new(Addr::from_u32(100), 10);
    /// assert_eq!(all.part(3..5).iter().collect::<Vec<_>>(), [Addr::from_u32(103), Addr::from_u32(104)]);
    /// ```
    pub fn part(&self, indices: Range<u32>) -> AddrRange {
        let Range { start, end } = indices;
        assert!(
            start <= end && end <= self.count,
            "actors {start} to {end} of {}",
            self.count
        );
        AddrRange {
            first: self.first.wrapping_add(start),
            count: end - start,
        }
    }

    /// Returns the index with which the actor at `addr` was spawned, if it belongs to this range.
    #[inline]
    pub fn index_of(&self, addr: Addr) -> Option<u32> {
        let index = addr.0.wrapping_sub(self.first);
        (index < self.count).then_some(index)
    }

    /// Iterates over all addresses in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Addr> + Clone + use<> {
        (self.first..self.first + self.count).map(Addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_before_nobodys_address() {
        let last = AddrRange::new(Addr(u32::MAX - 3), 3);
        assert_eq!(last.iter().count(), 3);
        assert_eq!(
            (last.get(2), last.index_of(Addr::NONE)),
            (Addr(u32::MAX - 1), None)
        );
        assert_eq!(AddrRange::new(Addr::NONE, 0).iter().count(), 0);
        for (first, count) in [(u32::MAX - 2, 3), (u32::MAX, 1), (1, u32::MAX)] {
            let beyond = std::panic::catch_unwind(|| AddrRange::new(Addr(first), count));
            assert!(beyond.is_err(), "{first} and {count} more");
        }
    }

    #[test]
    #[cfg(feature = "serde")]
    fn a_range_that_is_none_is_not_read() {
        let range = AddrRange::new(Addr(7), 5);
        let text = serde_json::to_string(&range).unwrap();
        assert_eq!(serde_json::from_str::<AddrRange>(&text).unwrap(), range);
        let beyond = r#"{"first": 4294967290, "count": 9}"#;
        assert!(serde_json::from_str::<AddrRange>(beyond).is_err());
    }
}
