//! Why an operation has no result.

use crate::Kind;

/// Why an operation has no result. The caller knows where it stands in the expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    Types(Kind, Kind),
    Type(Kind),
    Zero,
    Overflow,
    Length,
}
