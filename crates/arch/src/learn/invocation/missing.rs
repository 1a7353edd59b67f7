//! Partly recorded invocations: calls without their server, and requests without their client.

use super::{Invocation, Invocations, MOST_PARENTS};
use crate::learn::names::{Names, is_address};
use rustc_hash::FxHashMap;

/// Orphans are dropped if requests of their kind with a caller outnumber them by more than this factor.
const RARE: u64 = 10;

/// The services behind addresses and names, and the calls with only a client span.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    /// For each name that clients use: how often each service answered.
    answered: FxHashMap<u32, FxHashMap<u32, u64>>,
    pub(super) by_name: Vec<u32>,
}

impl Aliases {
    pub(super) fn seen(&mut self, peer: u32, service: u32) {
        *self
            .answered
            .entry(peer)
            .or_default()
            .entry(service)
            .or_default() += 1;
    }

    /// Returns the service that answers most often under a name.
    fn service(&self, peer: u32) -> Option<u32> {
        let answered = self.answered.get(&peer)?.iter();
        let most = answered.max_by_key(|&(&service, &count)| (count, service));
        most.map(|(&service, _)| service)
    }
}

impl Invocations {
    /// Assigns each call with only a client span to the service that answers at the same address in other calls. Calls
    /// to an address without a service are dropped, and their callers become incomplete.
    pub(super) fn name_peers(&mut self, aliases: &Aliases, names: &Names) {
        let mut gone = vec![false; self.all.len()];
        for &made in &aliases.by_name {
            let about = &mut self.all[made as usize];
            if let Some(service) = aliases.service(about.service) {
                (about.service, about.instance) = (service, service);
            } else if is_address(names.name(about.service)) {
                gone[made as usize] = true;
                self.nameless += 1;
                if let Some(caller) = about.caller {
                    self.all[caller as usize].incomplete = true;
                }
            }
        }
        self.remove(&gone);
    }

    /// Drops requests without a client span, with all their calls, if requests of their kind usually have a caller.
    /// Such requests were in progress when the recording began, and would wrongly be learned as an entry point.
    pub(super) fn drop_cut_off(&mut self) {
        let mut counts: FxHashMap<(u32, u32), [u64; 2]> = FxHashMap::default();
        for made in &self.all {
            counts.entry((made.service, made.operation)).or_default()
                [usize::from(made.is_orphan)] += 1;
        }
        let is_rare = |made: &Invocation| {
            let [others, orphans] = counts[&(made.service, made.operation)];
            made.is_orphan && orphans * RARE < others
        };
        let mut gone: Vec<bool> = self.all.iter().map(is_rare).collect();
        self.cut_off = gone.iter().filter(|&&gone| gone).count() as u64;
        if self.cut_off == 0 {
            return;
        }
        // A call may come before its caller in the list, if clocks differ.
        for _ in 0..MOST_PARENTS {
            let mut more = false;
            for number in 0..self.all.len() {
                let caller = self.all[number].caller;
                if !gone[number] && caller.is_some_and(|caller| gone[caller as usize]) {
                    (gone[number], more) = (true, true);
                }
            }
            if !more {
                break;
            }
        }
        self.remove(&gone);
    }

    /// Removes invocations. The invocations that they called then have no caller.
    fn remove(&mut self, gone: &[bool]) {
        if !gone.contains(&true) {
            return;
        }
        // The new index of each invocation that stays.
        let mut next = 0;
        let mut numbers = Vec::with_capacity(gone.len());
        for &is_gone in gone {
            numbers.push(next);
            next += u32::from(!is_gone);
        }
        let mut number = 0;
        self.all.retain(|_| {
            number += 1;
            !gone[number - 1]
        });
        for made in &mut self.all {
            let caller = made.caller.filter(|&caller| !gone[caller as usize]);
            made.caller = caller.map(|caller| numbers[caller as usize]);
        }
        for first in &mut self.first_of_trace {
            *first = numbers.get(*first as usize).copied().unwrap_or(next);
        }
    }
}
