//! Faults of operations.

use crate::Kind;

/// Why an operation has no result. The caller knows its position in the expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    Types(Kind, Kind),
    Type(Kind),
    Zero,
    Overflow,
    Length,
}
