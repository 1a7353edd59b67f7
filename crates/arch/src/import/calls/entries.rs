//! The entry points of a system.

use super::super::role::Role;
use super::super::system::System;
use super::hosts::Hosts;
use super::{Call, Calls, Entry};
use std::collections::BTreeSet;

/// Finds entry points: from fields, from load generators, or from names, in this order.
pub(super) fn entries(
    system: &mut System,
    hosts: &Hosts,
    found: &Calls,
    load: &[Call],
) -> Vec<Entry> {
    let search = Search { hosts, found };
    let meant = search.ways(system, false);
    if !meant.is_empty() {
        return meant;
    }
    let ports = search.ports(system);
    if !ports.is_empty() {
        return ports;
    }
    let because = "a workload that makes load names it";
    let loaded = load.iter();
    let loaded = loaded.filter_map(|call| search.entry(system, &call.host, because));
    let loaded = unique(loaded.collect());
    if !loaded.is_empty() {
        return loaded;
    }
    search.uncalled(system)
}

/// The search for entry points among hosts and calls.
struct Search<'a> {
    hosts: &'a Hosts,
    found: &'a Calls,
}

impl Search<'_> {
    fn is_service(&self, place: usize) -> bool {
        matches!(self.found.roles[place], Role::Front | Role::Service)
    }

    /// Returns the entry point at a host; `None` if only services that cannot be entry points, such as storage, answer
    /// there.
    fn entry(&self, system: &System, host: &str, because: &str) -> Option<Entry> {
        let mut targets = self.hosts.routed(system, host, None);
        targets.retain(|(to, _)| self.is_service(*to));
        (!targets.is_empty()).then(|| Entry {
            host: host.to_owned(),
            because: because.to_owned(),
            targets,
        })
    }

    /// Returns the entry points that fields mean, or that published ports suggest.
    fn ways(&self, system: &System, is_port: bool) -> Vec<Entry> {
        let ways = system.ways_in.iter().filter(|way| way.is_port == is_port);
        let found = ways.filter_map(|way| self.entry(system, &way.host, &way.because));
        unique(found.collect())
    }

    /// Returns the published ports that are entry points: those of front ends; if there are none, those of services
    /// that no service calls; otherwise all.
    fn ports(&self, system: &mut System) -> Vec<Entry> {
        let ports = self.ways(system, true);
        let is_front = |one: &Entry| {
            let mut targets = one.targets.iter();
            targets.all(|(to, _)| self.found.roles[*to] == Role::Front)
        };
        if ports.iter().any(is_front) {
            let (fronts, inner): (Vec<Entry>, Vec<Entry>) = ports.into_iter().partition(is_front);
            for one in inner {
                system.assumed.push(format!(
                    "'{}' has a port of the host, and gets no load from outside, because '{}' is the way in",
                    one.host, fronts[0].host
                ));
            }
            return fronts;
        }
        let called = self.found.called();
        let is_called = |one: &&Entry| one.targets.iter().all(|(to, _)| called.contains(to));
        let uncalled: Vec<Entry> = ports
            .iter()
            .filter(|one| !is_called(one))
            .cloned()
            .collect();
        match uncalled.is_empty() {
            true => ports,
            false => uncalled,
        }
    }

    /// Returns the front ends among the services that no service calls; if there are none, all services that no service
    /// calls.
    fn uncalled(&self, system: &mut System) -> Vec<Entry> {
        let called = self.found.called();
        let all = 0..system.workloads.len();
        let all: Vec<usize> = all.filter(|place| self.is_service(*place)).collect();
        let is_uncalled = |one: &usize| !called.contains(one);
        let uncalled: Vec<usize> = all.iter().copied().filter(is_uncalled).collect();
        let is_front = |one: &usize| self.found.roles[*one] == Role::Front;
        let fronts: Vec<usize> = uncalled.iter().copied().filter(is_front).collect();
        let chosen = [fronts, uncalled, all.into_iter().take(1).collect()];
        let chosen = chosen.into_iter().find(|some| !some.is_empty());
        let made = chosen.unwrap_or_default().into_iter().map(|one| Entry {
            host: system.workloads[one].name.clone(),
            because: "no other service calls it".to_owned(),
            targets: vec![(one, 1.0)],
        });
        let made: Vec<Entry> = made.collect();
        for one in made.iter().take(50) {
            system.assumed.push(format!(
                "requests come in at '{}', because nothing calls it",
                one.host
            ));
        }
        made
    }
}

/// Returns the entries without those that have the same targets as an earlier entry.
fn unique(entries: Vec<Entry>) -> Vec<Entry> {
    let mut known = BTreeSet::new();
    let key = |entry: &Entry| -> Vec<usize> { entry.targets.iter().map(|(to, _)| *to).collect() };
    entries
        .into_iter()
        .filter(|entry| known.insert(key(entry)))
        .collect()
}
