//! Operands and results of operators: the values of the requested rows, in their order.

use super::side::Side;
use super::text::Texts;
use crate::batch::Rows;
use crate::block::{Cells, Data, Words};
use crate::{Kind, Value};
use std::borrow::Cow;

/// The values of an expression. A literal stays one value, and columns of a range are borrowed.
#[derive(Debug)]
pub(super) enum Vector<'a> {
    /// No row has a value.
    Missing,
    /// The same value for every row.
    Constant(Value),
    Float(Lane<'a, f64>),
    Integer(Lane<'a, i64>),
    Unsigned(Lane<'a, u64>),
    Boolean(Lane<'a, bool>),
    Text(Texts<'a>),
    /// Values of different types, one for each row.
    Mixed(Cow<'a, [Option<Value>]>),
}

/// Values of one type, one for each row. Rows without a value contain an arbitrary placeholder.
#[derive(Debug)]
pub(super) struct Lane<'a, T: Copy> {
    pub(super) values: Cow<'a, [T]>,
    pub(super) present: Option<Cow<'a, [bool]>>,
}

impl<'a, T: Copy> Lane<'a, T> {
    fn read(cells: &'a Cells<T>, rows: &'a Rows) -> Lane<'a, T> {
        Lane {
            values: chosen(&cells.values, rows),
            present: cells.present.as_ref().map(|cells| chosen(cells, rows)),
        }
    }

    pub(super) fn side(&self) -> Side<'_, T> {
        Side::Each(Cow::Borrowed(&self.values))
    }

    pub(super) fn get(&self, at: usize) -> Option<T> {
        let missing = self.present.as_ref().is_some_and(|cells| !cells[at]);
        (!missing).then(|| self.values[at])
    }
}

impl<T: Copy + Default> Lane<'_, T> {
    fn into_cells(self) -> Cells<T> {
        let mut values = self.values.into_owned();
        let present = self.present.filter(|cells| cells.contains(&false));
        if let Some(present) = &present {
            for (value, present) in values.iter_mut().zip(&**present) {
                if !present {
                    *value = T::default();
                }
            }
        }
        Cells {
            values,
            present: present.map(Cow::into_owned),
        }
    }
}

/// Returns the cells of these rows.
fn chosen<'a, T: Clone>(cells: &'a [T], rows: &'a Rows) -> Cow<'a, [T]> {
    match rows {
        Rows::Range(from, to) => Cow::Borrowed(&cells[*from as usize..*to as usize]),
        Rows::List(rows) => rows
            .iter()
            .map(|&row| cells[row as usize].clone())
            .collect(),
    }
}

impl<'a> Vector<'a> {
    /// Reads the cells of these rows of a column.
    pub(super) fn read(data: &'a Data, rows: &'a Rows) -> Vector<'a> {
        match data {
            Data::Float(cells) => Vector::Float(Lane::read(cells, rows)),
            Data::Integer(cells) => Vector::Integer(Lane::read(cells, rows)),
            Data::Unsigned(cells) => Vector::Unsigned(Lane::read(cells, rows)),
            Data::Boolean(cells) => Vector::Boolean(Lane::read(cells, rows)),
            Data::Tag(words) => Vector::Text(Texts::of_tag(words, chosen(&words.codes, rows))),
            Data::Text(cells) => Vector::Text(Texts::of_field(cells, rows)),
            Data::Mixed(cells) => Vector::Mixed(chosen(cells, rows)),
        }
    }

    /// Returns the times of these rows as integers.
    pub(super) fn times(times: &'a [i64], rows: &'a Rows) -> Vector<'a> {
        Vector::Integer(Lane {
            values: chosen(times, rows),
            present: None,
        })
    }

    /// Returns the value at an index.
    pub(super) fn get(&self, at: usize) -> Option<Value> {
        match self {
            Vector::Missing => None,
            Vector::Constant(value) => Some(value.clone()),
            Vector::Float(lane) => lane.get(at).map(Value::Float),
            Vector::Integer(lane) => lane.get(at).map(Value::Integer),
            Vector::Unsigned(lane) => lane.get(at).map(Value::Unsigned),
            Vector::Boolean(lane) => lane.get(at).map(Value::Boolean),
            Vector::Text(texts) => texts.get(at).cloned().map(Value::Text),
            Vector::Mixed(cells) => cells[at].clone(),
        }
    }

    /// Returns the type of all values, if they must have the same type.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Vector::Missing | Vector::Mixed(_) => None,
            Vector::Constant(value) => Some(value.kind()),
            Vector::Float(_) => Some(Kind::Float),
            Vector::Integer(_) => Some(Kind::Integer),
            Vector::Unsigned(_) => Some(Kind::Unsigned),
            Vector::Boolean(_) => Some(Kind::Boolean),
            Vector::Text(_) => Some(Kind::Text),
        }
    }

    /// Returns a flag for each row that is true if the row has a value; `None` if all rows have one. Must not be
    /// called on [`Vector::Missing`], which has no length.
    pub(super) fn present(&self) -> Option<Cow<'_, [bool]>> {
        match self {
            Vector::Missing | Vector::Constant(_) => None,
            Vector::Float(lane) => lane.present.as_deref().map(Cow::Borrowed),
            Vector::Integer(lane) => lane.present.as_deref().map(Cow::Borrowed),
            Vector::Unsigned(lane) => lane.present.as_deref().map(Cow::Borrowed),
            Vector::Boolean(lane) => lane.present.as_deref().map(Cow::Borrowed),
            Vector::Text(texts) => texts.present().map(Cow::Owned),
            Vector::Mixed(cells) => Some(cells.iter().map(Option::is_some).collect()),
        }
    }

    /// Returns a flag for each row. The flag is true if both vectors have a value in this row. Returns `None` if this
    /// holds for all rows.
    pub(super) fn both_present(&self, other: &Vector<'_>) -> Option<Vec<bool>> {
        match (self.present(), other.present()) {
            (None, None) => None,
            (Some(present), None) | (None, Some(present)) => Some(present.into_owned()),
            (Some(one), Some(other)) => Some(one.iter().zip(&*other).map(|(a, b)| a & b).collect()),
        }
    }

    /// True if a row has a value.
    pub(super) fn any_present(&self) -> bool {
        !matches!(self, Vector::Missing) && self.present().is_none_or(|cells| cells.contains(&true))
    }

    /// Converts to a field with this many rows.
    pub(super) fn into_data(self, rows: usize) -> Data {
        match self {
            Vector::Missing => Data::Float(Cells {
                values: vec![0.0; rows],
                present: Some(vec![false; rows]),
            }),
            Vector::Constant(value) => repeated(value, rows),
            Vector::Float(lane) => Data::Float(lane.into_cells()),
            Vector::Integer(lane) => Data::Integer(lane.into_cells()),
            Vector::Unsigned(lane) => Data::Unsigned(lane.into_cells()),
            Vector::Boolean(lane) => Data::Boolean(lane.into_cells()),
            Vector::Text(texts) => Data::Text(texts.into_cells()),
            Vector::Mixed(cells) => gathered(cells.into_owned()),
        }
    }
}

fn repeated(value: Value, rows: usize) -> Data {
    fn cells<T: Clone>(value: T, rows: usize) -> Cells<T> {
        Cells {
            values: vec![value; rows],
            present: None,
        }
    }
    match value {
        Value::Float(value) => Data::Float(cells(value, rows)),
        Value::Integer(value) => Data::Integer(cells(value, rows)),
        Value::Unsigned(value) => Data::Unsigned(cells(value, rows)),
        Value::Boolean(value) => Data::Boolean(cells(value, rows)),
        Value::Text(value) => Data::Text(cells(value, rows)),
    }
}

/// Returns cells of one type if possible, or else mixed ones.
fn gathered(cells: Vec<Option<Value>>) -> Data {
    let mut kinds = cells.iter().flatten().map(Value::kind);
    let Some(kind) = kinds.next() else {
        return Vector::Missing.into_data(cells.len());
    };
    if kinds.any(|other| other != kind) {
        return Data::Mixed(cells);
    }
    fn typed<T: Default>(
        cells: Vec<Option<Value>>,
        unwrap: impl Fn(Value) -> Option<T>,
    ) -> Cells<T> {
        let present: Vec<bool> = cells.iter().map(Option::is_some).collect();
        Cells {
            values: cells
                .into_iter()
                .map(|cell| cell.and_then(&unwrap).unwrap_or_default())
                .collect(),
            present: present.contains(&false).then_some(present),
        }
    }
    macro_rules! of {
        ($variant:ident) => {
            Data::$variant(typed(cells, |value| match value {
                Value::$variant(value) => Some(value),
                _ => None,
            }))
        };
    }
    match kind {
        Kind::Float => of!(Float),
        Kind::Integer => of!(Integer),
        Kind::Unsigned => of!(Unsigned),
        Kind::Text => of!(Text),
        Kind::Boolean => of!(Boolean),
    }
}

/// Distributes the cells of some rows over all rows of their block; the other cells are missing.
pub(super) fn spread(data: Data, rows: &Rows, total: usize) -> Data {
    fn cells<T: Clone + Default>(cells: Cells<T>, rows: &Rows, total: usize) -> Cells<T> {
        let mut values = vec![T::default(); total];
        let mut present = vec![false; total];
        for (at, (row, value)) in rows.iter().zip(cells.values).enumerate() {
            values[row] = value;
            present[row] = cells.present.as_ref().is_none_or(|present| present[at]);
        }
        Cells {
            values,
            present: Some(present),
        }
    }
    match data {
        Data::Tag(words) => {
            let mut codes = vec![Words::MISSING; total];
            for (row, code) in rows.iter().zip(words.codes) {
                codes[row] = code;
            }
            Data::Tag(Words {
                codes,
                words: words.words,
            })
        }
        Data::Float(data) => Data::Float(cells(data, rows, total)),
        Data::Integer(data) => Data::Integer(cells(data, rows, total)),
        Data::Unsigned(data) => Data::Unsigned(cells(data, rows, total)),
        Data::Boolean(data) => Data::Boolean(cells(data, rows, total)),
        Data::Text(data) => Data::Text(cells(data, rows, total)),
        Data::Mixed(data) => {
            let mut all = vec![None; total];
            for (row, cell) in rows.iter().zip(data) {
                all[row] = cell;
            }
            Data::Mixed(all)
        }
    }
}
