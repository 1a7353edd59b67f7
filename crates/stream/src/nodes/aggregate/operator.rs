//! The operator of an aggregate. It reduces a window to one point, or to its distinct values.

use super::number::{Number, Sum, median, stddev};
use super::{Aggregate, Aggregation};
use crate::batch::{Batch, Flow, Rows, Window};
use crate::block::{Cells, Column, Data};
use crate::node::faults::Faults;
use crate::node::{Counters, Operator, State};
use crate::nodes::buffer::BufferOperator;
use crate::{Kind, Value};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::sync::Arc;

/// See the [module](self).
pub(super) struct AggregateOperator {
    pub(super) of: Aggregation,
    pub(super) faults: Faults,
    /// Collects the points of one time for an aggregate of points outside of windows. These points are treated as a
    /// window.
    pub(super) moments: Option<BufferOperator>,
}

/// A point of a window, with its value.
struct Selected<'a> {
    batch: &'a Batch,
    row: usize,
    value: Value,
}

/// The reasons why values are dropped.
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

impl Operator for AggregateOperator {
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>) {
        match flow {
            Flow::Window(window) => self.window(&window, out),
            Flow::Points(_) => {
                let Some(moments) = &mut self.moments else {
                    unreachable!("a pipeline feeds windows to an aggregate of windows");
                };
                let mut windows = Vec::new();
                moments.take(input, flow, &mut windows);
                for window in windows {
                    if let Flow::Window(window) = window {
                        self.window(&window, out);
                    }
                }
            }
        }
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("errors", self.faults.counter())];
        counters.extend(self.moments.iter().flat_map(Operator::counters));
        counters
    }

    fn save(&self) -> Option<State> {
        self.moments.as_ref().and_then(Operator::save)
    }

    fn restore(&mut self, state: &State) {
        if let Some(moments) = &mut self.moments {
            moments.restore(state);
        }
    }
}

impl AggregateOperator {
    fn window(&self, window: &Window, out: &mut Vec<Flow>) {
        if self.of.function == Aggregate::Distinct {
            out.extend(self.distinct(window));
        } else if self.of.function.selects() {
            let selected = self.select(window);
            out.extend(selected.map(|found| Flow::Points(self.selected(window, found))));
        } else if let Some(value) = self.apply(window)
            // Points of one time have no count if none of them has the field.
            && (self.moments.is_none() || value != Value::Integer(0) || self.of.function != Aggregate::Count)
        {
            out.push(Flow::Points(self.point(window, vec![value])));
        }
    }

    fn apply(&self, window: &Window) -> Option<Value> {
        let parts = window
            .batches
            .iter()
            .filter_map(|batch| Some((&*batch.block.column(&self.of.field)?.data, &batch.rows)));
        match self.of.function {
            Aggregate::Count => {
                let count: usize = parts.map(|(data, rows)| count(data, rows)).sum();
                Some(Value::Integer(count as i64))
            }
            Aggregate::Sum | Aggregate::Mean => {
                let mut sum = Sum::default();
                for (data, rows) in parts {
                    self.numbers(data, rows, |_, number| sum.add(number));
                }
                if self.of.function == Aggregate::Mean {
                    return sum.mean().map(Value::Float);
                }
                sum.value().unwrap_or_else(|| {
                    let field = self.of.field.clone();
                    self.faults.add(sum.count as usize, &Fault::Sum { field });
                    None
                })
            }
            Aggregate::Spread => {
                let (mut least, mut most) = (None::<Number>, None::<Number>);
                for (data, rows) in parts {
                    self.numbers(data, rows, |_, number| {
                        least = Some(number.of(least, Ordering::Less));
                        most = Some(number.of(most, Ordering::Greater));
                    });
                }
                most.zip(least).and_then(|(most, least)| most.less(least))
            }
            Aggregate::Median | Aggregate::Stddev => {
                let mut values = Vec::new();
                for (data, rows) in parts {
                    self.numbers(data, rows, |_, number| values.push(number.float()));
                }
                let result = match self.of.function {
                    Aggregate::Median => median(&mut values),
                    _ => stddev(&values),
                };
                result.map(Value::Float)
            }
            _ => unreachable!("{:?} does not reduce to one number", self.of.function),
        }
    }

    /// Returns the point that a selector selects.
    fn select<'a>(&self, window: &'a Window) -> Option<Selected<'a>> {
        let parts = window.batches.iter().filter_map(|batch| {
            let column = batch
                .block
                .fields()
                .find(|column| column.name == self.of.field)?;
            Some((batch, &*column.data))
        });
        let mut best: Option<Selected<'a>> = None;
        match self.of.function {
            Aggregate::First | Aggregate::Last => {
                let time = |found: &Selected<'_>| found.batch.block.times[found.row];
                for (batch, data) in parts {
                    for row in batch.rows.iter() {
                        let Some(value) = data.get(row) else { continue };
                        let next = Selected { batch, row, value };
                        let better = best.as_ref().is_none_or(|best| match self.of.function {
                            Aggregate::First => time(&next) < time(best),
                            _ => time(&next) >= time(best),
                        });
                        if better {
                            best = Some(next);
                        }
                    }
                }
                best
            }
            Aggregate::Percentile(percent) => {
                let mut numbers = Vec::new();
                for (batch, data) in parts {
                    self.numbers(data, &batch.rows, |row, number| {
                        numbers.push((number, batch, row));
                    });
                }
                let rank = (numbers.len() as f64 * percent / 100.0 + 0.5).floor() as usize;
                let place = rank.checked_sub(1).filter(|place| *place < numbers.len())?;
                let by = |a: &(Number, _, usize), b: &(Number, _, usize)| a.0.compare(&b.0);
                let (_, &mut (number, batch, row), _) = numbers.select_nth_unstable_by(place, by);
                let value = number.value();
                Some(Selected { batch, row, value })
            }
            _ => {
                let wanted = match self.of.function {
                    Aggregate::Min => Ordering::Less,
                    _ => Ordering::Greater,
                };
                let mut known: Option<Number> = None;
                for (batch, data) in parts {
                    self.numbers(data, &batch.rows, |row, number| {
                        if known.is_none_or(|known| number.compare(&known) == wanted) {
                            known = Some(number);
                            let value = number.value();
                            best = Some(Selected { batch, row, value });
                        }
                    });
                }
                best
            }
        }
    }

    /// Returns the selected point, with the result instead of the field.
    fn selected(&self, window: &Window, found: Selected<'_>) -> Batch {
        let mut block = found.batch.block.gather(&[found.row as u32]);
        // Removes the columns in which the selected point has no value.
        block.columns.retain(|column| {
            let replaced = column.name == self.of.field || column.name == self.of.into;
            column.data.get(0).is_some() && (column.is_tag() || !replaced)
        });
        block.columns.push(Column {
            name: self.of.into.clone(),
            data: Arc::new(Data::from(found.value)),
        });
        if !self.of.point_times {
            block.times = Arc::from([window.end]);
        }
        Batch::all(Arc::new(block), found.batch.group.clone())
    }

    /// Returns the distinct values in the order of appearance.
    fn distinct(&self, window: &Window) -> Option<Flow> {
        let mut seen = FxHashSet::default();
        let mut values = Vec::new();
        for batch in &window.batches {
            let column = batch
                .block
                .fields()
                .find(|column| column.name == self.of.field);
            let cells = column.map(|column| batch.rows.iter().map(|row| column.data.get(row)));
            for value in cells.into_iter().flatten().flatten() {
                if seen.insert(distinct_key(&value)) {
                    values.push(value);
                }
            }
        }
        (!values.is_empty()).then(|| {
            Flow::Window(Window {
                batches: vec![self.point(window, values)],
                ..*window
            })
        })
    }

    /// Calls `each` with every number of the field, in order. Other values are dropped.
    fn numbers(&self, data: &Data, rows: &Rows, mut each: impl FnMut(usize, Number)) {
        match data {
            Data::Float(cells) => {
                cells_of(cells, rows, |row, &value| each(row, Number::Float(value)));
            }
            Data::Integer(cells) => {
                cells_of(cells, rows, |row, &value| {
                    each(row, Number::Whole(value.into()))
                });
            }
            Data::Unsigned(cells) => {
                cells_of(cells, rows, |row, &value| each(row, Number::Natural(value)));
            }
            Data::Mixed(cells) => {
                for (row, value) in rows
                    .iter()
                    .filter_map(|row| Some((row, cells[row].as_ref()?)))
                {
                    match value {
                        Value::Float(value) => each(row, Number::Float(*value)),
                        Value::Integer(value) => each(row, Number::Whole((*value).into())),
                        Value::Unsigned(value) => each(row, Number::Natural(*value)),
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
                function: self.of.function.name(),
                field: self.of.field.clone(),
                kind,
            };
            self.faults.add(values, &fault);
        }
    }

    /// Returns the points that represent a window, one for each value.
    fn point(&self, window: &Window, mut values: Vec<Value>) -> Batch {
        let rows = values.len();
        let result = Column {
            name: self.of.into.clone(),
            data: Arc::new(match (values.pop(), rows) {
                (Some(value), 1) => Data::from(value),
                (last, _) => {
                    values.extend(last);
                    Data::from(values.into_iter().map(Some).collect::<Vec<_>>())
                }
            }),
        };
        window.batches[0].of_group(vec![window.end; rows].into(), vec![result])
    }
}

/// Returns the key that distinguishes a value.
fn distinct_key(value: &Value) -> (Kind, u64, Option<Arc<str>>) {
    let (bits, text) = match value {
        Value::Float(number) => (number.to_bits(), None),
        Value::Integer(number) => (*number as u64, None),
        Value::Unsigned(number) => (*number, None),
        Value::Boolean(one) => (u64::from(*one), None),
        Value::Text(text) => (0, Some(text.clone())),
    };
    (value.kind(), bits, text)
}

/// Returns the number of rows that have a value.
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

/// Calls `each` with the values of the rows, in order.
#[inline]
fn cells_of<'a, T>(cells: &'a Cells<T>, rows: &Rows, mut each: impl FnMut(usize, &'a T)) {
    match (&cells.present, rows) {
        (None, Rows::Range(from, to)) => {
            let rows = *from as usize..*to as usize;
            let values = cells.values[rows.clone()].iter();
            rows.zip(values).for_each(|(row, value)| each(row, value));
        }
        _ => rows
            .iter()
            .filter_map(|row| Some((row, cells.get(row)?)))
            .for_each(|(row, value)| each(row, value)),
    }
}
