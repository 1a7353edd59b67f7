//! `.on`: points that are grouped by more tags than those are joined with points that are grouped by
//! just those, each of them with all that belong to its time.
//!
//! A point of more tags waits for one of just those, and takes its tags to it. Once every input has
//! gone past its time it goes alone, to be filled or left out.

use super::super::series::{Limits, Series};
use crate::batch::{Batch, Group};
use crate::block::Block;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// A point on its way to a group: its input, itself, and its time.
pub(super) type Sent = (usize, Batch, i64);

/// See the [module](self).
pub(super) struct Matching {
    on: Vec<Arc<str>>,
    inputs: usize,
    groups: Series<Buffers>,
    /// Points in all groups.
    points: usize,
    most: usize,
    /// The last block of each input, and how many there have been.
    blocks: Vec<(Weak<Block>, u64)>,
}

/// The points of all groups that have the same values of the tags that are matched.
#[derive(Default)]
struct Buffers {
    /// Of just those tags.
    general: VecDeque<Sent>,
    /// Of more tags, without a match.
    specific: VecDeque<Sent>,
    /// How far each input has come.
    heads: Vec<Head>,
}

/// How far an input has come in a group. The groups of a block come one after the other, each with
/// all of its times: what counts is how far it had come before the present block.
#[derive(Clone, Copy, Default)]
struct Head {
    before: Option<i64>,
    now: Option<i64>,
    /// The number of the block in which it came so far.
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

/// What is kept of it: whether a point is of more tags, its input, time and group.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Saved(Vec<(bool, u32, i64, Group, Block)>);

impl Saved {
    pub(super) fn points(&self) -> usize {
        self.0.len()
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
        }
    }

    /// Takes a point; returns those that can go to their groups now.
    pub(super) fn take(&mut self, input: usize, point: Batch, time: i64) -> Vec<Sent> {
        let mut sent = Vec::new();
        let specific = point.group.tags.len() > self.on.len();
        let group = Arc::new(self.group(&point.group));
        for (_, gone) in self.groups.expired() {
            self.points -= gone.general.len() + gone.specific.len();
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
        let before = buffers.general.len() + buffers.specific.len();
        let (last, number) = &mut self.blocks[input];
        if last.as_ptr() != Arc::as_ptr(&point.block) {
            *last = Arc::downgrade(&point.block);
            *number += 1;
        }
        buffers.heads[input].reach(time, *number);
        let heads = buffers.heads.iter().zip(&self.blocks);
        let reached = heads.map(|(head, (_, number))| head.reached(*number));
        // `None` is less than any time.
        let low = reached.min().flatten().unwrap_or(i64::MIN);
        // Of what every input has gone past, nothing finds a match any more.
        while buffers
            .specific
            .front()
            .is_some_and(|(.., time)| *time < low)
            || full
        {
            match buffers.specific.pop_front() {
                Some(alone) => sent.push(alone),
                None => break,
            }
            if !full {
                continue;
            }
            break;
        }
        if specific {
            let matches = buffers.general.iter().filter(|(.., other)| *other == time);
            let matches: Vec<Sent> = matches
                .map(|found| with_group(found, &point.group))
                .collect();
            while buffers
                .general
                .front()
                .is_some_and(|(.., time)| *time < low)
            {
                buffers.general.pop_front();
            }
            match matches.is_empty() {
                true if time < low => sent.push((input, point, time)),
                true => buffers.specific.push_back((input, point, time)),
                false => {
                    sent.push((input, point, time));
                    sent.extend(matches);
                }
            }
        } else {
            let found = (input, point, time);
            let mut others = VecDeque::new();
            for waiting in buffers.specific.drain(..) {
                if waiting.2 == time {
                    let group = waiting.1.group.clone();
                    sent.push(waiting);
                    sent.push(with_group(&found, &group));
                } else {
                    others.push_back(waiting);
                }
            }
            buffers.specific = others;
            buffers.general.push_back(found);
            while full && buffers.general.len() > 1 {
                buffers.general.pop_front();
            }
        }
        let after = buffers.general.len() + buffers.specific.len();
        self.points = self.points + after - before;
        sent
    }

    /// The values of the tags that are matched.
    fn group(&self, group: &Group) -> Group {
        let tags = group.tags.iter().filter(|(name, _)| self.on.contains(name));
        Group {
            tags: tags.cloned().collect(),
            measurement: None,
        }
    }

    /// Points that have found no match, at the end.
    pub(super) fn rest(&mut self) -> Vec<Sent> {
        let groups = self.groups.take().into_iter();
        groups.flat_map(|(_, buffers)| buffers.specific).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.groups.bytes() + self.points * size_of::<Sent>() * 2
    }

    /// Calls a function with each batch that is kept.
    pub(super) fn each(&mut self, each: &mut dyn FnMut(&mut Batch)) {
        for buffers in self.groups.values_mut() {
            let points = buffers.general.iter_mut().chain(&mut buffers.specific);
            points.for_each(|(_, batch, _)| each(batch));
        }
    }

    pub(super) fn save(&self) -> Saved {
        let mut saved = Vec::new();
        for (_, buffers) in self.groups.iter() {
            for (specific, points) in [(false, &buffers.general), (true, &buffers.specific)] {
                saved.extend(points.iter().map(|(input, batch, time)| {
                    let group = (*batch.group).clone();
                    (specific, *input as u32, *time, group, batch.to_block())
                }));
            }
        }
        Saved(saved)
    }

    pub(super) fn restore(&mut self, saved: Saved) {
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
            let points = match specific {
                true => &mut buffers.specific,
                false => &mut buffers.general,
            };
            points.push_back((input, batch, time));
            self.points += 1;
        }
    }
}

/// The same point in another group.
fn with_group((input, batch, time): &Sent, group: &Arc<Group>) -> Sent {
    let batch = Batch {
        group: group.clone(),
        ..batch.clone()
    };
    (*input, batch, *time)
}
