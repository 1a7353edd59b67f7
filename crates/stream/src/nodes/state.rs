//! `stateDuration` and `stateCount`: for how long, or for how many points, a condition has been true.
//!
//! A point for which the condition is false gets -1. A point for which the condition has no result is counted and left
//! out. Each window is treated separately.

use crate::Value;
use crate::batch::{Batch, Flow};
use crate::block::{Cells, Column, Data};
use crate::expression::Expression;
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::evaluate::{evaluate, with_field};
use crate::node::faults::Faults;
use crate::node::series::{PerGroup, Series};
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Time, Writer, distinct, positive};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["stateDuration", "stateCount"],
    properties: &["as", "unit"],
    parse,
};

/// Adds a field with the time, or the number of points, for which a condition has been true.
///
/// ```
/// use corsair_stream::pipeline::TrackState;
///
/// let text = "stream | from('cpu') | stateDuration(usage > 90).as('hot').unit(1m)";
/// let pipeline = corsair_stream::language::parse(text)?;
/// let state = pipeline.nodes()[1].what.get::<TrackState>().expect("a stateDuration node");
/// assert_eq!(&*state.into, "hot");
/// # Ok::<(), corsair_stream::language::LanguageError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TrackState {
    /// The condition that defines the state.
    pub condition: Expression,
    /// The name of the field.
    pub into: Arc<str>,
    /// The unit of the duration, which is a float. `None` counts points, as an integer.
    pub unit: Option<Duration>,
}

impl<'p> Chain<'p> {
    /// Adds a `stateDuration`: the field `state_duration` has the seconds for which the condition has been
    /// true, or -1.
    pub fn state_duration(self, condition: impl Into<Expression>) -> Chain<'p> {
        self.then(TrackState {
            condition: condition.into(),
            into: "state_duration".into(),
            unit: Some(Duration::from_secs(1)),
        })
    }

    /// Adds a `stateCount`: the field `state_count` has the number of points for which the condition has been
    /// true, or -1.
    pub fn state_count(self, condition: impl Into<Expression>) -> Chain<'p> {
        self.then(TrackState {
            condition: condition.into(),
            into: "state_count".into(),
            unit: None,
        })
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let counts = call.name == KIND.names[1];
    let condition = parser.argument(Parser::condition)?;
    let (mut into, mut unit) = (None, None);
    let properties = &KIND.properties[..if counts { 1 } else { 2 }];
    while let Some((property, span)) = parser.property(properties)? {
        match property {
            "as" => set(&mut into, parser.one_name(span)?, "as", span)?,
            _ => set(&mut unit, parser.argument(Parser::duration)?, "unit", span)?,
        }
    }
    let (into_default, unit) = match counts {
        true => ("state_count", None),
        false => ("state_duration", unit.or(Some(Duration::from_secs(1)))),
    };
    Ok(AnyDefinition::from(TrackState {
        condition,
        into: into.unwrap_or_else(|| into_default.into()),
        unit,
    }))
}

impl Definition for TrackState {
    fn name(&self) -> &'static str {
        KIND.names[usize::from(self.unit.is_none())]
    }

    fn check(&mut self) -> Result<(), Rule> {
        if let Some(unit) = self.unit {
            positive("unit", unit)?;
        }
        distinct([&self.into])
    }

    fn expressions(&mut self) -> Vec<&mut Expression> {
        vec![&mut self.condition]
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&self.condition])?;
        out.text("as", Some(&self.into))?;
        match self.unit {
            Some(unit) => out.property("unit", &[&Time(unit)]),
            None => Ok(()),
        }
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(TrackStateOperator {
            condition: self.condition.clone(),
            into: self.into.clone(),
            unit: self.unit.map(|unit| unit.as_nanos() as f64),
            groups: Series::new(context.limits),
            faults: context.faults.clone(),
        })
    }
}

/// The operator of a `stateDuration` or `stateCount`.
struct TrackStateOperator {
    condition: Expression,
    into: Arc<str>,
    /// The unit in nanoseconds; `None` counts points.
    unit: Option<f64>,
    groups: Series<Track>,
    faults: Faults,
}

/// While the condition is true: the time of the first point, and the number of points.
type Track = Option<(i64, i64)>;

impl PerGroup for TrackStateOperator {
    type Value = Track;

    fn series(&mut self) -> &mut Series<Track> {
        &mut self.groups
    }

    fn results(&self, batch: &Batch, track: &mut Track) -> Batch {
        let (rows, data) = evaluate(&self.condition, true, batch, &self.faults, |rows| {
            self.condition.column(&batch.block, rows)
        });
        let evaluated = rows.len();
        let results = rows.iter().map(|row| (row as u32, data.get(row)));
        let (rows, holds): (Vec<u32>, Vec<bool>) = results
            .filter_map(|(row, result)| Some((row, result? == Value::Boolean(true))))
            .unzip();
        if rows.len() < evaluated {
            let missing = "the condition has no value: a field or tag is missing";
            self.faults.add(evaluated - rows.len(), &missing);
        }
        let block = batch.block.gather(&rows);
        let steps = holds.iter().zip(&*block.times).map(|(holds, time)| {
            *track = holds.then(|| match *track {
                Some((since, count)) => (since, count + 1),
                None => (*time, 1),
            });
            track.map(|(since, count)| (time.saturating_sub(since), count))
        });
        let data = match self.unit {
            Some(unit) => {
                let duration = |(elapsed, _): (i64, i64)| elapsed as f64 / unit;
                let values = steps.map(|step| step.map_or(-1.0, duration)).collect();
                let present = None;
                Data::Float(Cells { values, present })
            }
            None => {
                let values = steps.map(|step| step.map_or(-1, |(_, count)| count));
                let (values, present) = (values.collect(), None);
                Data::Integer(Cells { values, present })
            }
        };
        let column = Column {
            name: self.into.clone(),
            data: Arc::new(data),
        };
        Batch::all(Arc::new(with_field(&block, column)), batch.group.clone())
    }
}

impl Operator for TrackStateOperator {
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
