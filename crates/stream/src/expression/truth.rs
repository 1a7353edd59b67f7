//! Conditions of many rows: true, false, or no value (Kleene's three-valued logic).

use super::vector::{Lane, Vector};
use crate::{Kind, Value};
use std::borrow::Cow;

/// A truth value for each row, or one for all rows.
#[derive(Debug)]
pub(super) enum Truth<'a> {
    /// No row has a value.
    Missing,
    /// The same truth value for every row.
    Constant(bool),
    Each(Lane<'a, bool>),
}

impl<'a> Truth<'a> {
    /// Returns the vector as a condition.
    ///
    /// # Errors
    /// The type of the first value that is not a boolean.
    pub(super) fn of(vector: Vector<'a>) -> Result<Truth<'a>, Kind> {
        match vector {
            Vector::Missing => Ok(Truth::Missing),
            Vector::Constant(Value::Boolean(one)) => Ok(Truth::Constant(one)),
            Vector::Boolean(lane) => Ok(Truth::Each(lane)),
            Vector::Mixed(cells) => {
                let truth = |cell: &Option<Value>| match cell {
                    None => Ok(false),
                    Some(Value::Boolean(one)) => Ok(*one),
                    Some(other) => Err(other.kind()),
                };
                Ok(Truth::Each(Lane {
                    values: cells.iter().map(truth).collect::<Result<_, _>>()?,
                    present: Some(cells.iter().map(Option::is_some).collect()),
                }))
            }
            other => match other.kind() {
                Some(kind) if other.any_present() => Err(kind),
                _ => Ok(Truth::Missing),
            },
        }
    }

    pub(super) fn into_vector(self) -> Vector<'a> {
        match self {
            Truth::Missing => Vector::Missing,
            Truth::Constant(one) => Vector::Constant(Value::Boolean(one)),
            Truth::Each(lane) => Vector::Boolean(lane),
        }
    }

    /// Negates the condition.
    pub(super) fn not(self) -> Truth<'a> {
        match self {
            Truth::Missing => Truth::Missing,
            Truth::Constant(one) => Truth::Constant(!one),
            Truth::Each(lane) => Truth::Each(Lane {
                values: lane.values.iter().map(|one| !one).collect(),
                present: lane.present,
            }),
        }
    }

    /// Returns the rows out of `rows` with this value.
    pub(super) fn equals(&self, value: bool, rows: usize) -> Cow<'_, [bool]> {
        match self {
            Truth::Missing => Cow::Owned(vec![false; rows]),
            Truth::Constant(one) => Cow::Owned(vec![*one == value; rows]),
            Truth::Each(Lane {
                values,
                present: None,
            }) if value => Cow::Borrowed(values),
            Truth::Each(lane) => match &lane.present {
                None => lane.values.iter().map(|one| *one == value).collect(),
                Some(present) => {
                    let both = lane.values.iter().zip(&**present);
                    both.map(|(one, present)| (*one == value) & present)
                        .collect()
                }
            },
        }
    }

    /// Combines two conditions: `OR` if the deciding value is true, `AND` if it is false.
    pub(super) fn combine(self, decides: bool, other: Truth<'_>, rows: usize) -> Truth<'static> {
        match (&self, &other) {
            (Truth::Missing, Truth::Missing) => return Truth::Missing,
            (Truth::Constant(one), Truth::Constant(other)) => {
                return Truth::Constant(if decides {
                    *one | *other
                } else {
                    *one & *other
                });
            }
            (
                Truth::Each(Lane {
                    values: one,
                    present: None,
                }),
                Truth::Each(Lane {
                    values: other,
                    present: None,
                }),
            ) => {
                let pairs = one.iter().zip(&**other);
                let values = match decides {
                    true => pairs.map(|(a, b)| a | b).collect(),
                    false => pairs.map(|(a, b)| a & b).collect(),
                };
                return Truth::Each(Lane {
                    values: Cow::Owned(values),
                    present: None,
                });
            }
            _ => {}
        }
        let decided: Vec<bool> = {
            let (one, other) = (self.equals(decides, rows), other.equals(decides, rows));
            one.iter().zip(&*other).map(|(a, b)| a | b).collect()
        };
        let undecided = {
            let (one, other) = (self.equals(!decides, rows), other.equals(!decides, rows));
            one.iter()
                .zip(&*other)
                .map(|(a, b)| a & b)
                .collect::<Vec<_>>()
        };
        let present = decided.iter().zip(&undecided).map(|(a, b)| a | b).collect();
        let values = decided.iter().map(|one| *one == decides).collect();
        Truth::Each(Lane {
            values: Cow::Owned(values),
            present: Some(Cow::Owned(present)),
        })
    }
}
