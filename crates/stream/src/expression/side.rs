//! Numbers of one type, of one or of many rows.

use std::borrow::Cow;

/// Numeric values of one type: one value for all rows, or one per row.
pub(super) enum Side<'v, T: Copy> {
    One(T),
    Each(Cow<'v, [T]>),
}

impl<'v, T: Copy> Side<'v, T> {
    pub(super) fn map<U: Copy>(self, convert: impl Fn(T) -> U) -> Side<'v, U> {
        match self {
            Side::One(value) => Side::One(convert(value)),
            Side::Each(values) => Side::Each(values.iter().copied().map(convert).collect()),
        }
    }

    /// Returns the value of the first row.
    ///
    /// # Panics
    /// If the row does not exist.
    pub(super) fn first(&self) -> T {
        match self {
            Side::One(value) => *value,
            Side::Each(values) => values[0],
        }
    }
}
