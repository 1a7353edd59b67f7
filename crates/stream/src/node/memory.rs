//! Functions that remember earlier points: `count()`, `sigma(x)` and `spread(x)`.
//!
//! An expression is evaluated for many rows at once, so it cannot contain these functions. Each call is replaced by the
//! key of a column. [`Remembered::add`] computes this column row by row before the expression is evaluated.

use super::counter::Counters;
use super::evaluate::{evaluate, with_field};
use super::faults::Faults;
use super::series::{Limits, Series};
use super::state::State;
use crate::batch::{Batch, Flow, Group};
use crate::block::{Block, Cells, Column, Data};
use crate::expression::{Expression, Function, as_float};
use std::sync::Arc;

/// The calls of functions with memory in one expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered(Vec<RememberedCall>);

#[derive(Clone, Debug)]
struct RememberedCall {
    /// The name of the column with its results. No field can have it, because fields have no control characters.
    column: Arc<str>,
    function: Function,
    argument: Option<Expression>,
}

/// The memory of a call about the points of a group.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Memory {
    count: i64,
    mean: f64,
    /// The sum of squared differences from the mean.
    squares: f64,
    least: f64,
    most: f64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        }
    }
}

impl Remembered {
    /// Takes the calls out of an expression. `all` numbers the calls of a node.
    pub(crate) fn take_from(expression: &mut Expression, all: &mut usize) -> Remembered {
        let mut calls = Remembered::default();
        calls.replace(expression, all);
        calls
    }

    fn replace(&mut self, mut expression: &mut Expression, all: &mut usize) {
        // A chain of operators may be long, so left sides are a loop.
        while let Expression::Binary(_, left, right) = expression {
            self.replace(right, all);
            expression = left;
        }
        match expression {
            Expression::Unary(_, operand) | Expression::Match(operand, ..) => {
                self.replace(operand, all);
            }
            Expression::Call(function, arguments) => {
                for argument in arguments.iter_mut() {
                    self.replace(argument, all);
                }
                if function.remembers() {
                    let column: Arc<str> = format!("\u{1}{all}").into();
                    *all += 1;
                    self.0.push(RememberedCall {
                        column: column.clone(),
                        function: *function,
                        argument: arguments.pop(),
                    });
                    *expression = Expression::Key(column);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of calls.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the columns of the calls to a batch. `memory` has a value for each call.
    pub(crate) fn add(&self, mut batch: Batch, memory: &mut [Memory], faults: &Faults) -> Batch {
        if self.0.is_empty() {
            return batch;
        }
        // A new column has a cell for every row of its block, and most of these rows may belong to other groups.
        if batch.rows.len() * 2 < batch.block.rows() {
            batch = Batch::all(Arc::new(batch.to_block()), batch.group);
        }
        for (call, memory) in self.0.iter().zip(memory) {
            let argument = match &call.argument {
                None => None,
                Some(argument) => {
                    let (rows, data) = evaluate(argument, false, &batch, faults, |rows| {
                        argument.column(&batch.block, rows)
                    });
                    batch.rows = rows;
                    Some(data)
                }
            };
            let mut column = Cells::<f64>::default();
            let mut present = vec![false; batch.block.rows()];
            column.values = vec![0.0; batch.block.rows()];
            for row in batch.rows.iter() {
                let value = match &argument {
                    None => Some(0.0),
                    Some(data) => data.get(row).and_then(|value| as_float(&value)),
                };
                if let Some(value) = value {
                    column.values[row] = memory.next(call.function, value);
                    present[row] = true;
                }
            }
            let data = match call.function {
                Function::PointCount => Data::Integer(Cells {
                    values: column.values.iter().map(|value| *value as i64).collect(),
                    present: Some(present),
                }),
                _ => {
                    column.present = Some(present);
                    Data::Float(column)
                }
            };
            let name = call.column.clone();
            let column = Column {
                name,
                data: Arc::new(data),
            };
            batch.block = Arc::new(with_field(&batch.block, column));
        }
        batch
    }

    /// Returns the block without the columns of the calls.
    pub(crate) fn without(&self, block: &Arc<Block>) -> Arc<Block> {
        if self.0.is_empty() {
            return block.clone();
        }
        let mut block = (**block).clone();
        block
            .columns
            .retain(|column| self.0.iter().all(|call| call.column != column.name));
        Arc::new(block)
    }
}

impl Memory {
    /// Takes the next value of a group, and returns the result for it.
    fn next(&mut self, function: Function, value: f64) -> f64 {
        self.count += 1;
        if function == Function::PointCount {
            return self.count as f64;
        }
        if function == Function::Spread {
            (self.least, self.most) = (self.least.min(value), self.most.max(value));
            return self.most - self.least;
        }
        // Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", 1962.
        let difference = value - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value - self.mean);
        let variance = self.squares / (self.count - 1) as f64;
        match self.count < 2 || variance == 0.0 {
            true => 0.0,
            false => (value - self.mean).abs() / variance.sqrt(),
        }
    }
}

/// The memory of a node's calls, for each group. It is empty and costs nothing if there is no call.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    calls: usize,
    groups: Option<Series<Vec<Memory>>>,
}

impl Memories {
    /// Creates the memory of this many calls.
    pub(crate) fn new(calls: usize, limits: Limits) -> Memories {
        Memories {
            calls,
            groups: (calls > 0).then(|| Series::new(limits)),
        }
    }

    /// Returns the memory of a flow's group. `None`, and the points are counted, if there are too many groups.
    pub(crate) fn of(&mut self, flow: &Flow) -> Option<&mut [Memory]> {
        let Some(groups) = &mut self.groups else {
            return Some(&mut []);
        };
        drop(groups.expired());
        let made = || vec![Memory::default(); self.calls];
        let memory = groups.entry(flow.group(), flow.points(), made)?;
        Some(&mut memory[..])
    }

    pub(crate) fn counters(&self) -> Counters {
        self.groups
            .as_ref()
            .map(Series::counters)
            .unwrap_or_default()
    }

    pub(crate) fn save(&self) -> Option<State> {
        self.groups.as_ref().map(Series::save)
    }

    /// Restores the groups that [`save`](Memories::save) returned.
    pub(crate) fn restore(&mut self, state: &State) {
        let Some(groups) = &mut self.groups else {
            return;
        };
        let saved: Option<Vec<(Group, Vec<Memory>)>> = state.read();
        for (group, mut memory) in saved.into_iter().flatten() {
            memory.resize(self.calls, Memory::default());
            groups.entry(&group.into(), 0, || memory);
        }
    }
}
