//! Faults of operators.

use crate::Kind;

/// The reason why an operation has no result. The caller adds its position in the expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    Types(Kind, Kind),
    Type(Kind),
    Zero,
    Overflow,
    Length,
}
