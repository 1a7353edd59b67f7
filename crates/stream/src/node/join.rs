//! `join`: points of two inputs that belong to one time.
//!
//! A time belongs to the multiple of the tolerance nearest to it. Points of one group whose times
//! belong to the same multiple are joined, the first with the first, the second with the second. A
//! point without a partner is counted and left out once the other input has gone past its time, or
//! has ended, or when too many wait. Within an input, the points of a group are expected in the order
//! of time.

use super::{Counter, NodeError, Operator};
use crate::Value;
use crate::batch::{Batch, Flow, Group};
use crate::block::{Block, Column, Data, Words};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// So many points of one input may wait for the other.
const LIMIT: usize = 1 << 20;

/// See the [module](self).
pub(crate) struct Join {
    prefixes: [Arc<str>; 2],
    /// At least 1.
    tolerance: i64,
    groups: FxHashMap<Arc<Group>, [Side; 2]>,
    waiting: [usize; 2],
    /// `<prefix>.<field>` by side and field.
    names: [FxHashMap<Arc<str>, Arc<str>>; 2],
    unmatched: Counter,
}

/// The points of one input and group that have no partner yet.
#[derive(Default)]
struct Side {
    points: VecDeque<Point>,
    /// The latest time so far.
    latest: Option<i64>,
}

struct Point {
    time: i64,
    block: Arc<Block>,
    row: usize,
}

impl Join {
    pub(crate) fn new(prefixes: [Arc<str>; 2], tolerance: Duration) -> Join {
        Join {
            prefixes,
            tolerance: i64::try_from(tolerance.as_nanos())
                .unwrap_or(i64::MAX)
                .max(1),
            groups: FxHashMap::default(),
            waiting: [0, 0],
            names: Default::default(),
            unmatched: Counter::default(),
        }
    }

    /// Joins what can be joined of a group, and forgets what cannot be any more.
    fn pair(&mut self, group: &Arc<Group>) -> Option<Batch> {
        let sides = self.groups.get_mut(group)?;
        let mut pairs = Vec::new();
        loop {
            let [left, right] = sides;
            match (left.points.front(), right.points.front()) {
                (Some(a), Some(b)) if a.time == b.time => {
                    pairs.extend(left.points.pop_front().zip(right.points.pop_front()));
                    self.waiting[0] -= 1;
                    self.waiting[1] -= 1;
                }
                (a, b) => {
                    let past = |point: Option<&Point>, other: &Side| {
                        point.is_some_and(|point| other.latest.is_some_and(|t| t > point.time))
                    };
                    let side = match (past(a, right), past(b, left)) {
                        (true, true) => usize::from(a.map(|a| a.time) > b.map(|b| b.time)),
                        (true, false) => 0,
                        (false, true) => 1,
                        (false, false) => break,
                    };
                    sides[side].points.pop_front();
                    self.waiting[side] -= 1;
                    self.unmatched.add(1);
                }
            }
        }
        (!pairs.is_empty()).then(|| self.joined(group, &pairs))
    }

    /// A block of the pairs: the tags of the group, the fields of both under their prefixes.
    fn joined(&mut self, group: &Arc<Group>, pairs: &[(Point, Point)]) -> Batch {
        let rows = pairs.len();
        let mut columns: Vec<Column> = group.tags.iter().map(|tag| tag_column(tag, rows)).collect();
        for side in 0..2 {
            let mut fields: Vec<(Arc<str>, Vec<Option<Value>>)> = Vec::new();
            for (row, pair) in pairs.iter().enumerate() {
                let point = if side == 0 { &pair.0 } else { &pair.1 };
                for field in point.block.fields() {
                    let Some(value) = field.data.get(point.row) else {
                        continue;
                    };
                    let known = fields.iter_mut().find(|(name, _)| *name == field.name);
                    match known {
                        Some((_, cells)) => cells[row] = Some(value),
                        None => {
                            let mut cells = vec![None; rows];
                            cells[row] = Some(value);
                            fields.push((field.name.clone(), cells));
                        }
                    }
                }
            }
            columns.extend(fields.into_iter().map(|(name, cells)| Column {
                name: self.name(side, &name),
                data: Arc::new(Data::from(cells)),
            }));
        }
        let block = Block {
            origin: pairs[0].0.block.origin.clone(),
            times: pairs.iter().map(|(left, _)| left.time).collect(),
            columns,
        };
        Batch::all(Arc::new(block), group.clone())
    }

    /// Leaves out the older half of the points of the group of which most wait.
    fn give_up(&mut self, side: usize) {
        let longest = self
            .groups
            .values_mut()
            .map(|sides| &mut sides[side].points);
        if let Some(points) = longest.max_by_key(|points| points.len()) {
            let half = points.len().div_ceil(2);
            drop(points.drain(..half));
            self.waiting[side] -= half;
            self.unmatched.add(half);
        }
    }

    fn name(&mut self, side: usize, field: &Arc<str>) -> Arc<str> {
        let prefix = &self.prefixes[side];
        let name = self.names[side].entry(field.clone());
        name.or_insert_with(|| format!("{prefix}.{field}").into())
            .clone()
    }
}

fn tag_column((name, value): &(Arc<str>, Arc<str>), rows: usize) -> Column {
    let code = if value.is_empty() { Words::MISSING } else { 0 };
    Column {
        name: name.clone(),
        data: Arc::new(Data::Tag(Words {
            codes: vec![code; rows],
            words: vec![value.clone()],
        })),
    }
}

impl Operator for Join {
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        let batch = flow.into_points();
        let sides = self.groups.entry(batch.group.clone()).or_default();
        let side = &mut sides[input];
        for row in batch.rows.iter() {
            let time = nearest(batch.block.times[row], self.tolerance);
            side.latest = side.latest.max(Some(time));
            side.points.push_back(Point {
                time,
                block: batch.block.clone(),
                row,
            });
        }
        self.waiting[input] += batch.rows.len();
        out.extend(self.pair(&batch.group).map(Flow::Points));
        if self.waiting[input] > LIMIT {
            self.give_up(input);
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<Flow>) -> Result<(), NodeError> {
        self.unmatched.add(self.waiting.iter().sum());
        self.groups.clear();
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, Counter)> {
        vec![("unmatched", self.unmatched.clone())]
    }
}

/// The multiple of `step` nearest to `time`.
fn nearest(time: i64, step: i64) -> i64 {
    let below = time.div_euclid(step) * step;
    let above = time - below >= step - (time - below);
    below.saturating_add(if above && step > 1 { step } else { 0 })
}
