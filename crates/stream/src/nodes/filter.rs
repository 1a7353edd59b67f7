//! `where`: passes on the points for which a condition is true.

use crate::batch::{Batch, Flow};
use crate::expression::Expression;
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::AnyDefinition;
use crate::node::evaluate::evaluate;
use crate::node::faults::Faults;
use crate::node::{Built, Context, Counters, Definition, Kind, Operator};
use crate::pipeline::{Chain, Writer};
use std::fmt;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["where"],
    properties: &[],
    parse,
};

/// Passes on the points for which a condition is true.
#[derive(Clone, Debug, PartialEq)]
pub struct Where {
    /// The condition that points must satisfy.
    pub condition: Expression,
}

impl<'p> Chain<'p> {
    /// Adds a `where`, which passes on the points for which the condition is true.
    pub fn filter(self, condition: impl Into<Expression>) -> Chain<'p> {
        let condition = condition.into();
        self.then(Where { condition })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let condition = program.parser.argument(Parser::condition)?;
    Ok(AnyDefinition::from(Where { condition }))
}

impl Definition for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn expressions(&mut self) -> Vec<&mut Expression> {
        vec![&mut self.condition]
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&self.condition])
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(WhereOperator {
            condition: self.condition.clone(),
            faults: context.faults.clone(),
        })
    }
}

/// The operator of a `where`.
struct WhereOperator {
    condition: Expression,
    faults: Faults,
}

impl Operator for WhereOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let condition = &self.condition;
        out.extend(flow.map(|batch| {
            let (_, rows) = evaluate(condition, true, &batch, &self.faults, |rows| {
                condition.select(&batch.block, rows)
            });
            Batch { rows, ..batch }
        }));
    }

    fn counters(&self) -> Counters {
        vec![("errors", self.faults.counter())]
    }
}
