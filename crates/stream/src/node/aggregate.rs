//! `count`, `sum`, `mean`, `min`, `max`, `percentile`: one point for a window.
//!
//! The point's time is the window's end, its tags are those of the group. A window in which no point
//! has the field makes no point, but for `count`, which makes a zero. Values that are no numbers are
//! left out, and so is a window whose sum does not fit into 64 bits.

use super::Operator;
use super::faults::Faults;
use crate::batch::{Batch, Flow, Rows, Window};
use crate::block::{Block, Cells, Column, Data, Words};
use crate::pipeline::Aggregate as Function;
use crate::{Kind, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// See the [module](self).
pub(crate) struct Aggregate {
    pub(crate) function: Function,
    pub(crate) field: Arc<str>,
    pub(crate) into: Arc<str>,
    pub(crate) faults: Faults,
}

/// Why values are left out.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("there is no {function} of `{field}`, which is a {kind}")]
    Kind {
        function: &'static str,
        field: Arc<str>,
        kind: Kind,
    },
    #[error("the sum of `{field}` does not fit into 64 bits")]
    Sum { field: Arc<str> },
}

impl Operator for Aggregate {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let Flow::Window(window) = flow else {
            unreachable!("a pipeline feeds windows to an aggregate");
        };
        if let Some(value) = self.apply(&window) {
            out.push(Flow::Points(self.point(&window, value)));
        }
    }
}

impl Aggregate {
    fn apply(&self, window: &Window) -> Option<Value> {
        let parts = window
            .batches
            .iter()
            .filter_map(|batch| Some((&*batch.block.column(&self.field)?.data, &batch.rows)));
        match self.function {
            Function::Count => {
                let count: usize = parts.map(|(data, rows)| count(data, rows)).sum();
                Some(Value::Integer(count as i64))
            }
            Function::Sum | Function::Mean => {
                let mut sum = Sum::default();
                for (data, rows) in parts {
                    self.numbers(data, rows, |number| sum.add(number));
                }
                if self.function == Function::Mean {
                    return sum.mean().map(Value::Float);
                }
                sum.value().unwrap_or_else(|| {
                    let field = self.field.clone();
                    self.faults.add(sum.count as usize, &Fault::Sum { field });
                    None
                })
            }
            Function::Min => self.extreme(parts, Ordering::Less),
            Function::Max => self.extreme(parts, Ordering::Greater),
            Function::Percentile(percent) => {
                let mut numbers = Vec::new();
                for (data, rows) in parts {
                    self.numbers(data, rows, |number| numbers.push(number));
                }
                if numbers.is_empty() {
                    return None;
                }
                let rank = (percent / 100.0 * numbers.len() as f64).ceil() as usize;
                let place = rank.clamp(1, numbers.len()) - 1;
                let (_, chosen, _) = numbers.select_nth_unstable_by(place, Number::compare);
                Some(chosen.value())
            }
        }
    }

    /// The number that compares to all others like this.
    fn extreme<'a>(
        &self,
        parts: impl Iterator<Item = (&'a Data, &'a Rows)>,
        wanted: Ordering,
    ) -> Option<Value> {
        let mut best: Option<Number> = None;
        for (data, rows) in parts {
            self.numbers(data, rows, |number| match &best {
                Some(known) if number.compare(known) != wanted => {}
                _ => best = Some(number),
            });
        }
        best.map(|number| number.value())
    }

    /// Gives every number of the field to `each`, in order. Values that are none are left out.
    fn numbers(&self, data: &Data, rows: &Rows, mut each: impl FnMut(Number)) {
        match data {
            Data::Float(cells) => cells_of(cells, rows, |&value| each(Number::Float(value))),
            Data::Integer(cells) => {
                cells_of(cells, rows, |&value| each(Number::Whole(value.into())));
            }
            Data::Unsigned(cells) => {
                cells_of(cells, rows, |&value| each(Number::Natural(value)));
            }
            Data::Mixed(cells) => {
                for value in rows.iter().filter_map(|row| cells[row].as_ref()) {
                    match value {
                        Value::Float(value) => each(Number::Float(*value)),
                        Value::Integer(value) => each(Number::Whole((*value).into())),
                        Value::Unsigned(value) => each(Number::Natural(*value)),
                        other => self.no_number(1, other.kind()),
                    }
                }
            }
            Data::Boolean(cells) => self.no_number(count_of(cells, rows), Kind::Boolean),
            Data::Text(cells) => self.no_number(count_of(cells, rows), Kind::Text),
            Data::Tag(_) => self.no_number(count(data, rows), Kind::Text),
        }
    }

    fn no_number(&self, values: usize, kind: Kind) {
        if values > 0 {
            let fault = Fault::Kind {
                function: self.function.name(),
                field: self.field.clone(),
                kind,
            };
            self.faults.add(values, &fault);
        }
    }

    /// The point that stands for a window.
    fn point(&self, window: &Window, value: Value) -> Batch {
        let of = &window.batches[0];
        let tag = |(name, value): &(Arc<str>, Arc<str>)| Column {
            name: name.clone(),
            data: Arc::new(Data::Tag(Words {
                codes: vec![if value.is_empty() { Words::MISSING } else { 0 }],
                words: vec![value.clone()],
            })),
        };
        let mut columns: Vec<Column> = of.group.tags.iter().map(tag).collect();
        columns.push(Column {
            name: self.into.clone(),
            data: Arc::new(Data::from(value)),
        });
        let block = Block {
            origin: of.block.origin.clone(),
            times: Arc::from([window.end]),
            columns,
        };
        Batch::all(Arc::new(block), of.group.clone())
    }
}

/// A number, exactly.
#[derive(Clone, Copy, Debug)]
enum Number {
    Float(f64),
    Whole(i128),
    Natural(u64),
}

impl Number {
    fn compare(&self, other: &Number) -> Ordering {
        match (self.whole(), other.whole()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.float().total_cmp(&other.float()),
        }
    }

    fn whole(&self) -> Option<i128> {
        match *self {
            Number::Float(_) => None,
            Number::Whole(value) => Some(value),
            Number::Natural(value) => Some(value.into()),
        }
    }

    fn float(&self) -> f64 {
        match *self {
            Number::Float(value) => value,
            Number::Whole(value) => value as f64,
            Number::Natural(value) => value as f64,
        }
    }

    fn value(&self) -> Value {
        match *self {
            Number::Float(value) => Value::Float(value),
            Number::Whole(value) => Value::Integer(value as i64),
            Number::Natural(value) => Value::Unsigned(value),
        }
    }
}

/// A sum that is exact as long as all numbers are whole.
#[derive(Default)]
struct Sum {
    whole: i128,
    float: f64,
    count: u64,
    floats: bool,
    integers: bool,
}

impl Sum {
    #[inline]
    fn add(&mut self, number: Number) {
        self.count += 1;
        match number {
            Number::Float(value) => {
                self.float += value;
                self.floats = true;
            }
            Number::Whole(value) => {
                self.whole += value;
                self.integers = true;
            }
            Number::Natural(value) => self.whole += i128::from(value),
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.float + self.whole as f64) / self.count as f64)
    }

    /// `Some(None)`: of nothing; `None`: too large.
    fn value(&self) -> Option<Option<Value>> {
        Some(Some(match self {
            Sum { count: 0, .. } => return Some(None),
            Sum { floats: true, .. } => Value::Float(self.float + self.whole as f64),
            Sum { integers: true, .. } => Value::Integer(i64::try_from(self.whole).ok()?),
            _ => Value::Unsigned(u64::try_from(self.whole).ok()?),
        }))
    }
}

/// How many of the rows have a value.
fn count(data: &Data, rows: &Rows) -> usize {
    match data {
        Data::Tag(words) => rows.iter().filter(|&row| words.get(row).is_some()).count(),
        Data::Float(cells) => count_of(cells, rows),
        Data::Integer(cells) => count_of(cells, rows),
        Data::Unsigned(cells) => count_of(cells, rows),
        Data::Boolean(cells) => count_of(cells, rows),
        Data::Text(cells) => count_of(cells, rows),
        Data::Mixed(cells) => rows.iter().filter(|&row| cells[row].is_some()).count(),
    }
}

fn count_of<T>(cells: &Cells<T>, rows: &Rows) -> usize {
    match &cells.present {
        None => rows.len(),
        Some(present) => rows.iter().filter(|&row| present[row]).count(),
    }
}

/// Gives the values that the rows have to `each`, in order.
#[inline]
fn cells_of<'a, T>(cells: &'a Cells<T>, rows: &Rows, mut each: impl FnMut(&'a T)) {
    match (&cells.present, rows) {
        (None, Rows::Range(from, to)) => {
            cells.values[*from as usize..*to as usize]
                .iter()
                .for_each(each);
        }
        _ => rows
            .iter()
            .filter_map(|row| cells.get(row))
            .for_each(&mut each),
    }
}
