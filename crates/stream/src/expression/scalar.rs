//! The operators on one pair of values.

use super::Binary;
use super::fault::Fault;
use super::number::{Arithmetic, Numbers, Pair};
use crate::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// The maximum bytes of a string that an expression makes: otherwise a few operators could make a gigabyte
/// from a point.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// True if a comparison holds. Values without an order, such as NaN, are unequal.
#[inline]
pub(super) fn holds(operator: Binary, order: Option<Ordering>) -> bool {
    match operator {
        Binary::Equal => order == Some(Ordering::Equal),
        Binary::NotEqual => order != Some(Ordering::Equal),
        Binary::Less => order == Some(Ordering::Less),
        Binary::LessOrEqual => order.is_some_and(Ordering::is_le),
        Binary::Greater => order == Some(Ordering::Greater),
        Binary::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        _ => unreachable!("{operator:?} is not a comparison"),
    }
}

/// A comparison of two values.
pub(super) fn compare(operator: Binary, left: &Value, right: &Value) -> Result<bool, Fault> {
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Boolean(left), Value::Boolean(right)) if operator.is_equality() => {
            Some(left.cmp(right))
        }
        _ => match pair(left, right)? {
            Pair::Float(left, right) => left.first().partial_cmp(&right.first()),
            Pair::Integer(left, right) => left.first().partial_cmp(&right.first()),
            Pair::Unsigned(left, right) => left.first().partial_cmp(&right.first()),
            Pair::Wide(left, right) => left.first().partial_cmp(&right.first()),
        },
    };
    Ok(holds(operator, order))
}

/// `+ - * / %` of two values.
pub(super) fn arithmetic(operator: Binary, left: &Value, right: &Value) -> Result<Value, Fault> {
    if let (Value::Text(left), Value::Text(right)) = (left, right)
        && operator == Binary::Add
    {
        return joined(left, right).map(Value::Text);
    }
    Ok(match pair(left, right)? {
        Pair::Float(left, right) => Value::Float(left.first().apply(operator, right.first())?),
        Pair::Integer(left, right) => Value::Integer(left.first().apply(operator, right.first())?),
        Pair::Unsigned(left, right) => {
            Value::Unsigned(left.first().apply(operator, right.first())?)
        }
        Pair::Wide(left, right) => Value::Integer(left.first().apply(operator, right.first())?),
    })
}

/// `-` of a value.
pub(super) fn minus(value: &Value) -> Result<Value, Fault> {
    match value {
        Value::Float(number) => Ok(Value::Float(-number)),
        Value::Integer(number) => minus_integer(*number).map(Value::Integer),
        Value::Unsigned(number) => minus_unsigned(*number).map(Value::Integer),
        Value::Text(_) | Value::Boolean(_) => Err(Fault::Type(value.kind())),
    }
}

pub(super) fn minus_integer(number: i64) -> Result<i64, Fault> {
    number.checked_neg().ok_or(Fault::Overflow)
}

pub(super) fn minus_unsigned(number: u64) -> Result<i64, Fault> {
    0i64.checked_sub_unsigned(number).ok_or(Fault::Overflow)
}

/// Returns both strings joined.
pub(super) fn joined(left: &str, right: &str) -> Result<Arc<str>, Fault> {
    match left.len() + right.len() <= MAX_TEXT {
        true => Ok([left, right].concat().into()),
        false => Err(Fault::Length),
    }
}

fn pair(left: &Value, right: &Value) -> Result<Pair<'static>, Fault> {
    match (Numbers::one(left), Numbers::one(right)) {
        (Some(one), Some(other)) => Ok(Pair::of(one, other)),
        _ => Err(Fault::Types(left.kind(), right.kind())),
    }
}

impl Binary {
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Binary::Equal | Binary::NotEqual)
    }
}
