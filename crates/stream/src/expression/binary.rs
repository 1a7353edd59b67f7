//! Properties of the operators with two sides.

use super::Binary;
use std::cmp::Ordering;

impl Binary {
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Binary::Equal | Binary::NotEqual)
    }

    /// True if a comparison holds. Values without an order, such as NaN, are unequal.
    #[inline]
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Binary::Equal => order == Some(Ordering::Equal),
            Binary::NotEqual => order != Some(Ordering::Equal),
            Binary::Less => order == Some(Ordering::Less),
            Binary::LessOrEqual => order.is_some_and(Ordering::is_le),
            Binary::Greater => order == Some(Ordering::Greater),
            Binary::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            _ => unreachable!("{self:?} is not a comparison"),
        }
    }
}
