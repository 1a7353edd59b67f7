//! `union`: merges the points of several inputs, in the order of time.
//!
//! A point waits until every input has reached the time of the point. If too many points wait, or the stream has ended,
//! the oldest points are sent on.

use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::{Block, Origin};
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::retain::RetainedBlocks;
use crate::node::series::Limits;
use crate::node::{Built, Context, Definition, Input, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Writer};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["union"],
    properties: &["rename"],
    parse,
};

/// The points of all inputs, in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Union {
    /// The measurement of the points; `None` if each point keeps its own.
    pub rename: Option<Arc<str>>,
}

impl<'p> Chain<'p> {
    /// Adds a `union`: the points of this and other chains, in the order of time.
    pub fn union(self, others: impl IntoIterator<Item = Chain<'p>>) -> Chain<'p> {
        self.then_with(others, Union::default())
    }
}

fn parse<'t>(program: &mut Program<'t>, call: &mut Call<'t>) -> Parsed<AnyDefinition> {
    program.others(call, |_, _| Ok(false))?;
    let mut rename = None;
    while let Some((property, span)) = program.parser.property(KIND.properties)? {
        let name = program.parser.argument(Parser::string)?;
        set(&mut rename, name, property, span)?;
    }
    Ok(AnyDefinition::from(Union { rename }))
}

impl Definition for Union {
    fn name(&self) -> &'static str {
        "union"
    }

    fn check_inputs(&self, inputs: &[Input<'_>]) -> Result<(), Rule> {
        match Input::of_windows(inputs) {
            Some(input) => Err(Rule::UnionOfWindows { input }),
            None => Ok(()),
        }
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.others(None)?;
        out.text("rename", self.rename.as_ref())
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let inputs = context.inputs.iter();
        Built::from(UnionOperator {
            rename: self.rename.clone(),
            inputs: inputs.map(|_| Side::default()).collect(),
            points: 0,
            limits: context.limits,
            retained: RetainedBlocks::new(context.limits.bytes),
            renamed: None,
        })
    }
}

/// The operator of a `union`.
struct UnionOperator {
    rename: Option<Arc<str>>,
    inputs: Vec<Side>,
    /// The number of waiting points.
    points: usize,
    limits: Limits,
    retained: RetainedBlocks,
    /// The block that was renamed last, and the renamed block.
    renamed: Option<(Arc<Block>, Arc<Block>)>,
}

/// The saved state of an input: points that are not due, and its latest time.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct SavedSide {
    waiting: Vec<(Group, Block)>,
    latest: Option<i64>,
}

#[derive(Default)]
struct Side {
    waiting: VecDeque<Batch>,
    latest: Option<i64>,
}

impl UnionOperator {
    fn named(&mut self, batch: Batch) -> Batch {
        let Some(name) = &self.rename else {
            return batch;
        };
        let block = match &self.renamed {
            Some((of, block)) if Arc::ptr_eq(of, &batch.block) => block.clone(),
            _ => {
                let mut block = Block::clone(&batch.block);
                block.origin = Arc::new(Origin {
                    measurement: name.clone(),
                    ..(*block.origin).clone()
                });
                let block = Arc::new(block);
                self.renamed = Some((batch.block.clone(), block.clone()));
                block
            }
        };
        Batch { block, ..batch }
    }

    /// Sends the points that are not after `mark`, the earliest first.
    fn hand_on(&mut self, mark: i64, out: &mut Vec<Flow>) {
        loop {
            let time = |input: &Side| {
                let batch = input.waiting.front()?;
                Some(batch.block.times[batch.rows.iter().next()?])
            };
            let fronts = self.inputs.iter().enumerate();
            let fronts = fronts.filter_map(|(at, input)| Some((time(input)?, at)));
            let mut fronts: Vec<(i64, usize)> = fronts.collect();
            fronts.sort_unstable();
            let Some(&(first, at)) = fronts.first() else {
                return;
            };
            if first > mark {
                return;
            }
            // Sends the points of this input up to the earliest point that another input has, or may still receive.
            let until = fronts.get(1).map_or(mark, |(other, _)| mark.min(*other));
            let Some(batch) = self.inputs[at].waiting.pop_front() else {
                return;
            };
            let times = &batch.block.times;
            let count = batch
                .rows
                .iter()
                .take_while(|&row| times[row] <= until)
                .count();
            let count = count.max(1);
            self.points -= count;
            if count < batch.rows.len() {
                let rest = batch.rows.slice(count, batch.rows.len());
                self.inputs[at].waiting.push_front(batch.with_rows(rest));
            }
            let rows: Rows = batch.rows.slice(0, count);
            let batch = self.named(batch.with_rows(rows));
            out.push(Flow::Points(batch));
        }
    }
}

impl Operator for UnionOperator {
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>) {
        let batch = flow.into_points();
        let Some(last) = batch.rows.iter().last() else {
            return;
        };
        let time = batch.block.times[last];
        let beside = self.inputs.iter().map(|input| input.waiting.len());
        let beside = beside.sum::<usize>() * size_of::<Batch>() * 2;
        let fits = self.retained.note(&batch.block, beside);
        self.points += batch.rows.len();
        let side = &mut self.inputs[input];
        side.latest = side.latest.max(Some(time));
        side.waiting.push_back(batch);
        // Sends points up to the time that every input has reached.
        let mark = self.inputs.iter().map(|input| input.latest).min().flatten();
        if let Some(mark) = mark {
            self.hand_on(mark, out);
        }
        if !fits || self.points > self.limits.points {
            self.hand_on(i64::MAX, out);
        }
        if self.retained.is_due() {
            let inputs = &mut self.inputs;
            self.retained.compact(|each| {
                let waiting = inputs.iter_mut().flat_map(|input| &mut input.waiting);
                waiting.for_each(each);
            });
        }
    }

    fn finish(&mut self, out: &mut Vec<Flow>) {
        self.hand_on(i64::MAX, out);
    }

    fn save(&self) -> Option<State> {
        let saved = |input: &Side| {
            let points = input.waiting.iter();
            let points = points.map(|batch| ((*batch.group).clone(), batch.to_block()));
            SavedSide {
                waiting: points.collect(),
                latest: input.latest,
            }
        };
        let inputs: Vec<SavedSide> = self.inputs.iter().map(saved).collect();
        Some(State::new(self.points, &inputs))
    }

    fn restore(&mut self, state: &State) {
        let saved: Option<Vec<SavedSide>> = state.read();
        for (input, saved) in self.inputs.iter_mut().zip(saved.into_iter().flatten()) {
            input.latest = saved.latest;
            for (group, block) in saved.waiting {
                self.points += block.rows();
                let batch = Batch::all(Arc::new(block), Arc::new(group));
                input.waiting.push_back(batch);
            }
        }
    }
}
