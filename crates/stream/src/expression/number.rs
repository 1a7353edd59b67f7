//! Numeric operands, and the common type of two of them.

use super::Binary;
use super::fault::Fault;
use super::side::Side;
use super::vector::Vector;
use crate::Value;

/// One numeric operand.
pub(super) enum Numbers<'v> {
    Float(Side<'v, f64>),
    Integer(Side<'v, i64>),
    Unsigned(Side<'v, u64>),
}

/// Two operands of a common type. `Wide` combines integers with unsigned integers; its result is an integer.
pub(super) enum Pair<'v> {
    Float(Side<'v, f64>, Side<'v, f64>),
    Integer(Side<'v, i64>, Side<'v, i64>),
    Unsigned(Side<'v, u64>, Side<'v, u64>),
    Wide(Side<'v, i128>, Side<'v, i128>),
}

impl<'v> Numbers<'v> {
    /// Returns the value as an operand, if it is a number.
    pub(super) fn one(value: &Value) -> Option<Numbers<'static>> {
        match *value {
            Value::Float(number) => Some(Numbers::Float(Side::One(number))),
            Value::Integer(number) => Some(Numbers::Integer(Side::One(number))),
            Value::Unsigned(number) => Some(Numbers::Unsigned(Side::One(number))),
            Value::Text(_) | Value::Boolean(_) => None,
        }
    }

    /// Returns an operand whose values are numbers of one type.
    pub(super) fn of(vector: &'v Vector<'_>) -> Option<Numbers<'v>> {
        match vector {
            Vector::Constant(value) => Numbers::one(value),
            Vector::Float(lane) => Some(Numbers::Float(lane.side())),
            Vector::Integer(lane) => Some(Numbers::Integer(lane.side())),
            Vector::Unsigned(lane) => Some(Numbers::Unsigned(lane.side())),
            Vector::Missing | Vector::Boolean(_) | Vector::Text(_) | Vector::Mixed(_) => None,
        }
    }

    fn floats(self) -> Side<'v, f64> {
        match self {
            Numbers::Float(side) => side,
            Numbers::Integer(side) => side.map(|number| number as f64),
            Numbers::Unsigned(side) => side.map(|number| number as f64),
        }
    }
}

impl<'v> Pair<'v> {
    /// Returns the operands in their common type, for calculations and comparisons.
    pub(super) fn of(left: Numbers<'v>, right: Numbers<'v>) -> Pair<'v> {
        use Numbers::{Float, Integer, Unsigned};
        match (left, right) {
            (Integer(left), Integer(right)) => Pair::Integer(left, right),
            (Unsigned(left), Unsigned(right)) => Pair::Unsigned(left, right),
            (left @ Float(_), right) | (left, right @ Float(_)) => {
                Pair::Float(left.floats(), right.floats())
            }
            (Integer(left), Unsigned(right)) => {
                Pair::Wide(left.map(i128::from), right.map(i128::from))
            }
            (Unsigned(left), Integer(right)) => {
                Pair::Wide(left.map(i128::from), right.map(i128::from))
            }
        }
    }

    /// Returns the operands in a common type for comparison. The literal `10` is an integer, but it is compared with a
    /// column of unsigned integers as an unsigned integer.
    pub(super) fn comparable(left: Numbers<'v>, right: Numbers<'v>) -> Pair<'v> {
        use Numbers::{Integer, Unsigned};
        match (left, right) {
            (Unsigned(left), Integer(Side::One(right))) if right >= 0 => {
                Pair::Unsigned(left, Side::One(right as u64))
            }
            (Integer(Side::One(left)), Unsigned(right)) if left >= 0 => {
                Pair::Unsigned(Side::One(left as u64), right)
            }
            (left, right) => Pair::of(left, right),
        }
    }
}

/// Types for which `+ - * / %` are defined.
pub(super) trait Arithmetic: Copy {
    type Result: Copy + Default;

    /// Applies one operation.
    fn apply(self, operator: Binary, right: Self) -> Result<Self::Result, Fault>;
}

impl Arithmetic for f64 {
    type Result = f64;

    #[inline(always)]
    fn apply(self, operator: Binary, right: f64) -> Result<f64, Fault> {
        Ok(match operator {
            Binary::Add => self + right,
            Binary::Subtract => self - right,
            Binary::Multiply => self * right,
            Binary::Divide => self / right,
            Binary::Remainder => self % right,
            _ => unreachable!("{operator:?} is not an arithmetic operator"),
        })
    }
}

macro_rules! integers {
    ($($number:ty => $result:ty;)*) => {
        $(
            impl Arithmetic for $number {
                type Result = $result;

                #[inline(always)]
                fn apply(self, operator: Binary, right: $number) -> Result<$result, Fault> {
                    let divides = matches!(operator, Binary::Divide | Binary::Remainder);
                    if divides && right == 0 {
                        return Err(Fault::Zero);
                    }
                    let result = match operator {
                        Binary::Add => self.checked_add(right),
                        Binary::Subtract => self.checked_sub(right),
                        Binary::Multiply => self.checked_mul(right),
                        Binary::Divide => self.checked_div(right),
                        // The remainder of the least integer and -1 is 0, although the quotient does not fit.
                        Binary::Remainder => Some(self.wrapping_rem(right)),
                        _ => unreachable!("{operator:?} is not an arithmetic operator"),
                    };
                    result
                        .and_then(|exact| <$result>::try_from(exact).ok())
                        .ok_or(Fault::Overflow)
                }
            }
        )*
    };
}

integers! {
    i64 => i64;
    u64 => u64;
    i128 => i64;
}
