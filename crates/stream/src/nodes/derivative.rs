//! `derivative`: the change of a field from point to point, per unit of time.
//!
//! There is no result for the first point of a group or window, nor for a point with the same time as the previous
//! point.

use super::stats::Stats;
use crate::batch::{Batch, Flow, Group};
use crate::block::{Cells, Column, Data};
use crate::expression;
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::evaluate::with_field;
use crate::node::faults::Faults;
use crate::node::series::{PerGroup, Series};
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Text, Time, Writer, distinct, positive};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["derivative"],
    properties: &["as", "unit", "nonNegative"],
    parse,
};

/// The change of a field from point to point, per unit of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Derivative {
    /// The name of the field to differentiate.
    pub field: Arc<str>,
    /// The name of the result.
    pub into: Arc<str>,
    /// The unit of time.
    pub unit: Duration,
    /// True if a decrease has no result, because it is the reset of a counter.
    pub non_negative: bool,
}

impl<'p> Chain<'p> {
    /// Adds a `derivative`: the change of a field per second, instead of the field.
    pub fn derivative(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        let field = field.into();
        self.then(Derivative {
            into: field.clone(),
            field,
            unit: Duration::from_secs(1),
            non_negative: false,
        })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let field = parser.argument(Parser::field)?;
    let (mut into, mut unit, mut non_negative) = (None, None, false);
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "as" => set(&mut into, parser.one_name(span)?, "as", span)?,
            "unit" => set(&mut unit, parser.argument(Parser::duration)?, "unit", span)?,
            _ => {
                parser.nothing()?;
                non_negative = true;
            }
        }
    }
    Ok(AnyDefinition::from(Derivative {
        into: into.unwrap_or_else(|| field.clone()),
        field,
        unit: unit.unwrap_or(Duration::from_secs(1)),
        non_negative,
    }))
}

impl Definition for Derivative {
    fn name(&self) -> &'static str {
        "derivative"
    }

    fn check(&mut self) -> Result<(), Rule> {
        positive("unit", self.unit)?;
        distinct([&self.field])?;
        distinct([&self.into])
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&Text(&self.field)])?;
        out.property("unit", &[&Time(self.unit)])?;
        out.flag("nonNegative", self.non_negative)?;
        out.text("as", (self.into != self.field).then_some(&self.into))
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let mut inputs = context.inputs.iter();
        Built::from(DerivativeOperator {
            derivative: self.clone(),
            unit: self.unit.as_nanos() as f64,
            last: Series::new(context.limits),
            // A `stats` counts nothing while the server is down.
            continues: !inputs.any(|input| input.get::<Stats>().is_some()),
            faults: context.faults.clone(),
        })
    }
}

/// The operator of a `derivative`.
struct DerivativeOperator {
    derivative: Derivative,
    /// The unit of the derivative in nanoseconds.
    unit: f64,
    /// Time and value of the last point of each group.
    last: Series<Option<(i64, f64)>>,
    /// True if points before a stop of the engine are still used after it.
    continues: bool,
    faults: Faults,
}

/// The reasons why a point is dropped.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("`{0}` is missing or not a number")]
    NoNumber(Arc<str>),
    #[error("the point has the time of the one before")]
    NoTime,
}

impl PerGroup for DerivativeOperator {
    type Value = Option<(i64, f64)>;

    fn series(&mut self) -> &mut Series<Option<(i64, f64)>> {
        &mut self.last
    }

    fn results(&self, batch: &Batch, last: &mut Option<(i64, f64)>) -> Batch {
        let column = batch
            .block
            .fields()
            .find(|column| column.name == self.derivative.field);
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        let (mut no_number, mut no_time) = (0, 0);
        for row in batch.rows.iter() {
            let value = column.and_then(|column| column.data.get(row));
            let Some(value) = value.as_ref().and_then(expression::as_float) else {
                no_number += 1;
                continue;
            };
            let time = batch.block.times[row];
            let Some((then, before)) = last.replace((time, value)) else {
                continue;
            };
            let elapsed = time as f64 - then as f64;
            if time == then {
                no_time += 1;
            } else if !self.derivative.non_negative || value >= before {
                rows.push(row as u32);
                values.push((value - before) / (elapsed / self.unit));
            }
        }
        for (points, fault) in [
            (no_number, Fault::NoNumber(self.derivative.field.clone())),
            (no_time, Fault::NoTime),
        ] {
            if points > 0 {
                self.faults.add(points, &fault);
            }
        }
        let column = Column {
            name: self.derivative.into.clone(),
            data: Arc::new(Data::Float(Cells {
                values,
                present: None,
            })),
        };
        let block = with_field(&batch.block.gather(&rows), column);
        Batch::all(Arc::new(block), batch.group.clone())
    }
}

impl Operator for DerivativeOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        self.map(flow, out);
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("errors", self.faults.counter())];
        counters.extend(self.last.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        let last = self.last.iter();
        let last: Vec<(&Group, (i64, f64))> = last
            .filter_map(|(group, last)| Some((&**group, (*last)?)))
            .collect();
        self.continues.then(|| State::new(0, &last))
    }

    fn restore(&mut self, state: &State) {
        let last: Option<Vec<(Group, (i64, f64))>> = state.read();
        for (group, last) in last.into_iter().flatten() {
            self.last.entry(&group.into(), 0, || Some(last));
        }
    }
}
