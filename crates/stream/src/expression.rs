//! Expressions over a point's tags and fields, evaluated for many rows at once.
//!
//! Each operator runs over whole columns (Boncz, Zukowski, Nes: "MonetDB/X100: Hyper-Pipelining Query
//! Execution", CIDR 2005), so that what is decided per operator, such as types, is decided once per
//! block and not per point. What comes out, errors included, is what evaluating row by row gives.
//!
//! **What is missing.** A key that a point does not have has no value; an operation on no value has
//! none, except that `false AND …` is false and `true OR …` is true, on either side. A `where` keeps
//! the points for which its expression is true.
//!
//! **Which key.** A field and a tag of the same name: the field.
//!
//! **Numbers.** A float with any number: both as floats (an integer beyond 2⁵³ is rounded), by IEEE
//! 754, so that a division by zero is infinite or not a number. Integer with integer is an integer,
//! unsigned with unsigned unsigned, and either with the other an integer. These are exact: a result
//! that its type cannot hold is [`ExpressionError::Overflow`], a division by zero
//! [`ExpressionError::Zero`]. Division of integers rounds towards zero; a remainder has the sign of
//! the dividend. Integers and unsigned integers compare by their values. The negative of an unsigned
//! integer is an integer.
//!
//! **Strings** compare with strings, by their bytes; `+` joins them. **Booleans** are equal or not,
//! and have no order. Anything else is [`ExpressionError::Types`], as soon as a row has both operands.
//!
//! **Time.** The key `time` is the point's time in nanoseconds, unless it has a field or tag of this
//! name. `now()` is the time at which the expression is evaluated. Calendars are UTC's.
//!
//! **Functions** have no value where an argument has none, but for `isPresent`, and for `if`, which
//! has that of the side it takes; see [`Function`].
//!
//! **What is not evaluated.** Rows that were not asked for, and the right side of `AND` and `OR`
//! where the left side decides: `n != 0 AND 10 / n > 1` never divides by zero.

mod arithmetic;
mod binary;
mod build;
mod call;
mod compare;
mod display;
mod evaluate;
mod fault;
mod keys;
mod number;
mod pattern;
mod scalar;
mod select;
mod side;
mod text;
mod time;
mod truth;
mod vector;

pub use build::key;
pub use call::Function;
pub(crate) use call::written;
pub(crate) use display::{Level, UNITS, is_reserved, is_word_part, is_word_start};
pub(crate) use display::{write_duration, write_key, write_quoted};
pub use pattern::{Pattern, PatternError};

use crate::{Kind, Value};
use std::sync::Arc;

/// An expression, as it was written.
///
/// Its `Display` is text that the [language](crate::language) reads as an equal expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number, string or boolean.
    Literal(Value),
    /// A duration in nanoseconds: an integer.
    Duration(i64),
    /// A field or tag of the point.
    Key(Arc<str>),
    /// One operand.
    Unary(Unary, Box<Expression>),
    /// Two operands.
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `=~`, or `!~` if the last is false.
    Match(Box<Expression>, Pattern, bool),
    /// A function of its arguments.
    Call(Function, Vec<Expression>),
}

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Minus,
    /// `NOT`, `!`
    Not,
}

/// Operators of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `+`; strings are joined.
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `=`, `==`
    Equal,
    /// `!=`, `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `AND`, `&&`
    And,
    /// `OR`, `||`
    Or,
}

/// Why an expression has no result; the task is stopped with this reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExpressionError {
    /// Operands that do not go together.
    #[error("{left} {operator} {right}: there is no such operation, in `{expression}`")]
    Types {
        /// The operator.
        operator: &'static str,
        /// The type on its left.
        left: Kind,
        /// The type on its right.
        right: Kind,
        /// The expression.
        expression: String,
    },
    /// An operand that does not go with its operator.
    #[error("{operator} {operand}: there is no such operation, in `{expression}`")]
    Type {
        /// The operator.
        operator: &'static str,
        /// The type of its operand.
        operand: Kind,
        /// The expression.
        expression: String,
    },
    /// A condition, or an operand of `AND`, `OR` or `NOT`, that is not one.
    #[error("`{expression}` is of type {kind}, and a condition must be a boolean")]
    Condition {
        /// The type.
        kind: Kind,
        /// The expression.
        expression: String,
    },
    /// Division of integers by zero.
    #[error("division by zero in `{expression}`")]
    Zero {
        /// The expression.
        expression: String,
    },
    /// An argument that a function does not take.
    #[error("{function} does not take {argument}, in `{expression}`")]
    Argument {
        /// The function.
        function: &'static str,
        /// The argument.
        argument: String,
        /// The expression.
        expression: String,
    },
    /// A string that is too long to be made.
    #[error("the string would be longer than a mebibyte in `{expression}`")]
    Length {
        /// The expression.
        expression: String,
    },
    /// A result of integers beyond 64 bits.
    #[error("the result does not fit into 64 bits in `{expression}`")]
    Overflow {
        /// The expression.
        expression: String,
    },
}

/// A number as a float.
pub(crate) fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Integer(number) => Some(*number as f64),
        Value::Unsigned(number) => Some(*number as f64),
        Value::Text(_) | Value::Boolean(_) => None,
    }
}

impl Unary {
    /// Returns the symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Unary::Minus => "-",
            Unary::Not => "NOT",
        }
    }
}

impl Binary {
    /// Returns the symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
            Binary::Equal => "=",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessOrEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterOrEqual => ">=",
            Binary::And => "AND",
            Binary::Or => "OR",
        }
    }
}
