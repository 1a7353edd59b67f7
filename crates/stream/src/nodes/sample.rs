//! `sample`: every n-th point, or the points at multiples of a duration.

use crate::batch::{Batch, Flow, Rows};
use crate::language::{Call, Parsed, Program, Token};
use crate::node::definition::AnyDefinition;
use crate::node::series::{PerGroup, Series};
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Time, Writer, positive};
use std::fmt;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["sample"],
    properties: &[],
    parse,
};

/// Passes on some points of each group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// The first of every n points, where n is this number. Each window is counted separately.
    Count(u64),
    /// Points whose time is a multiple of this duration.
    Every(Duration),
}

impl<'p> Chain<'p> {
    /// Adds a `sample`.
    pub fn sample(self, sample: Sample) -> Chain<'p> {
        self.then(sample)
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let sample = program.parser.argument(|parser| match parser.token {
        Token::Integer(_) => parser.count().map(Sample::Count),
        _ => parser.duration().map(Sample::Every),
    });
    sample.map(AnyDefinition::from)
}

impl Definition for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn check(&mut self) -> Result<(), Rule> {
        match self {
            Sample::Count(0) => Err(Rule::NotPositive { property: "sample" }),
            Sample::Count(_) => Ok(()),
            Sample::Every(every) => positive("sample", *every),
        }
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        match self {
            Sample::Count(count) => out.arguments(&[count]),
            Sample::Every(every) => out.arguments(&[&Time(*every)]),
        }
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(SampleOperator {
            sample: *self,
            counts: Series::new(context.limits),
        })
    }
}

/// The operator of a `sample`.
struct SampleOperator {
    sample: Sample,
    /// The number of points of each group so far.
    counts: Series<u64>,
}

impl PerGroup for SampleOperator {
    type Value = u64;

    fn series(&mut self) -> &mut Series<u64> {
        &mut self.counts
    }

    fn results(&self, batch: &Batch, count: &mut u64) -> Batch {
        let times = &batch.block.times;
        let rows: Vec<u32> = match self.sample {
            Sample::Count(every) => {
                let first = *count;
                *count += batch.rows.len() as u64;
                let rows = batch.rows.iter().zip(first..);
                let kept = rows.filter(|(_, count)| count % every == 0);
                kept.map(|(row, _)| row as u32).collect()
            }
            Sample::Every(every) => {
                let every = every.as_nanos() as i64;
                let rows = batch.rows.iter();
                let kept = rows.filter(|&row| times[row].rem_euclid(every) == 0);
                kept.map(|row| row as u32).collect()
            }
        };
        batch.with_rows(Rows::List(rows.into()))
    }
}

impl Operator for SampleOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        match self.sample {
            Sample::Count(_) => self.map(flow, out),
            Sample::Every(_) => out.extend(flow.map(|batch| self.results(&batch, &mut 0))),
        }
    }

    fn counters(&self) -> Counters {
        self.counts.counters()
    }

    fn save(&self) -> Option<State> {
        Some(self.counts.save())
    }

    fn restore(&mut self, state: &State) {
        self.restore_groups(state);
    }
}
