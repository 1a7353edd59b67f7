//! The calls that every request of an endpoint makes, and what follows from them: recursion without end, and requests
//! that need more of an instance than it has.
//!
//! A call is certain if no probability, cache or choice of a target decides whether it is made. It is necessary if the
//! request also waits for its answer and fails without it.

use super::{NOWHERE, Operation, Script};
use std::collections::BTreeMap;
use std::ops::Range;

/// A certain call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CertainCall {
    /// The number of the called endpoint among all endpoints.
    pub(crate) endpoint: u16,
    pub(crate) is_necessary: bool,
}

/// The certain calls of all endpoints, by the number of the calling endpoint.
#[derive(Debug, Default)]
pub(crate) struct CertainCalls(BTreeMap<u16, Vec<CertainCall>>);

impl CertainCalls {
    pub(crate) fn new<'a>(scripts: impl Iterator<Item = &'a Script>) -> CertainCalls {
        let mut calls = BTreeMap::new();
        for script in scripts {
            for (number, &(begins, _)) in (script.first..).zip(&script.endpoints) {
                let mut found = Vec::new();
                script.find_certain(begins, true, &mut found);
                // Of equal calls, a necessary one remains.
                found.sort_unstable_by_key(|call| (call.endpoint, !call.is_necessary));
                found.dedup_by_key(|call| call.endpoint);
                calls.insert(number, found);
            }
        }
        CertainCalls(calls)
    }

    fn of(&self, endpoint: u16) -> &[CertainCall] {
        self.0.get(&endpoint).map_or(&[], Vec::as_slice)
    }

    /// Returns the endpoints of a cycle of certain calls, if there is one. Each calls the next, and the last calls the
    /// first.
    pub(crate) fn cycle(&self) -> Option<Vec<u16>> {
        let mut is_done: BTreeMap<u16, bool> = BTreeMap::new();
        for &start in self.0.keys() {
            if is_done.contains_key(&start) {
                continue;
            }
            // Endpoints, each with the index of its next call. A list instead of recursion, because a chain of calls
            // may be long.
            let mut path: Vec<(u16, usize)> = vec![(start, 0)];
            is_done.insert(start, false);
            while let Some((from, next)) = path.last_mut() {
                let Some(call) = self.of(*from).get(*next) else {
                    is_done.insert(*from, true);
                    path.pop();
                    continue;
                };
                *next += 1;
                match is_done.get(&call.endpoint) {
                    Some(true) => {}
                    Some(false) => {
                        let path = path.iter().map(|&(endpoint, _)| endpoint);
                        return Some(path.skip_while(|&one| one != call.endpoint).collect());
                    }
                    None => {
                        is_done.insert(call.endpoint, false);
                        path.push((call.endpoint, 0));
                    }
                }
            }
        }
        None
    }

    /// Follows the necessary calls from these endpoints. Returns the endpoint with the largest number of counted calls in
    /// progress at once, each made by the request before it, and that number. There must be no cycle of certain calls.
    pub(crate) fn deepest(
        &self,
        starts: Range<u16>,
        is_counted: impl Fn(u16, u16) -> bool,
    ) -> Option<(u16, u32)> {
        let mut depths: BTreeMap<u16, u32> = BTreeMap::new();
        for start in starts.clone() {
            let mut path: Vec<(u16, usize)> = vec![(start, 0)];
            while let Some((from, next)) = path.last_mut() {
                let from = *from;
                let calls = self.of(from);
                match calls.get(*next) {
                    Some(call) => {
                        *next += 1;
                        if call.is_necessary && !depths.contains_key(&call.endpoint) {
                            path.push((call.endpoint, 0));
                        }
                    }
                    None => {
                        let necessary = calls.iter().filter(|call| call.is_necessary);
                        let below = necessary.map(|call| {
                            depths[&call.endpoint] + u32::from(is_counted(from, call.endpoint))
                        });
                        depths.insert(from, below.max().unwrap_or(0));
                        path.pop();
                    }
                }
            }
        }
        let starts = starts.map(|start| (start, depths[&start]));
        starts.rev().max_by_key(|&(_, depth)| depth)
    }
}

impl Script {
    /// Returns the numbers of the service's endpoints among all endpoints.
    pub(crate) fn numbers(&self) -> Range<u16> {
        self.first..self.first + self.endpoints.len() as u16
    }

    /// Finds the certain calls of the operations from `at` on. They are necessary if `is_needed`.
    fn find_certain(&self, at: u32, is_needed: bool, found: &mut Vec<CertainCall>) {
        let mut at = at;
        loop {
            let mut add = |targets: &super::Targets, is_necessary: bool| {
                let call = targets.only().and_then(|target| target.key.as_endpoint());
                found.extend(call.map(|(endpoint, ..)| CertainCall {
                    endpoint,
                    is_necessary,
                }));
            };
            at = match &self.operations[at as usize] {
                Operation::Work(_) => at + 1,
                &Operation::Chance { done, .. } if done == u64::MAX => at + 1,
                &Operation::Chance { skip, .. } => skip,
                &Operation::Cache { found, .. } => found,
                &Operation::Jump(to) => to,
                Operation::Call {
                    targets, fallback, ..
                } => {
                    add(targets, is_needed && *fallback == NOWHERE);
                    at + 1
                }
                Operation::Send { targets, .. } => {
                    add(targets, false);
                    at + 1
                }
                &Operation::Fork {
                    first,
                    branches,
                    needed,
                    fallback,
                } => {
                    let is_needed = is_needed && needed == branches && fallback == NOWHERE;
                    let mut begin =
                        self.branches[first as usize..(first + branches) as usize].to_vec();
                    begin.sort_unstable();
                    begin.dedup();
                    for branch in begin {
                        self.find_certain(branch, is_needed, found);
                    }
                    at + 1
                }
                Operation::End => return,
            };
        }
    }
}
