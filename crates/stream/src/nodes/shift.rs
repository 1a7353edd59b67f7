//! `shift`: moves points and windows to an earlier or later time.

use crate::batch::{Batch, Flow};
use crate::block::Block;
use crate::language::{Call, Parsed, Program};
use crate::node::definition::AnyDefinition;
use crate::node::{Built, Context, Definition, Kind, Operator};
use crate::pipeline::{Chain, Rule, Time, Writer, positive};
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["shift"],
    properties: &[],
    parse,
};

/// Moves points and windows in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// The distance by which timestamps are moved.
    pub by: Duration,
    /// True if timestamps are moved to an earlier time.
    pub back: bool,
}

impl<'p> Chain<'p> {
    /// Adds a `shift`: moves points and windows to a later time.
    pub fn shift(self, by: Duration) -> Chain<'p> {
        self.then(Shift { by, back: false })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let shift = program.parser.argument(|parser| {
        let back = parser.eat("-");
        let by = parser.duration()?;
        Ok(Shift { by, back })
    });
    shift.map(AnyDefinition::from)
}

/// A duration with its sign.
struct SignedShift(Shift);

impl Display for SignedShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0.back { "-" } else { "" };
        write!(f, "{sign}{}", Time(self.0.by))
    }
}

impl Definition for Shift {
    fn name(&self) -> &'static str {
        "shift"
    }

    fn check(&mut self) -> Result<(), Rule> {
        positive("shift", self.by)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&SignedShift(self.clone())])
    }

    fn build(&self, _: &Context<'_>) -> Built {
        let by = self.by.as_nanos() as i64;
        Built::from(ShiftOperator {
            by: if self.back { -by } else { by },
        })
    }
}

/// The operator of a `shift`.
struct ShiftOperator {
    /// The distance in nanoseconds by which timestamps are moved; negative towards the past.
    by: i64,
}

impl Operator for ShiftOperator {
    fn take(&mut self, _: usize, mut flow: Flow, out: &mut Vec<Flow>) {
        if let Flow::Window(window) = &mut flow {
            window.end = window.end.saturating_add(self.by);
        }
        out.extend(flow.map(|batch| {
            let block = batch.to_block();
            let times = block.times.iter();
            let times = times.map(|time| time.saturating_add(self.by)).collect();
            Batch::all(Arc::new(Block { times, ..block }), batch.group)
        }));
    }
}
