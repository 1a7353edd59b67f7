//! The operators on one pair of values.

use super::Binary;
use super::fault::Fault;
use super::number::{Arithmetic, Numbers, Pair};
use super::text::joined;
use crate::Value;

/// Compares two values.
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
    Ok(operator.holds(order))
}

/// Computes `+ - * / %` of two values.
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

/// Negates a value.
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

fn pair(left: &Value, right: &Value) -> Result<Pair<'static>, Fault> {
    match (Numbers::one(left), Numbers::one(right)) {
        (Some(one), Some(other)) => Ok(Pair::of(one, other)),
        _ => Err(Fault::Types(left.kind(), right.kind())),
    }
}
