//! Calls that no field shows: calls to consumers of brokers, and calls to workloads that no other workload calls.

use super::super::role::Role;
use super::super::system::{System, Workload};
use super::hosts::Hosts;
use super::{Call, Calls, Entry, MOST_CALLS};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Adds calls from a broker to its consumers: workloads that are connected to the broker and that no other workload
/// calls.
pub(super) fn consumers(system: &mut System, found: &mut Calls) {
    let called: BTreeSet<usize> = found.called().union(&found.entered()).copied().collect();
    for call in &mut found.calls {
        let broker = call.targets.first().map(|(to, _)| *to);
        let Some(broker) = broker.filter(|to| found.roles[*to] == Role::Broker) else {
            continue;
        };
        if !called.contains(&call.from) {
            let consumer = call.from;
            (call.from, call.targets) = (broker, vec![(consumer, 1.0)]);
            call.host.clone_from(&system.workloads[consumer].name);
            call.because = format!(
                "{}; nobody calls it, so it is taken to receive",
                call.because
            );
            (call.is_assumed, call.is_sent) = (true, true);
        }
    }
}

/// Adds callers for workloads that no workload calls: the service that shares most of their name, or an entry point.
pub(super) fn orphans(system: &mut System, hosts: &Hosts, found: &mut Calls) {
    let called: BTreeSet<usize> = found.called().union(&found.entered()).copied().collect();
    let Some(front) = general(system, &found.entries) else {
        return;
    };
    let namesakes = Namesakes::new(system, &found.roles);
    let mut assumed = Vec::new();
    let mut known = BTreeSet::new();
    for (orphan, workload) in system.workloads.iter().enumerate() {
        let role = found.roles[orphan];
        let is_orphan = matches!(role, Role::Service | Role::Front | Role::Storage);
        if !is_orphan || called.contains(&orphan) || found.calls.len() + assumed.len() >= MOST_CALLS
        {
            continue;
        }
        let sharing = (role == Role::Storage)
            .then(|| namesakes.of(workload))
            .flatten();
        let from = sharing.unwrap_or(front);
        // A Service of several workloads is called once, as its route says.
        let (host, mut targets) = match hosts.of(orphan) {
            Some(host) => {
                let caller = Some(system.workloads[from].name.as_str());
                (host.to_owned(), hosts.routed(system, host, caller))
            }
            None => (workload.name.clone(), vec![(orphan, 1.0)]),
        };
        targets.retain(|(to, _)| *to != from);
        if targets.is_empty() || !known.insert(host.clone()) {
            continue;
        }
        assumed.push(Call {
            from,
            host,
            targets,
            because: match sharing {
                Some(_) => "no field names it; the names begin alike".to_owned(),
                None => "no field names it; requests come in here".to_owned(),
            },
            is_assumed: true,
            is_sent: false,
            probability: None,
        });
    }
    found.calls.extend(assumed);
}

/// Returns the entry point of the complete system: one whose name belongs to no service. For example, media-frontend
/// belongs to media-service, but nginx belongs to no service.
fn general(system: &System, entries: &[Entry]) -> Option<usize> {
    let first = |place: usize| system.workloads[place].name.split(['-', '_']).next();
    let mut sharing: HashMap<Option<&str>, usize> = HashMap::new();
    for place in 0..system.workloads.len() {
        *sharing.entry(first(place)).or_default() += 1;
    }
    let places = || {
        let targets = entries.iter().filter_map(|entry| entry.targets.first());
        targets.map(|(place, _)| *place)
    };
    let is_alone = |place: &usize| sharing[&first(*place)] == 1;
    places().find(is_alone).or_else(|| places().next())
}

/// The services by the first word of their names, each with all words.
struct Namesakes(HashMap<String, Vec<(usize, Vec<String>, Role)>>);

impl Namesakes {
    fn new(system: &System, roles: &[Role]) -> Namesakes {
        let mut by_word: HashMap<_, Vec<_>> = HashMap::new();
        for (place, workload) in system.workloads.iter().enumerate() {
            let words = words(&workload.name);
            if matches!(roles[place], Role::Service | Role::Front)
                && let Some(first) = words.first().cloned()
            {
                by_word
                    .entry(first)
                    .or_default()
                    .push((place, words, roles[place]));
            }
        }
        Namesakes(by_word)
    }

    fn starting(&self, word: Option<&String>) -> &[(usize, Vec<String>, Role)] {
        let list = word.and_then(|word| self.0.get(word));
        list.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the service whose name has most words in common with the beginning of a storage's name.
    fn of(&self, storage: &Workload) -> Option<usize> {
        let wanted = words(&storage.name);
        let ranked = self
            .starting(wanted.first())
            .iter()
            .map(|(place, own, role)| {
                let shared = own.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
                // Of two that share as much, the one with less else in its name: user-service, not user-timeline-service.
                let rank = (
                    shared,
                    Reverse(own.len()),
                    *role == Role::Service,
                    Reverse(*place),
                );
                (rank, *place)
            });
        let best = ranked.max().map(|(_, place)| place);
        // redis-cart: the storage's kind comes first, and its user last.
        let ends = || {
            let mut named = self.starting(wanted.last()).iter();
            named.find(|(.., role)| *role == Role::Service)
        };
        best.or_else(|| ends().map(|(place, ..)| *place))
    }
}

/// Returns the words of a name in lower case.
fn words(name: &str) -> Vec<String> {
    let words = name.split(['-', '_']);
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}
