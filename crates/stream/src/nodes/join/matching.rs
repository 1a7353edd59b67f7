//! `.on`: joins specific points with general points. Specific points are grouped by more tags than the given ones;
//! general points are grouped by the given tags only. A general point is joined with all matching specific points of
//! the same time.
//!
//! A specific point waits for a general point, which then gets the specific point's tags. When every general input
//! has passed the time of a specific point, that point continues alone, to be filled or left out.

use crate::node::series::{Limits, Series};
use crate::batch::{Batch, Group};
use crate::block::Block;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// A point for a group: its input, the point, and its time.
pub(super) type JoinPoint = (usize, Batch, i64);

/// See the [module](self).
pub(super) struct Matching {
    on: Vec<Arc<str>>,
    inputs: usize,
    groups: Series<Buffers>,
    /// The number of points in all groups.
    points: usize,
    most: usize,
    /// The last block of each input, and the number of blocks so far.
    blocks: Vec<(Weak<Block>, u64)>,
    /// For each input: true if its points have more tags; `None` if it has had no points.
    specific: Vec<Option<bool>>,
}

/// The points of all groups with the same values of the matched tags.
#[derive(Default)]
struct Buffers {
    /// General points, by time.
    general: PointsByTime,
    /// Specific points without a match, by time.
    specific: PointsByTime,
    /// The progress of each input.
    heads: Vec<Head>,
}

/// Points by time; points of one time in the order of arrival.
#[derive(Default)]
struct PointsByTime {
    times: BTreeMap<i64, Vec<JoinPoint>>,
    points: usize,
}

impl PointsByTime {
    fn add(&mut self, point: JoinPoint) {
        self.points += 1;
        self.times.entry(point.2).or_default().push(point);
    }

    /// Removes and returns the rows of a time.
    fn take(&mut self, time: i64) -> Vec<JoinPoint> {
        let found = self.times.remove(&time).unwrap_or_default();
        self.points -= found.len();
        found
    }

    /// Takes the points before a time.
    fn take_before(&mut self, time: i64) -> Vec<JoinPoint> {
        let mut before = Vec::new();
        while self
            .times
            .first_key_value()
            .is_some_and(|(first, _)| *first < time)
        {
            before.extend(self.take_first());
        }
        before
    }

    /// Takes the points of the earliest time.
    fn take_first(&mut self) -> Vec<JoinPoint> {
        let first = self.times.pop_first();
        let found = first.map(|(_, points)| points).unwrap_or_default();
        self.points -= found.len();
        found
    }

    fn iter(&self) -> impl Iterator<Item = &JoinPoint> {
        self.times.values().flatten()
    }
}

/// The progress of an input in a group. The specific groups of a block follow each other, each with all of its times,
/// so only the progress before the current block counts.
#[derive(Clone, Copy, Default)]
struct Head {
    before: Option<i64>,
    now: Option<i64>,
    /// The number of the block to which the progress belongs.
    block: u64,
}

impl Head {
    fn reached(&self, block: u64) -> Option<i64> {
        if self.block == block {
            self.before
        } else {
            self.now
        }
    }

    fn reach(&mut self, time: i64, block: u64) {
        if self.block != block {
            self.before = self.now;
            self.block = block;
        }
        self.now = self.now.max(Some(time));
    }
}

/// The serialized form: true for a specific point, then its input, time, group and values.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct MatchingState(Vec<(bool, u32, i64, Group, Block)>);

impl MatchingState {
    pub(super) fn points(&self) -> usize {
        self.0.len()
    }
}

impl Buffers {
    fn points(&self) -> usize {
        self.general.points + self.specific.points
    }
}

impl Matching {
    pub(super) fn new(on: &[Arc<str>], inputs: usize, limits: Limits) -> Matching {
        Matching {
            on: on.to_vec(),
            inputs,
            groups: Series::new(limits),
            points: 0,
            most: limits.points,
            blocks: vec![(Weak::new(), 0); inputs],
            specific: vec![None; inputs],
        }
    }

    /// Takes a point; returns the points that can now go to their groups.
    pub(super) fn take(&mut self, input: usize, point: Batch, time: i64) -> Vec<JoinPoint> {
        let mut sent = Vec::new();
        let specific = point.group.tags.len() > self.on.len();
        let group = Arc::new(self.group(&point.group));
        for (_, gone) in self.groups.expired() {
            self.points -= gone.points();
        }
        let inputs = self.inputs;
        let new = || Buffers {
            heads: vec![Head::default(); inputs],
            ..Buffers::default()
        };
        let full = self.points >= self.most;
        let Some(buffers) = self.groups.entry(&group, 1, new) else {
            return sent;
        };
        let before = buffers.points();
        let (last, number) = &mut self.blocks[input];
        if last.as_ptr() != Arc::as_ptr(&point.block) {
            *last = Arc::downgrade(&point.block);
            *number += 1;
        }
        buffers.heads[input].reach(time, *number);
        *self.specific[input].get_or_insert(specific) |= specific;
        let reached = buffers.heads.iter().zip(&self.blocks).zip(&self.specific);
        let reached = reached.map(|((head, (_, number)), specific)| match specific {
            Some(true) => (true, head.reached(*number)),
            _ => (false, head.now),
        });
        // `None` is less than any time.
        let lowest = |low: Option<Option<i64>>| low.map_or(i64::MAX, |low| low.unwrap_or(i64::MIN));
        // A specific point waits for the general inputs; a general point waits for all inputs.
        let general = reached.clone().filter(|(specific, _)| !specific);
        let alone_before = lowest(general.map(|(_, time)| time).min());
        let gone_before = lowest(reached.map(|(_, time)| time).min());
        sent.extend(buffers.specific.take_before(alone_before));
        if full {
            sent.extend(buffers.specific.take_first());
        }
        if specific {
            let general = buffers.general.times.get(&time);
            let matches = general.into_iter().flatten();
            let matches: Vec<JoinPoint> = matches
                .map(|found| with_group(found, &point.group))
                .collect();
            match matches.is_empty() && time >= alone_before {
                true => buffers.specific.add((input, point, time)),
                false => {
                    sent.push((input, point, time));
                    sent.extend(matches);
                }
            }
        } else {
            let found = (input, point, time);
            for waiting in buffers.specific.take(time) {
                let group = waiting.1.group.clone();
                sent.push(waiting);
                sent.push(with_group(&found, &group));
            }
            if full {
                drop(buffers.general.take_first());
            }
            buffers.general.add(found);
        }
        drop(buffers.general.take_before(gone_before));
        let after = buffers.points();
        self.points = self.points + after - before;
        sent
    }

    /// Returns the values of the matched tags.
    fn group(&self, group: &Group) -> Group {
        let tags = group.tags.iter().filter(|(name, _)| self.on.contains(name));
        Group {
            tags: tags.cloned().collect(),
            measurement: None,
        }
    }

    /// Returns the points without a match, at the end.
    pub(super) fn rest(&mut self) -> Vec<JoinPoint> {
        let groups = self.groups.take().into_iter();
        groups
            .flat_map(|(_, buffers)| buffers.specific.times.into_values().flatten())
            .collect()
    }

    pub(super) fn bytes(&self) -> usize {
        // For each point, its own size and its share of a tree node.
        self.groups.bytes() + self.points * (size_of::<JoinPoint>() * 2 + 64)
    }

    /// Calls a function with each stored batch.
    pub(super) fn each(&mut self, each: &mut dyn FnMut(&mut Batch)) {
        for buffers in self.groups.values_mut() {
            let Buffers {
                general, specific, ..
            } = buffers;
            let points = general
                .times
                .values_mut()
                .chain(specific.times.values_mut());
            points.flatten().for_each(|(_, batch, _)| each(batch));
        }
    }

    pub(super) fn save(&self) -> MatchingState {
        let mut saved = Vec::new();
        for (_, buffers) in self.groups.iter() {
            for (specific, points) in [(false, &buffers.general), (true, &buffers.specific)] {
                saved.extend(points.iter().map(|(input, batch, time)| {
                    let group = (*batch.group).clone();
                    (specific, *input as u32, *time, group, batch.to_block())
                }));
            }
        }
        MatchingState(saved)
    }

    pub(super) fn restore(&mut self, saved: MatchingState) {
        for (specific, input, time, group, block) in saved.0 {
            let batch = Batch::all(Arc::new(block), Arc::new(group));
            let key = Arc::new(self.group(&batch.group));
            let inputs = self.inputs;
            let new = || Buffers {
                heads: vec![Head::default(); inputs],
                ..Buffers::default()
            };
            let Some(buffers) = self.groups.entry(&key, 1, new) else {
                continue;
            };
            let input = (input as usize).min(inputs - 1);
            buffers.heads[input].reach(time, 0);
            *self.specific[input].get_or_insert(specific) |= specific;
            let points = match specific {
                true => &mut buffers.specific,
                false => &mut buffers.general,
            };
            points.add((input, batch, time));
            self.points += 1;
        }
    }
}

/// Returns the point in another group.
fn with_group((input, batch, time): &JoinPoint, group: &Arc<Group>) -> JoinPoint {
    let batch = Batch {
        group: group.clone(),
        ..batch.clone()
    };
    (*input, batch, *time)
}
