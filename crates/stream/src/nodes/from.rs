//! `from`: the beginning of a chain, which takes points from writes.

use super::buffer::{nearest, truncated};
use crate::batch::{Batch, Flow};
use crate::block::Block;
use crate::language::{Call, Parsed, Parser, Problem, Program, Span, fail, set};
use crate::node::definition::AnyDefinition;
use crate::node::{Built, Context, Definition, Kind, Operator};
use crate::pipeline::{Rule, Source, Stream, Subscription, Time, Writer, fits};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["from"],
    properties: &["database", "retentionPolicy", "measurement", "truncate", "round"],
    parse,
};

impl<'p> Stream<'p> {
    /// Begins a chain with the points of all writes, unless the source restricts them.
    pub fn from(self) -> Source<'p> {
        Source(self.push(AnyDefinition::from(Subscription::default()), Vec::new()))
    }
}

impl<'p> Source<'p> {
    /// Takes only points of this database.
    #[must_use]
    pub fn database(self, name: impl Into<Arc<str>>) -> Source<'p> {
        self.narrow(|from| from.database = Some(name.into()))
    }

    /// Takes only points of this retention policy.
    #[must_use]
    pub fn retention_policy(self, name: impl Into<Arc<str>>) -> Source<'p> {
        self.narrow(|from| from.policy = Some(name.into()))
    }

    /// Takes only points of this measurement.
    #[must_use]
    pub fn measurement(self, name: impl Into<Arc<str>>) -> Source<'p> {
        self.narrow(|from| from.measurement = Some(name.into()))
    }

    fn narrow(self, change: impl FnOnce(&mut Subscription)) -> Source<'p> {
        self.0.change(|what| {
            if let Some(from) = what.get_mut() {
                change(from);
            }
        });
        self
    }
}

/// Refuses a `from` within a chain.
fn parse(_: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    fail(Problem::From, call.span)
}

/// Parses a `from` that begins a chain. Its properties may follow as long as the chain allows them.
pub(crate) fn begin(parser: &mut Parser<'_>) -> Parsed<AnyDefinition> {
    let mut measurement = None;
    parser.arguments(|parser| {
        let span = parser.span;
        let name = parser.string()?;
        let (node, takes) = ("from", "one measurement");
        match measurement.replace(name) {
            None => Ok(()),
            Some(_) => fail(Problem::Surplus { node, takes }, span),
        }
    })?;
    Ok(AnyDefinition::from(Subscription {
        measurement,
        ..Subscription::default()
    }))
}

/// Reads the value of a property of a `from` that began a chain.
pub(crate) fn property(
    parser: &mut Parser<'_>,
    from: &mut AnyDefinition,
    property: &'static str,
    span: Span,
) -> Parsed<()> {
    let Some(from) = from.get_mut::<Subscription>() else {
        unreachable!("chains remember only a `from`");
    };
    let slot = match property {
        "truncate" => Some(&mut from.truncate),
        "round" => Some(&mut from.round),
        _ => None,
    };
    if let Some(slot) = slot {
        *slot = parser.argument(Parser::duration)?;
        return Ok(());
    }
    let value = parser.argument(Parser::string)?;
    let slot = match property {
        "database" => &mut from.database,
        "retentionPolicy" => &mut from.policy,
        _ => &mut from.measurement,
    };
    set(slot, value, property, span)
}

impl Definition for Subscription {
    fn name(&self) -> &'static str {
        "from"
    }

    fn gives_windows(&self, _: bool) -> bool {
        false
    }

    fn check(&mut self) -> Result<(), Rule> {
        fits("truncate", self.truncate)?;
        fits("round", self.round)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[])?;
        out.text("database", self.database.as_ref())?;
        out.text("retentionPolicy", self.policy.as_ref())?;
        out.text("measurement", self.measurement.as_ref())?;
        for (name, step) in [("truncate", self.truncate), ("round", self.round)] {
            if !step.is_zero() {
                out.property(name, &[&Time(step)])?;
            }
        }
        Ok(())
    }

    fn build(&self, _: &Context<'_>) -> Built {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Built::from(FromOperator {
            truncate: nanos(self.truncate),
            round: nanos(self.round),
        })
    }

    fn subscription(&self) -> Option<&Subscription> {
        Some(self)
    }
}

/// Passes on all points, because the routes decide which points a `from` gets.
struct FromOperator {
    /// The unit of `truncate` in nanoseconds; zero leaves times unchanged.
    truncate: i64,
    round: i64,
}

impl Operator for FromOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        if self.truncate == 0 && self.round == 0 {
            return out.push(flow);
        }
        out.extend(flow.map(|batch| {
            let block = batch.to_block();
            let times = block.times.iter().map(|&time| {
                let time = match self.truncate {
                    0 => time,
                    step => truncated(time, step),
                };
                match self.round {
                    0 => time,
                    step => nearest(time, step),
                }
            });
            let times = times.collect();
            Batch::all(Arc::new(Block { times, ..block }), batch.group)
        }));
    }
}
