//! `where`: passes on the points for which a condition is true.

use crate::batch::{Batch, Flow};
use crate::expression::{Binary, Expression};
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::AnyDefinition;
use crate::node::evaluate::evaluate;
use crate::node::faults::Faults;
use crate::node::memory::{Memories, Memory, Remembered};
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
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

    fn remembers(&self) -> bool {
        true
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let mut calls = 0;
        let conditions = match self.condition.remembers() {
            true => conjuncts(&self.condition),
            false => vec![self.condition.clone()],
        };
        let conditions = conditions.into_iter().map(|mut condition| {
            let remembered = Remembered::take_from(&mut condition, &mut calls);
            (condition, remembered)
        });
        Built::from(WhereOperator {
            conditions: conditions.collect(),
            memories: Memories::new(calls, context.limits),
            faults: context.faults.clone(),
        })
    }
}

/// Returns the parts of a condition that are connected by `AND`, the first one first. A part with memory takes only the
/// points for which the parts before it are true.
fn conjuncts(condition: &Expression) -> Vec<Expression> {
    let (mut parts, mut rest) = (Vec::new(), condition);
    while let Expression::Binary(Binary::And, left, right) = rest {
        parts.push((**right).clone());
        rest = left;
    }
    parts.push(rest.clone());
    parts.reverse();
    parts
}

/// The operator of a `where`.
struct WhereOperator {
    /// Conditions that must all be true, with their functions that remember points.
    conditions: Vec<(Expression, Remembered)>,
    memories: Memories,
    faults: Faults,
}

impl WhereOperator {
    fn selected(&self, mut batch: Batch, mut memory: &mut [Memory]) -> Batch {
        for (condition, remembered) in &self.conditions {
            let (own, rest) = memory.split_at_mut(remembered.len());
            memory = rest;
            batch = remembered.add(batch, own, &self.faults);
            let (_, rows) = evaluate(condition, true, &batch, &self.faults, |rows| {
                condition.select(&batch.block, rows)
            });
            let block = remembered.without(&batch.block);
            batch = Batch {
                rows,
                block,
                ..batch
            };
        }
        batch
    }
}

impl Operator for WhereOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let mut memories = std::mem::take(&mut self.memories);
        if let Some(memory) = memories.of(&flow) {
            out.extend(flow.map(|batch| self.selected(batch, memory)));
        }
        self.memories = memories;
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("errors", self.faults.counter())];
        counters.extend(self.memories.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        self.memories.save()
    }

    fn restore(&mut self, state: &State) {
        self.memories.restore(state);
    }
}
