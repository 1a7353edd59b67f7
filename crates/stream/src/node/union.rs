//! `union`: the points of several inputs as one stream, in the order of time.
//!
//! A point waits until every input has come as far as its time. When more wait than may, the oldest
//! go on their way; so they do when an input has ended, or all have.

use super::retain::Retained;
use super::series::Limits;
use super::{Counters, Kept, Operator};
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::{Block, Origin};
use std::collections::VecDeque;
use std::sync::Arc;

/// See the [module](self).
pub(crate) struct Union {
    rename: Option<Arc<str>>,
    inputs: Vec<Input>,
    /// Points that wait.
    points: usize,
    limits: Limits,
    retained: Retained,
    /// The block that was renamed last, and what it has become.
    renamed: Option<(Arc<Block>, Arc<Block>)>,
}

/// What an input keeps: points that are not due, and how far it has come.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedInput {
    waiting: Vec<(Group, Block)>,
    latest: Option<i64>,
}

impl SavedInput {
    pub(crate) fn points(&self) -> usize {
        self.waiting.iter().map(|(_, block)| block.rows()).sum()
    }
}

#[derive(Default)]
struct Input {
    waiting: VecDeque<Batch>,
    latest: Option<i64>,
}

impl Union {
    pub(crate) fn new(rename: Option<Arc<str>>, inputs: usize, limits: Limits) -> Union {
        Union {
            rename,
            inputs: (0..inputs).map(|_| Input::default()).collect(),
            points: 0,
            limits,
            retained: Retained::new(limits.bytes),
            renamed: None,
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        Vec::new()
    }

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

    /// Hands on the points that are not after `mark`, the earliest first.
    fn hand_on(&mut self, mark: i64, out: &mut Vec<Flow>) {
        loop {
            let time = |input: &Input| {
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
            // As far as it comes before what the others have, and what they may still get.
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

impl Operator for Union {
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
        // As far as every input has come.
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

    fn save(&self) -> Option<Kept> {
        let saved = |input: &Input| {
            let points = input.waiting.iter();
            let points = points.map(|batch| ((*batch.group).clone(), batch.to_block()));
            SavedInput {
                waiting: points.collect(),
                latest: input.latest,
            }
        };
        Some(Kept::Union(self.inputs.iter().map(saved).collect()))
    }

    fn restore(&mut self, kept: Kept) {
        let Kept::Union(inputs) = kept else {
            return;
        };
        for (input, saved) in self.inputs.iter_mut().zip(inputs) {
            input.latest = saved.latest;
            for (group, block) in saved.waiting {
                self.points += block.rows();
                let batch = Batch::all(Arc::new(block), Arc::new(group));
                input.waiting.push_back(batch);
            }
        }
    }
}
