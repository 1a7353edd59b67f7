//! The smallest history that shows a violation.

use crate::linearizability::{SearchResult, search_one};
use crate::{Limits, Model, Operation, Violation};
use std::collections::BTreeMap;
use std::time::Instant;

/// The maximum memory of a search for a smaller violation. If the complete violation cannot be found within this
/// memory, the limit of the caller applies instead. Operations whose removal needs a larger search are not removed,
/// because the time is rarely worth the result.
const MEMORY: usize = 8 << 20;

/// Reduces a violation to the operations that cause it, and returns them in the order of their
/// calls.
///
/// Only operations whose removal cannot hide a valid order are removed, so the result proves that the whole history is
/// not linearizable. The function removes everything after the first return that completes the violation, operations
/// that do not change the state, and [groups](Model::group) that are not needed for the violation. Each remaining
/// operation is necessary, unless `limits.time` ended the work first.
pub fn smallest_violation<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
    violation: &Violation<M::Key>,
    limits: &Limits,
) -> Vec<Operation<M::Input, M::Output>> {
    let indices = violation.operations.iter();
    let all: Vec<_> = indices.map(|index| history[*index].clone()).collect();
    let mut minimizer = Minimizer {
        model,
        limits: limits.clone(),
        deadline: Instant::now().checked_add(limits.time),
    };
    minimizer.limits.memory = MEMORY.min(limits.memory);
    if !minimizer.is_violation(&all) {
        minimizer.limits.memory = limits.memory;
    }
    let cut = minimizer.shortest_prefix(all);
    let groups = minimizer.groups(&cut);
    minimizer.without(cut, groups)
}

struct Minimizer<'a, M> {
    model: &'a M,
    limits: Limits,
    deadline: Option<Instant>,
}

type Operations<M> = Vec<Operation<<M as Model>::Input, <M as Model>::Output>>;

impl<M: Model> Minimizer<'_, M> {
    /// True if the search proves a violation within the remaining time.
    fn is_violation(&self, operations: &Operations<M>) -> bool {
        let all: Vec<usize> = (0..operations.len()).collect();
        let mut limits = self.limits.clone();
        if let Some(deadline) = self.deadline {
            limits.time = deadline.saturating_duration_since(Instant::now());
        }
        let found = search_one(self.model, operations, &all, &limits);
        matches!(found, SearchResult::Violation { .. })
    }

    /// Returns the shortest prefix of the history, up to a return, that is already a violation.
    /// Later calls are left out, and operations that return later have no result yet.
    fn shortest_prefix(&self, all: Operations<M>) -> Operations<M> {
        let mut returns: Vec<u64> = all
            .iter()
            .filter(|operation| operation.completion.is_some())
            .map(Operation::returned)
            .collect();
        returns.sort_unstable();
        returns.dedup();
        let until = |time: u64| -> Operations<M> {
            let begun = all.iter().filter(|operation| operation.call <= time);
            begun
                .cloned()
                .map(|mut operation| {
                    if operation.returned() > time {
                        operation.completion = None;
                    }
                    operation
                })
                .collect()
        };
        // The complete history is a violation, and every prefix of a linearizable history is
        // linearizable.
        let first = returns.partition_point(|time| !self.is_violation(&until(*time)));
        match returns.get(first) {
            Some(time) => until(*time),
            None => all,
        }
    }

    /// Returns the groups of operations that can be removed together, as indices.
    fn groups(&self, operations: &Operations<M>) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut single = Vec::new();
        let mut grouped = true;
        for (index, operation) in operations.iter().enumerate() {
            let (input, output) = (&operation.input, operation.output());
            if output.is_none() && self.model.is_read(input, None) {
                single.push(vec![index]);
                continue;
            }
            match self.model.group(input, output) {
                Some(group) => groups.entry(group).or_default().push(index),
                None => grouped = false,
            }
            if self.model.is_read(input, output) {
                single.push(vec![index]);
            }
        }
        // Groups can be removed safely only if every operation belongs to a group.
        if grouped {
            single.extend(groups.into_values().rev());
        }
        single
    }

    /// Removes groups as long as the remaining operations are still a violation: halves first, then
    /// smaller and smaller parts.
    fn without(&self, operations: Operations<M>, groups: Vec<Vec<usize>>) -> Operations<M> {
        let mut keep = vec![true; operations.len()];
        let mut groups = groups;
        let mut part = groups.len().div_ceil(2).max(1);
        loop {
            let mut remaining = Vec::new();
            for chunk in groups.chunks(part) {
                let mut fewer = keep.clone();
                chunk
                    .iter()
                    .flatten()
                    .for_each(|index| fewer[*index] = false);
                if fewer != keep && self.is_violation(&pick(&operations, &fewer)) {
                    keep = fewer;
                } else {
                    remaining.extend_from_slice(chunk);
                }
            }
            let removed = remaining.len() < groups.len();
            groups = remaining;
            if groups.is_empty() || self.deadline.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            if part > 1 {
                part = part.div_ceil(2).min(groups.len());
            } else if !removed {
                break;
            }
        }
        pick(&operations, &keep)
    }
}

fn pick<T: Clone>(all: &[T], keep: &[bool]) -> Vec<T> {
    let kept = all.iter().zip(keep).filter(|(_, keep)| **keep);
    kept.map(|(item, _)| item.clone()).collect()
}
