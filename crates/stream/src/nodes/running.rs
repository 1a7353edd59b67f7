//! `elapsed`, `difference`, `movingAverage` and `cumulativeSum`: a number for each point, computed from the point and
//! the earlier points of its group.
//!
//! The result is the point's only field. A point without the field, or with a value that is not a number, is counted
//! and left out. Each window is treated separately.

use crate::Value;
use crate::batch::{Batch, Flow};
use crate::block::{Block, Column, Data};
use crate::expression::as_float;
use crate::language::{Call, Parsed, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::faults::Faults;
use crate::node::series::{PerGroup, Series};
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, MAX_COUNT, Rule, Text, Time, Writer, distinct, positive};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["elapsed", "difference", "movingAverage", "cumulativeSum"],
    properties: &["as"],
    parse,
};

/// A number for each point, computed from the point and the earlier points of its group.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    /// The function to compute.
    pub function: RunningFunction,
    /// The name of the field from which the result is computed.
    pub field: Arc<str>,
    /// The name of the result.
    pub into: Arc<str>,
}

/// The function of a [`Running`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunningFunction {
    /// The time since the previous point, in whole units. The first point has no result.
    Elapsed(Duration),
    /// The change since the previous point; the first point has no result.
    Difference,
    /// The mean of this many points, up to the current one. A group has no result until it has that many points.
    MovingAverage(u64),
    /// The sum up to the point.
    CumulativeSum,
}

impl RunningFunction {
    fn name(self) -> &'static str {
        KIND.names[match self {
            RunningFunction::Elapsed(_) => 0,
            RunningFunction::Difference => 1,
            RunningFunction::MovingAverage(_) => 2,
            RunningFunction::CumulativeSum => 3,
        }]
    }
}

impl<'p> Chain<'p> {
    /// Adds an `elapsed`, `difference`, `movingAverage` or `cumulativeSum`, whose result has the name of the function.
    pub fn running(self, function: RunningFunction, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.then(Running {
            function,
            field: field.into(),
            into: function.name().into(),
        })
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let (parser, name) = (&mut program.parser, call.name);
    let (field, function) = parser.argument(|parser| {
        let field = parser.field()?;
        let mut second = || parser.expect(",", "a `,` and a second argument");
        let function = match name {
            "elapsed" => {
                second()?;
                RunningFunction::Elapsed(parser.duration()?)
            }
            "movingAverage" => {
                second()?;
                RunningFunction::MovingAverage(parser.count()?)
            }
            "difference" => RunningFunction::Difference,
            _ => RunningFunction::CumulativeSum,
        };
        Ok((field, function))
    })?;
    let mut into = None;
    while let Some((property, span)) = parser.property(KIND.properties)? {
        set(&mut into, parser.one_name(span)?, property, span)?;
    }
    Ok(AnyDefinition::from(Running {
        function,
        field,
        into: into.unwrap_or_else(|| function.name().into()),
    }))
}

impl Definition for Running {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn check(&mut self) -> Result<(), Rule> {
        match self.function {
            RunningFunction::Elapsed(unit) => positive("elapsed", unit)?,
            RunningFunction::MovingAverage(0) => {
                return Err(Rule::NotPositive {
                    property: "movingAverage",
                });
            }
            RunningFunction::MovingAverage(count) if count > MAX_COUNT => {
                return Err(Rule::TooMany {
                    property: "movingAverage",
                    count,
                    most: MAX_COUNT,
                });
            }
            _ => {}
        }
        distinct([&self.field])?;
        distinct([&self.into])
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let field = Text(&self.field);
        match self.function {
            RunningFunction::Elapsed(unit) => out.arguments(&[&field, &Time(unit)])?,
            RunningFunction::MovingAverage(points) => out.arguments(&[&field, &points])?,
            _ => out.arguments(&[&field])?,
        }
        let named = (*self.into != *self.function.name()).then_some(&self.into);
        out.text("as", named)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(RunningOperator {
            running: self.clone(),
            groups: Series::new(context.limits),
            faults: context.faults.clone(),
        })
    }
}

/// The state of a group before the next point.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Before {
    /// Time and value of the last point, or the sum up to it.
    last: Option<(i64, Value)>,
    /// The last values of a moving average.
    recent: VecDeque<f64>,
}

/// The operator of a [`Running`].
struct RunningOperator {
    running: Running,
    groups: Series<Before>,
    faults: Faults,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is missing or not a number")]
struct NotANumber(Arc<str>);

impl RunningFunction {
    /// Returns the result of a point, if it has one.
    fn next(self, before: &mut Before, time: i64, value: Value, number: f64) -> Option<Value> {
        match self {
            RunningFunction::Elapsed(unit) => {
                let (last, _) = before.last.replace((time, value))?;
                Some(Value::Integer(
                    time.saturating_sub(last) / unit.as_nanos() as i64,
                ))
            }
            RunningFunction::Difference => {
                let (_, last) = before.last.replace((time, value.clone()))?;
                Some(combined(&value, &last, i64::checked_sub, |a, b| a - b))
            }
            RunningFunction::CumulativeSum => {
                let sum = match &before.last {
                    Some((_, sum)) => combined(&value, sum, i64::checked_add, |a, b| a + b),
                    None => value,
                };
                before.last = Some((time, sum.clone()));
                Some(sum)
            }
            RunningFunction::MovingAverage(points) => {
                before.recent.push_back(number);
                if before.recent.len() < points as usize {
                    return None;
                }
                let sum: f64 = before.recent.iter().sum();
                before.recent.pop_front();
                Some(Value::Float(sum / points as f64))
            }
        }
    }
}

/// Combines two numbers: integers give an integer if the result fits, all others give a float.
fn combined(
    value: &Value,
    other: &Value,
    whole: fn(i64, i64) -> Option<i64>,
    float: fn(f64, f64) -> f64,
) -> Value {
    if let (Value::Integer(a), Value::Integer(b)) = (value, other)
        && let Some(result) = whole(*a, *b)
    {
        return Value::Integer(result);
    }
    let number = |value: &Value| as_float(value).unwrap_or(f64::NAN);
    Value::Float(float(number(value), number(other)))
}

impl PerGroup for RunningOperator {
    type Value = Before;

    fn series(&mut self) -> &mut Series<Before> {
        &mut self.groups
    }

    fn numbers(before: &Before) -> usize {
        before.recent.len()
    }

    fn results(&self, batch: &Batch, before: &mut Before) -> Batch {
        let Running {
            function,
            field,
            into,
        } = &self.running;
        let column = batch.block.fields().find(|column| column.name == *field);
        let (mut rows, mut results, mut missing) = (Vec::new(), Vec::new(), 0);
        for row in batch.rows.iter() {
            let value = column.and_then(|column| column.data.get(row));
            let Some((value, number)) = value.and_then(|value| {
                let number = as_float(&value)?;
                Some((value, number))
            }) else {
                missing += 1;
                continue;
            };
            let time = batch.block.times[row];
            if let Some(result) = function.next(before, time, value, number) {
                rows.push(row as u32);
                results.push(Some(result));
            }
        }
        if missing > 0 {
            self.faults.add(missing, &NotANumber(field.clone()));
        }
        let mut block: Block = batch.block.gather(&rows);
        block.columns.retain(Column::is_tag);
        block.columns.push(Column {
            name: into.clone(),
            data: Arc::new(Data::from(results)),
        });
        Batch::all(Arc::new(block), batch.group.clone())
    }
}

impl Operator for RunningOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        self.map(flow, out);
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("errors", self.faults.counter())];
        counters.extend(self.groups.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        Some(self.groups.save())
    }

    fn restore(&mut self, state: &State) {
        self.restore_groups(state);
    }
}
