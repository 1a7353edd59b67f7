//! Expressions over a point's tags and fields, evaluated for many rows at once.
//!
//! Each operator runs over whole columns (Boncz, Zukowski, Nes: "MonetDB/X100: Hyper-Pipelining Query
//! Execution", CIDR 2005), so that what is decided per operator, such as types, is decided once per
//! block and not per point.
//!
//! **What is missing.** A key that a point does not have has no value; an operation on no value has
//! none, except that `false AND …` is false and `true OR …` is true. A `where` keeps the points for
//! which its expression is true.

use crate::{Kind, Value};
use std::sync::Arc;

/// An expression, as it was written.
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

/// Why an expression has no result: the task that asked for it is stopped with this reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExpressionError {
    /// Operands that do not go together.
    #[error("{left} {operator} {right}: there is no such operation, in `{expression}`")]
    Types {
        /// The operator, as it is written.
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
        /// The operator, as it is written.
        operator: &'static str,
        /// The type of its operand.
        operand: Kind,
        /// The expression.
        expression: String,
    },
    /// A condition that is not one.
    #[error("`{expression}` is a {kind}, and a condition must be a boolean")]
    Condition {
        /// Its type.
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
    /// A result of integers beyond 64 bits.
    #[error("the result does not fit into 64 bits in `{expression}`")]
    Overflow {
        /// The expression.
        expression: String,
    },
}
