//! The tree of an endpoint's steps: sequential and concurrent.

use super::Relations;

/// The times of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTimes {
    pub(super) from: u64,
    pub(super) to: u64,
    /// True if the caller waited for a connection before the call.
    pub(super) is_late: bool,
}

/// The times of each call of an invocation; `None` for calls that it did not make.
pub(super) type Times = Vec<Option<CallTimes>>;

/// A step that calls.
#[derive(Debug)]
pub(super) enum Block {
    /// A choice of calls, of which an invocation makes at most one.
    Call(Vec<usize>),
    /// Concurrent lists of steps; a single list is made or left out as a unit.
    Parallel(Vec<Series>),
}

/// Steps one after the other, with work between them.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) blocks: Vec<Block>,
    /// The work before each step, and after the last.
    pub(super) gaps: Vec<Vec<u64>>,
    /// Work that spans several gaps, because no call was made between them.
    skipped: Vec<(usize, usize, u64)>,
}

impl Series {
    /// Returns the tree of steps that consists of these calls.
    pub(super) fn of(relations: &Relations, calls: Vec<usize>) -> Series {
        let parts = parts(&calls, |a, b| relations.at_once(a, b));
        let mut blocks: Vec<Block> = parts
            .into_iter()
            .map(|part| Block::of(relations, part))
            .collect();
        blocks.sort_by(|a, b| {
            let (a, b) = (a.first(), b.first());
            if relations.comes_before(a, b) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            }
        });
        let blocks = together(relations, alternatives(relations, blocks));
        Series::new(blocks)
    }

    fn new(blocks: Vec<Block>) -> Series {
        Series {
            gaps: vec![Vec::new(); blocks.len() + 1],
            skipped: Vec::new(),
            blocks,
        }
    }

    /// Measures the work of an invocation that began at `from` and ended at `to`. `None` means that the end is not
    /// known.
    pub(super) fn measure(&mut self, times: &Times, from: u64, to: Option<u64>) {
        let (mut last, mut since) = (from, 0);
        for place in 0..self.blocks.len() {
            let Some(CallTimes {
                from: begin,
                to: end,
                is_late,
            }) = self.blocks[place].span(times)
            else {
                continue;
            };
            if !is_late {
                self.record(since, place, begin.saturating_sub(last));
            }
            if let Block::Parallel(branches) = &mut self.blocks[place] {
                for branch in branches {
                    branch.measure(times, begin, None);
                }
            }
            (last, since) = (last.max(end), place + 1);
        }
        if let Some(to) = to {
            self.record(since, self.blocks.len(), to.saturating_sub(last));
        }
    }

    fn record(&mut self, first: usize, last: usize, nanos: u64) {
        if first == last {
            self.gaps[first].push(nanos);
        } else {
            self.skipped.push((first, last, nanos));
        }
    }

    /// Assigns the work of several gaps to the one gap that contains nearly all of it.
    pub(super) fn share(&mut self) {
        let mean = |samples: &Vec<u64>| {
            samples.iter().map(|&nanos| nanos as f64).sum::<f64>() / samples.len().max(1) as f64
        };
        let means: Vec<f64> = self.gaps.iter().map(mean).collect();
        for (first, last, nanos) in std::mem::take(&mut self.skipped) {
            let total: f64 = means[first..=last].iter().sum();
            let most = (first..=last).max_by(|&a, &b| means[a].total_cmp(&means[b]));
            if let Some(most) = most.filter(|&most| means[most] >= 0.9 * total) {
                self.gaps[most].push(nanos);
            }
        }
    }

    fn calls(&self) -> Vec<usize> {
        self.blocks.iter().flat_map(Block::calls).collect()
    }
}

impl Block {
    /// Builds the tree of calls that are connected by concurrency.
    fn of(relations: &Relations, calls: Vec<usize>) -> Block {
        if calls.len() == 1 {
            return Block::Call(calls);
        }
        let mut branches = parts(&calls, |a, b| !relations.at_once(a, b));
        if branches.len() == 1 {
            // No tree has these relations, so all calls begin at once, some of them after work.
            branches = calls.into_iter().map(|call| vec![call]).collect();
        }
        branches.sort_by(|a, b| {
            let earliest = |branch: &[usize]| {
                let offsets = branch.iter().map(|&call| relations.offset(call));
                offsets.fold(f64::MAX, f64::min)
            };
            let first = |branch: &[usize]| relations.calls[branch[0]].target;
            let order = earliest(a).total_cmp(&earliest(b));
            order.then_with(|| first(a).cmp(&first(b)))
        });
        let branches = branches.into_iter();
        Block::Parallel(branches.map(|part| Series::of(relations, part)).collect())
    }

    /// Returns any call of the step.
    fn first(&self) -> usize {
        self.calls()[0]
    }

    pub(super) fn calls(&self) -> Vec<usize> {
        match self {
            Block::Call(calls) => calls.clone(),
            Block::Parallel(branches) => branches.iter().flat_map(Series::calls).collect(),
        }
    }

    /// Returns the times from the start of the first call of the step to the end of the last.
    fn span(&self, times: &Times) -> Option<CallTimes> {
        let calls = self.calls();
        let made = calls.into_iter().filter_map(|call| times[call]);
        made.reduce(|a, b| CallTimes {
            from: a.from.min(b.from),
            to: a.to.max(b.to),
            is_late: if a.from <= b.from {
                a.is_late
            } else {
                b.is_late
            },
        })
    }
}

/// Divides calls into parts, so that no calls of different parts are `joined`; ordered by their
/// first calls.
fn parts(calls: &[usize], joined: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = calls.to_vec();
    let mut parts = Vec::new();
    while !left.is_empty() {
        let mut part = vec![left.remove(0)];
        let mut next = 0;
        while next < part.len() {
            let call = part[next];
            let (near, far) = left.into_iter().partition(|&other| joined(call, other));
            left = far;
            part.extend::<Vec<usize>>(near);
            next += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}

/// Combines calls that exclude each other into one step.
fn alternatives(relations: &Relations, blocks: Vec<Block>) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    for block in blocks {
        if let Block::Call(calls) = &block {
            let call = calls[0];
            let one_way = relations.calls[call].one_way;
            let fits = |known: &&mut Block| match known {
                Block::Call(known) => known.iter().all(|&other| {
                    let alike = relations.calls[other].one_way == one_way;
                    alike && relations.excludes(call, other)
                }),
                Block::Parallel(_) => false,
            };
            if let Some(Block::Call(known)) = found.iter_mut().find(fits) {
                known.push(call);
                continue;
            }
        }
        found.push(block);
    }
    found
}

/// Combines steps of which each invocation runs either all or none.
fn together(relations: &Relations, blocks: Vec<Block>) -> Vec<Block> {
    let is_sure = |block: &Block| {
        block
            .calls()
            .iter()
            .any(|&call| relations.part(call) > 0.995)
    };
    let is_simple = |block: &Block| matches!(block, Block::Call(calls) if calls.len() == 1);
    let mut found: Vec<Block> = Vec::new();
    let mut run: Vec<Block> = Vec::new();
    let flush = |run: &mut Vec<Block>, found: &mut Vec<Block>| match run.len() {
        0 | 1 => found.append(run),
        _ => found.push(Block::Parallel(vec![Series::new(std::mem::take(run))])),
    };
    for block in blocks {
        let goes_on = run.last().is_some_and(|last| {
            is_simple(&block) && is_simple(last) && relations.goes_with(last.first(), block.first())
        });
        if !goes_on {
            flush(&mut run, &mut found);
        }
        if is_sure(&block) {
            found.push(block);
        } else {
            run.push(block);
        }
    }
    flush(&mut run, &mut found);
    found
}
