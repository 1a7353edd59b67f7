//! Expressions written in Rust: `key("value").gt(10.0).and(key("host").eq("a"))`.

use super::{Binary, Expression, Unary};
use crate::Value;
use std::ops::{Add, Div, Mul, Neg, Not, Rem, Sub};
use std::sync::Arc;
use std::time::Duration;

/// A field or tag.
///
/// ```
/// use corsair_stream::expression::key;
///
/// let hot = (key("value") * 2).gt(10.5).and(!key("host").eq("a"));
/// assert_eq!(hot.to_string(), "value * 2 > 10.5 AND NOT host = 'a'");
/// ```
pub fn key(name: impl Into<Arc<str>>) -> Expression {
    Expression::Key(name.into())
}

macro_rules! operators {
    ($($(#[$doc:meta])* $method:ident $operator:ident;)*) => {
        /// Rust's operators `+ - * / %`, `-` and `!` build expressions.
        impl Expression {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $method(self, other: impl Into<Expression>) -> Expression {
                    self.with(Binary::$operator, other)
                }
            )*
        }
    };
}

operators! {
    /// True if the operands are equal.
    eq Equal;
    /// True if the operands differ.
    ne NotEqual;
    /// True if the first operand is less.
    lt Less;
    /// True if the first operand is less or equal.
    le LessOrEqual;
    /// True if the first operand is greater.
    gt Greater;
    /// True if the first operand is greater or equal.
    ge GreaterOrEqual;
    /// True if both operands are true.
    and And;
    /// True if one of the operands is true.
    or Or;
}

impl Expression {
    fn with(self, operator: Binary, right: impl Into<Expression>) -> Expression {
        Expression::Binary(operator, Box::new(self), Box::new(right.into()))
    }
}

macro_rules! rust_operators {
    ($($operator:ident $method:ident $binary:ident;)*) => {
        $(
            impl<T: Into<Expression>> $operator<T> for Expression {
                type Output = Expression;

                fn $method(self, other: T) -> Expression {
                    self.with(Binary::$binary, other)
                }
            }
        )*
    };
}

rust_operators! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
    Rem rem Remainder;
}

impl Neg for Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        Expression::Unary(Unary::Minus, Box::new(self))
    }
}

impl Not for Expression {
    type Output = Expression;

    fn not(self) -> Expression {
        Expression::Unary(Unary::Not, Box::new(self))
    }
}

impl From<Value> for Expression {
    fn from(value: Value) -> Expression {
        Expression::Literal(value)
    }
}

macro_rules! literals {
    ($($from:ty => $variant:ident;)*) => {
        $(
            impl From<$from> for Expression {
                fn from(value: $from) -> Expression {
                    Expression::Literal(Value::$variant(value.into()))
                }
            }
        )*
    };
}

literals! {
    f64 => Float;
    i32 => Integer;
    i64 => Integer;
    u64 => Unsigned;
    bool => Boolean;
    &str => Text;
    String => Text;
    Arc<str> => Text;
}

impl From<Duration> for Expression {
    /// Converts a duration. A duration of more than 292 years, the limit of 64 bits of nanoseconds,
    /// becomes that limit.
    fn from(duration: Duration) -> Expression {
        Expression::Duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}
