//! Expressions over a point's tags and fields, evaluated for many rows at once.
//!
//! Each operator processes whole columns (Boncz, Zukowski, Nes: "MonetDB/X100: Hyper-Pipelining Query Execution", CIDR
//! 2005). So checks, for example of types, are made once per block and not per point. The results, including errors,
//! are the same as when each row is evaluated separately.
//!
//! **Missing values.** A key that a point does not have has no value. An operation on a missing value has no value.
//! There are two exceptions: `AND` is false if either side is false, and `OR` is true if either side is true. A `where`
//! keeps the points for which its expression is true.
//!
//! **Keys.** If a field and a tag have the same name, the key means the field.
//!
//! **Numbers.** A float with any number: both are treated as floats (integers beyond 2⁵³ are rounded), by IEEE 754, so
//! a division by zero gives infinity or NaN. Two integers give an integer, two unsigned integers an unsigned integer,
//! and a mix an integer. Integer results are exact: a result that does not fit its type is
//! [`ExpressionError::Overflow`], a division by zero [`ExpressionError::Zero`]. Division of integers rounds towards
//! zero; a remainder has the sign of the dividend. Integers and unsigned integers compare by value. The negative of an
//! unsigned integer is an integer.
//!
//! **Strings** compare with strings, by their bytes; `+` joins them. **Booleans** can be equal or not, but have no
//! order. Any other combination is [`ExpressionError::Types`], as soon as a row has both operands.
//!
//! **Time.** The key `time` is the point's time in nanoseconds, unless the point has a field or tag of this name.
//! `now()` is the time of the evaluation. Calendar functions use UTC.
//!
//! **Functions** have no value if an argument has none, except `isPresent`, and `if`, which has the value of the chosen
//! argument; see [`Function`].
//!
//! **Short circuits.** Rows that were not requested are not evaluated, and neither is the right side of `AND` and `OR`
//! if the left side decides: `n != 0 AND 10 / n > 1` never divides by zero.

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
pub(crate) use time::written_time;

use crate::{Kind, Value};
use std::sync::Arc;

/// An expression.
///
/// Its `Display` is text that the [language](crate::language) parses to an equal expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number, string or boolean.
    Literal(Value),
    /// A duration in nanoseconds: an integer.
    Duration(i64),
    /// A field or tag of the point.
    Key(Arc<str>),
    /// An operator with one operand.
    Unary(Unary, Box<Expression>),
    /// An operator with two operands.
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `=~`, or `!~` if the last field is false.
    Match(Box<Expression>, Pattern, bool),
    /// A function with its arguments.
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

/// An error of an evaluation, which stops the task.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExpressionError {
    /// An operator does not accept operands of these two types.
    #[error("{left} {operator} {right}: there is no such operation, in `{expression}`")]
    Types {
        /// The text of the operator.
        operator: &'static str,
        /// The type on its left.
        left: Kind,
        /// The type on its right.
        right: Kind,
        /// The text of the failed expression.
        expression: String,
    },
    /// An operand has a type that its operator does not accept.
    #[error("{operator} {operand}: there is no such operation, in `{expression}`")]
    Type {
        /// The text of the operator.
        operator: &'static str,
        /// The type of its operand.
        operand: Kind,
        /// The text of the failed expression.
        expression: String,
    },
    /// A condition, or an operand of `AND`, `OR` or `NOT`, is not a boolean.
    #[error("`{expression}` is of type {kind}, and a condition must be a boolean")]
    Condition {
        /// The type of the condition.
        kind: Kind,
        /// The text of the condition.
        expression: String,
    },
    /// An integer is divided by zero.
    #[error("division by zero in `{expression}`")]
    Zero {
        /// The text of the division.
        expression: String,
    },
    /// A function does not accept an argument.
    #[error("{function} does not take {argument}, in `{expression}`")]
    Argument {
        /// The name of the function.
        function: &'static str,
        /// The argument that the function does not accept.
        argument: String,
        /// The text of the call.
        expression: String,
    },
    /// A string is too long.
    #[error("the string would be longer than a mebibyte in `{expression}`")]
    Length {
        /// The text of the failed expression.
        expression: String,
    },
    /// The result of an integer operation does not fit into 64 bits.
    #[error("the result does not fit into 64 bits in `{expression}`")]
    Overflow {
        /// The text of the failed expression.
        expression: String,
    },
}

/// Returns a number as a float.
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
