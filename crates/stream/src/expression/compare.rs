//! Comparisons of many rows.

use super::Binary;
use super::fault::Fault;
use super::number::{Numbers, Pair};
use super::scalar;
use super::side::Side;
use super::vector::{Lane, Vector};
use crate::Value;
use std::borrow::Cow;

/// Compares the rows of two operands.
pub(super) fn compare(
    operator: Binary,
    left: &Vector<'_>,
    right: &Vector<'_>,
) -> Result<Vector<'static>, Fault> {
    let values = match (left, right) {
        (Vector::Missing, _) | (_, Vector::Missing) => return Ok(Vector::Missing),
        (Vector::Constant(left), Vector::Constant(right)) => {
            let holds = scalar::compare(operator, left, right)?;
            return Ok(Vector::Constant(Value::Boolean(holds)));
        }
        (Vector::Mixed(_), _) | (_, Vector::Mixed(_)) => {
            return cell_by_cell(left, right, |left, right| {
                scalar::compare(operator, left, right).map(Value::Boolean)
            });
        }
        (Vector::Text(left), Vector::Text(right)) => left.compare(operator, right),
        (Vector::Text(texts), Vector::Constant(Value::Text(one))) => {
            texts.compare_one(operator, one)
        }
        (Vector::Constant(Value::Text(one)), Vector::Text(texts)) => {
            texts.compare_one(mirrored(operator), one)
        }
        _ => match (Numbers::of(left), Numbers::of(right)) {
            (Some(one), Some(other)) => numbers(operator, Pair::comparable(one, other)),
            _ => match (booleans(left), booleans(right)) {
                (Some(one), Some(other)) if operator.is_equality() => {
                    each(&one, &other, |a, b| (a == b) == (operator == Binary::Equal))
                }
                _ => return mismatch(left, right),
            },
        },
    };
    Ok(Vector::Boolean(Lane {
        values: Cow::Owned(values),
        present: left.both_present(right).map(Cow::Owned),
    }))
}

/// Returns the operator that gives the same result when the operands are exchanged.
fn mirrored(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::Greater,
        Binary::LessOrEqual => Binary::GreaterOrEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterOrEqual => Binary::LessOrEqual,
        same => same,
    }
}

fn booleans<'v>(vector: &'v Vector<'_>) -> Option<Side<'v, bool>> {
    match vector {
        Vector::Constant(Value::Boolean(one)) => Some(Side::One(*one)),
        Vector::Boolean(lane) => Some(lane.side()),
        _ => None,
    }
}

fn numbers(operator: Binary, pair: Pair<'_>) -> Vec<bool> {
    match pair {
        Pair::Float(left, right) => ordered(operator, &left, &right),
        Pair::Integer(left, right) => ordered(operator, &left, &right),
        Pair::Unsigned(left, right) => ordered(operator, &left, &right),
        Pair::Wide(left, right) => ordered(operator, &left, &right),
    }
}

/// Chooses the operator once; the rest is a loop over plain slices.
fn ordered<T: Copy + PartialOrd>(
    operator: Binary,
    left: &Side<'_, T>,
    right: &Side<'_, T>,
) -> Vec<bool> {
    match operator {
        Binary::Equal => each(left, right, |a, b| a == b),
        Binary::NotEqual => each(left, right, |a, b| a != b),
        Binary::Less => each(left, right, |a, b| a < b),
        Binary::LessOrEqual => each(left, right, |a, b| a <= b),
        Binary::Greater => each(left, right, |a, b| a > b),
        Binary::GreaterOrEqual => each(left, right, |a, b| a >= b),
        _ => unreachable!("{operator:?} is not a comparison"),
    }
}

#[inline]
fn each<T: Copy>(
    left: &Side<'_, T>,
    right: &Side<'_, T>,
    holds: impl Fn(T, T) -> bool,
) -> Vec<bool> {
    match (left, right) {
        (Side::Each(left), Side::Each(right)) => left
            .iter()
            .zip(&**right)
            .map(|(&a, &b)| holds(a, b))
            .collect(),
        (Side::Each(left), &Side::One(b)) => left.iter().map(|&a| holds(a, b)).collect(),
        (&Side::One(a), Side::Each(right)) => right.iter().map(|&b| holds(a, b)).collect(),
        (&Side::One(a), &Side::One(b)) => vec![holds(a, b)],
    }
}

/// Applies an operator to operands whose types change from row to row.
pub(super) fn cell_by_cell(
    left: &Vector<'_>,
    right: &Vector<'_>,
    operation: impl Fn(&Value, &Value) -> Result<Value, Fault>,
) -> Result<Vector<'static>, Fault> {
    let rows = match (left, right) {
        (Vector::Mixed(cells), _) | (_, Vector::Mixed(cells)) => cells.len(),
        _ => unreachable!("one of both changes its type"),
    };
    (0..rows)
        .map(|at| match (left.get(at), right.get(at)) {
            (Some(left), Some(right)) => operation(&left, &right).map(Some),
            _ => Ok(None),
        })
        .collect::<Result<_, _>>()
        .map(|cells| Vector::Mixed(Cow::Owned(cells)))
}

/// Handles operands that cannot be compared, which is an error if a row has both.
pub(super) fn mismatch(left: &Vector<'_>, right: &Vector<'_>) -> Result<Vector<'static>, Fault> {
    let together = match left.both_present(right) {
        Some(present) => present.contains(&true),
        None => true,
    };
    match (left.kind(), right.kind()) {
        (Some(left), Some(right)) if together => Err(Fault::Types(left, right)),
        _ => Ok(Vector::Missing),
    }
}
