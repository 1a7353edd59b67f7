//! `count`, `sum`, `mean` and others: one point for a window; `distinct`: a window of points.
//!
//! The result has the time of the window's end, and the tags of the group. `min`, `max`, `percentile`, `first` and
//! `last` select a point: the result has its tags and other fields, and its time with `usePointTimes`. A window in
//! which no point has the field has no result, except that `count` is zero. Values that are not numbers are left out,
//! and so is a window whose sum does not fit into 64 bits.
//!
//! Points outside of windows are aggregated by time: all points with the same time are aggregated as soon as a point
//! with another time arrives.

mod number;
mod operator;

use super::buffer::BufferOperator;
use crate::language::{Call, Parsed, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Field, Rule, Writer, distinct};
use operator::AggregateOperator;
use std::fmt::{self, Display};
use std::sync::Arc;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &[
        "count",
        "sum",
        "mean",
        "min",
        "max",
        "first",
        "last",
        "median",
        "spread",
        "stddev",
        "distinct",
        "percentile",
    ],
    properties: &["as", "usePointTimes"],
    parse,
};

/// A function of the values of one field in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// The number of points that have the field.
    Count,
    /// The sum of the values.
    Sum,
    /// The mean of the values.
    Mean,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The value at this percentage of the values, from 0 to 100, by InfluxDB's rule: among n sorted values, the
    /// value at position n · percent / 100 (rounded; the first position is 1). There is no result if that position is
    /// 0.
    Percentile(f64),
    /// The value of the first point.
    First,
    /// The value of the last point.
    Last,
    /// The median: the middle value, or the mean of the two middle values.
    Median,
    /// The difference between the largest and the smallest value.
    Spread,
    /// The standard deviation of a sample.
    Stddev,
    /// The distinct values, one point for each.
    Distinct,
}

/// The functions without a parameter, in the order of their names in [`KIND`].
const FUNCTIONS: [Aggregate; 11] = [
    Aggregate::Count,
    Aggregate::Sum,
    Aggregate::Mean,
    Aggregate::Min,
    Aggregate::Max,
    Aggregate::First,
    Aggregate::Last,
    Aggregate::Median,
    Aggregate::Spread,
    Aggregate::Stddev,
    Aggregate::Distinct,
];

impl Aggregate {
    /// Returns the function's name in the language, which is also the default name of the result.
    pub fn name(self) -> &'static str {
        let place = FUNCTIONS.iter().position(|function| *function == self);
        KIND.names[place.unwrap_or(FUNCTIONS.len())]
    }

    /// True if the result is one of the points, with its tags and other fields.
    pub fn selects(self) -> bool {
        matches!(
            self,
            Aggregate::Min
                | Aggregate::Max
                | Aggregate::Percentile(_)
                | Aggregate::First
                | Aggregate::Last
        )
    }
}

/// A function of one field, applied to every window.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregation {
    /// The function to compute.
    pub function: Aggregate,
    /// The name of the aggregated field.
    pub field: Arc<str>,
    /// The name of the result.
    pub into: Arc<str>,
    /// True if the result of a selector has the time of its point, not that of the window.
    pub point_times: bool,
}

impl<'p> Chain<'p> {
    /// Adds an aggregate: a function of one field, with a name for the result.
    pub fn aggregate(
        self,
        function: Aggregate,
        field: impl Into<Arc<str>>,
        into: impl Into<Arc<str>>,
    ) -> Chain<'p> {
        self.then(Aggregation {
            function,
            field: field.into(),
            into: into.into(),
            point_times: false,
        })
    }

    /// Adds a `count`: the number of points of a window that have the field.
    pub fn count(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Count, field, "count")
    }

    /// Adds a `sum` of a window's values.
    pub fn sum(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Sum, field, "sum")
    }

    /// Adds a `mean` of a window's values.
    pub fn mean(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Mean, field, "mean")
    }

    /// Adds a `min`: the point with the smallest value of a window.
    pub fn min(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Min, field, "min")
    }

    /// Adds a `max`: the point with the largest value of a window.
    pub fn max(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Max, field, "max")
    }

    /// Adds a `percentile` of a window's values; `percent` lies between 0 and 100.
    pub fn percentile(self, field: impl Into<Arc<str>>, percent: f64) -> Chain<'p> {
        self.aggregate(Aggregate::Percentile(percent), field, "percentile")
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let named = KIND.names.iter().position(|name| *name == call.name);
    let plain = named.and_then(|place| FUNCTIONS.get(place).copied());
    let (field, function) = parser.argument(|parser| {
        let field = parser.field()?;
        let function = match plain {
            Some(function) => function,
            None => {
                parser.expect(",", "`,` and a number from 0 to 100")?;
                Aggregate::Percentile(parser.number()?)
            }
        };
        Ok((field, function))
    })?;
    let (mut into, mut point_times) = (None, false);
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "as" => set(&mut into, parser.one_name(span)?, "as", span)?,
            _ => {
                parser.nothing()?;
                point_times = true;
            }
        }
    }
    Ok(AnyDefinition::from(Aggregation {
        function,
        field,
        into: into.unwrap_or_else(|| function.name().into()),
        point_times,
    }))
}

impl Definition for Aggregation {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn gives_windows(&self, _: bool) -> bool {
        self.function == Aggregate::Distinct
    }

    fn check(&mut self) -> Result<(), Rule> {
        if let Aggregate::Percentile(percent) = self.function
            && !(0.0..=100.0).contains(&percent)
        {
            return Err(Rule::Percentile(percent));
        }
        distinct([&self.field])?;
        distinct([&self.into])
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let percent = match self.function {
            Aggregate::Percentile(percent) => Some(format!("{percent:?}")),
            _ => None,
        };
        let field = Field(&self.field);
        let percent = percent.as_ref().map(|percent| percent as &dyn Display);
        let arguments = [&field as &dyn Display].into_iter().chain(percent);
        out.arguments(&arguments.collect::<Vec<_>>())?;
        out.flag("usePointTimes", self.point_times)?;
        let named = *self.into != *self.function.name();
        out.text("as", named.then_some(&self.into))
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let of_points = !context.of_windows;
        Built::from(AggregateOperator {
            of: self.clone(),
            faults: context.faults.clone(),
            moments: of_points.then(|| BufferOperator::moments(context.limits)),
        })
    }
}
