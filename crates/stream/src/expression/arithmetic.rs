//! Arithmetic on many rows.

use super::Binary;
use super::compare::{cell_by_cell, mismatch};
use super::fault::Fault;
use super::number::{Arithmetic, Numbers, Pair};
use super::scalar;
use super::side::Side;
use super::vector::{Lane, Vector};
use crate::Value;
use std::borrow::Cow;

/// Computes `+ - * / %` for the rows of two operands.
pub(super) fn arithmetic(
    operator: Binary,
    left: &Vector<'_>,
    right: &Vector<'_>,
) -> Result<Vector<'static>, Fault> {
    match (left, right) {
        (Vector::Missing, _) | (_, Vector::Missing) => return Ok(Vector::Missing),
        (Vector::Constant(left), Vector::Constant(right)) => {
            return scalar::arithmetic(operator, left, right).map(Vector::Constant);
        }
        (Vector::Mixed(_), _) | (_, Vector::Mixed(_)) => {
            return cell_by_cell(left, right, |left, right| {
                scalar::arithmetic(operator, left, right)
            });
        }
        _ => {}
    }
    if operator == Binary::Add {
        match (left, right) {
            (Vector::Text(left), Vector::Text(right)) => {
                return left.join(right).map(Vector::Text);
            }
            (Vector::Text(texts), Vector::Constant(Value::Text(one))) => {
                return texts.join_one(one, false).map(Vector::Text);
            }
            (Vector::Constant(Value::Text(one)), Vector::Text(texts)) => {
                return texts.join_one(one, true).map(Vector::Text);
            }
            _ => {}
        }
    }
    let (Some(one), Some(other)) = (Numbers::of(left), Numbers::of(right)) else {
        return mismatch(left, right);
    };
    let present = left.both_present(right);
    match Pair::of(one, other) {
        Pair::Float(left, right) => lane(operator, &left, &right, present).map(Vector::Float),
        Pair::Integer(left, right) => lane(operator, &left, &right, present).map(Vector::Integer),
        Pair::Unsigned(left, right) => lane(operator, &left, &right, present).map(Vector::Unsigned),
        Pair::Wide(left, right) => lane(operator, &left, &right, present).map(Vector::Integer),
    }
}

/// Chooses the operator once, outside of the loop.
fn lane<T: Arithmetic>(
    operator: Binary,
    left: &Side<'_, T>,
    right: &Side<'_, T>,
    present: Option<Vec<bool>>,
) -> Result<Lane<'static, T::Result>, Fault> {
    let cells = present.as_deref();
    let values = match operator {
        Binary::Add => each(left, right, cells, |a, b| a.apply(Binary::Add, b)),
        Binary::Subtract => each(left, right, cells, |a, b| a.apply(Binary::Subtract, b)),
        Binary::Multiply => each(left, right, cells, |a, b| a.apply(Binary::Multiply, b)),
        Binary::Divide => each(left, right, cells, |a, b| a.apply(Binary::Divide, b)),
        Binary::Remainder => each(left, right, cells, |a, b| a.apply(Binary::Remainder, b)),
        _ => unreachable!("{operator:?} is not an arithmetic operator"),
    }?;
    Ok(Lane {
        values: Cow::Owned(values),
        present: present.map(Cow::Owned),
    })
}

#[inline]
fn each<T: Copy, U: Copy + Default>(
    left: &Side<'_, T>,
    right: &Side<'_, T>,
    present: Option<&[bool]>,
    apply: impl Fn(T, T) -> Result<U, Fault>,
) -> Result<Vec<U>, Fault> {
    match (left, right) {
        (Side::Each(left), Side::Each(right)) => {
            let pairs = left.iter().copied().zip(right.iter().copied());
            collect(pairs, present, apply)
        }
        (Side::Each(left), &Side::One(b)) => collect(left.iter().map(|&a| (a, b)), present, apply),
        (&Side::One(a), Side::Each(right)) => {
            collect(right.iter().map(|&b| (a, b)), present, apply)
        }
        (&Side::One(a), &Side::One(b)) => Ok(vec![apply(a, b)?]),
    }
}

/// Computes the cells. Missing cells are skipped, because their placeholder might cause a division
/// by zero.
#[inline]
fn collect<T, U: Default>(
    pairs: impl ExactSizeIterator<Item = (T, T)>,
    present: Option<&[bool]>,
    apply: impl Fn(T, T) -> Result<U, Fault>,
) -> Result<Vec<U>, Fault> {
    let mut values = Vec::with_capacity(pairs.len());
    match present {
        None => {
            for (a, b) in pairs {
                values.push(apply(a, b)?);
            }
        }
        Some(present) => {
            for ((a, b), present) in pairs.zip(present) {
                values.push(if *present { apply(a, b)? } else { U::default() });
            }
        }
    }
    Ok(values)
}

/// Negates the value of each row.
pub(super) fn minus(operand: Vector<'_>) -> Result<Vector<'_>, Fault> {
    fn lane<T: Copy + Default, U: Copy + Default>(
        lane: Lane<'_, T>,
        apply: impl Fn(T) -> Result<U, Fault>,
    ) -> Result<Lane<'_, U>, Fault> {
        let value = |at| lane.get(at).map_or(Ok(U::default()), &apply);
        Ok(Lane {
            values: (0..lane.values.len())
                .map(value)
                .collect::<Result<_, _>>()?,
            present: lane.present,
        })
    }
    match operand {
        Vector::Missing => Ok(Vector::Missing),
        Vector::Constant(value) => scalar::minus(&value).map(Vector::Constant),
        Vector::Float(cells) => lane(cells, |value| Ok(-value)).map(Vector::Float),
        Vector::Integer(cells) => lane(cells, scalar::minus_integer).map(Vector::Integer),
        Vector::Unsigned(cells) => lane(cells, scalar::minus_unsigned).map(Vector::Integer),
        Vector::Mixed(cells) => cells
            .iter()
            .map(|cell| cell.as_ref().map(scalar::minus).transpose())
            .collect::<Result<_, _>>()
            .map(|cells| Vector::Mixed(Cow::Owned(cells))),
        Vector::Boolean(_) | Vector::Text(_) => match operand.kind() {
            Some(kind) if operand.any_present() => Err(Fault::Type(kind)),
            _ => Ok(Vector::Missing),
        },
    }
}
