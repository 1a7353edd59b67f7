//! Finds the calls between services: from fields, or by assumption if no field names a call.

mod hosts;
mod order;

use super::role::{Role, role};
use super::system::{System, Workload};
use hosts::Hosts;
use std::collections::BTreeSet;

/// A workload by its index, and the weight of requests to it.
pub(super) type Weighted = (usize, f64);

/// A call from a workload to a host.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) from: usize,
    pub(super) host: String,
    pub(super) targets: Vec<Weighted>,
    pub(super) because: String,
    pub(super) is_assumed: bool,
    /// True if the caller does not wait for an answer.
    pub(super) is_sent: bool,
    pub(super) probability: Option<f64>,
}

/// An entry point.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) host: String,
    /// The field that shows the entry point, or the reason why it is assumed.
    pub(super) because: String,
    pub(super) targets: Vec<Weighted>,
}

/// The calls of a system.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) calls: Vec<Call>,
    pub(super) entries: Vec<Entry>,
    pub(super) roles: Vec<Role>,
}

/// The maximum number of calls that are taken from manifests.
const MOST_CALLS: usize = 20_000;

/// Finds the calls of a system, and adds the assumptions to the system's remarks.
pub(super) fn find(system: &mut System) -> Calls {
    let hosts = Hosts::new(system);
    let roles = system
        .workloads
        .iter()
        .map(|one| role(&one.name, &one.image))
        .collect();
    let mut found = Calls {
        roles,
        ..Calls::default()
    };
    let mut from_load = Vec::new();
    for from in 0..system.workloads.len() {
        let named = named_calls(system, &hosts, from);
        match found.roles[from] {
            Role::Load => from_load.extend(named),
            Role::Background | Role::Storage | Role::Broker => {
                if let Some(first) = named.first() {
                    let name = &system.workloads[from].name;
                    system.left_out.push(format!(
                        "{} calls of '{name}', such as '{}', belong to no request",
                        named.len(),
                        first.host
                    ));
                }
            }
            Role::Front | Role::Service => found.add(named),
        }
    }
    mirrors(system, &hosts, &mut found);
    found.entries = entries(system, &hosts, &found, &from_load);
    consumers(system, &mut found);
    orphans(system, &hosts, &mut found);
    order::break_circles(system, &mut found);
    found
}

impl Calls {
    /// Adds calls; of several calls to the same workloads only the first is kept.
    fn add(&mut self, calls: Vec<Call>) {
        let mut known: BTreeSet<Vec<usize>> = BTreeSet::new();
        for mut call in calls {
            call.targets
                .retain(|(to, _)| *to != call.from && self.roles[*to] != Role::Load);
            let targets: Vec<usize> = call.targets.iter().map(|(to, _)| *to).collect();
            if targets.is_empty() || self.calls.len() >= MOST_CALLS || !known.insert(targets) {
                continue;
            }
            let is_sent = |role| matches!(role, Role::Background | Role::Broker);
            call.is_sent = call.targets.iter().all(|(to, _)| is_sent(self.roles[*to]));
            self.calls.push(call);
        }
    }

    /// Returns the workloads that are called.
    fn called(&self) -> BTreeSet<usize> {
        let targets = self.calls.iter().flat_map(|call| &call.targets);
        targets.map(|(to, _)| *to).collect()
    }

    /// Returns the workloads that are entry points.
    fn entered(&self) -> BTreeSet<usize> {
        let targets = self.entries.iter().flat_map(|entry| &entry.targets);
        targets.map(|(to, _)| *to).collect()
    }
}

/// The calls that a workload's fields name.
fn named_calls(system: &mut System, hosts: &Hosts, from: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut unknown = Vec::new();
    let workload = &system.workloads[from];
    let mut call = |host: &str, because: String| {
        let (host, targets) = hosts.routed(system, host, Some(&workload.name));
        calls.push(Call {
            from,
            host,
            targets,
            because,
            is_assumed: false,
            is_sent: false,
            probability: None,
        });
    };
    for (place, text, may_be_host, is_file) in texts(system, workload) {
        for candidate in hosts::candidates(&text, may_be_host) {
            match hosts.find(candidate.name) {
                Some(host) => call(&host, place.clone()),
                None if candidate.is_sure
                    && may_be_host
                    && !is_file
                    && hosts::is_inside(candidate.name) =>
                {
                    unknown.push(format!(
                        "{place} of '{}' names '{}', which no document describes",
                        workload.name,
                        super::shortened(candidate.name)
                    ));
                }
                None => {}
            }
        }
    }
    for link in &workload.links {
        match hosts.find(&link.host) {
            Some(host) => call(&host, link.place.to_owned()),
            None => unknown.push(format!(
                "{} of '{}' names '{}', which no document describes",
                link.place,
                workload.name,
                super::shortened(&link.host)
            )),
        }
    }
    system.left_out.extend(unknown);
    calls
}

/// Returns the texts of a workload that may name hosts, with their position and whether the whole text may be a host.
fn texts(system: &System, workload: &Workload) -> Vec<(String, String, bool, bool)> {
    let mut texts: Vec<(String, String, bool, bool)> = Vec::new();
    for mention in &workload.mentions {
        texts.push((
            mention.place.clone(),
            mention.text.clone(),
            mention.may_be_host,
            false,
        ));
    }
    let maps = [(&workload.environment, false), (&workload.files, true)];
    for (names, is_file) in maps {
        for name in names {
            for (key, text) in system.configuration.get(name).into_iter().flatten() {
                let place = format!("ConfigMap {}", super::shortened(name));
                let may_be_host = !is_file && super::kubernetes::is_address(key);
                texts.push((place, text.clone(), may_be_host, is_file));
            }
        }
    }
    texts
}

/// Adds a send for each mirror of a route that is called.
fn mirrors(system: &mut System, hosts: &Hosts, found: &mut Calls) {
    let mut sends = Vec::new();
    for call in &found.calls {
        let caller = &system.workloads[call.from].name;
        let Some(route) = hosts.route(system, &call.host, Some(caller)) else {
            continue;
        };
        for mirror in &route.mirrors {
            let targets = hosts.subset(system, &mirror.host, mirror.subset.as_deref());
            let targets: Vec<Weighted> = targets
                .into_iter()
                .filter(|(to, _)| *to != call.from)
                .collect();
            if !targets.is_empty() && mirror.weight > 0.0 {
                sends.push(Call {
                    host: mirror.host.clone(),
                    targets,
                    because: format!("mirror of {}", route.place),
                    is_sent: true,
                    probability: (mirror.weight < 1.0).then_some(mirror.weight),
                    ..call.clone()
                });
            }
        }
    }
    found.calls.extend(sends);
}

/// Returns the entry points: from fields, from load generators, or from names, in this order.
fn entries(system: &mut System, hosts: &Hosts, found: &Calls, load: &[Call]) -> Vec<Entry> {
    let is_service = |to: &usize| matches!(found.roles[*to], Role::Front | Role::Service);
    let entry = |host: &str, because: &str| {
        let (host, mut targets) = hosts.routed(system, host, None);
        targets.retain(|(to, _)| is_service(to));
        let because = because.to_owned();
        (!targets.is_empty()).then_some(Entry {
            host,
            because,
            targets,
        })
    };
    let ways = |is_port: bool| -> Vec<Entry> {
        let ways = system.ways_in.iter().filter(|way| way.is_port == is_port);
        let found = ways.filter_map(|way| entry(&hosts.find(&way.host)?, &way.because));
        unique(found.collect())
    };
    let is_front = |one: &Entry| {
        one.targets
            .iter()
            .all(|(to, _)| found.roles[*to] == Role::Front)
    };
    let meant = ways(false);
    if !meant.is_empty() {
        return meant;
    }
    let ports = ways(true);
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
    let ports: Vec<Entry> = {
        let called = found.called();
        let is_called = |one: &Entry| one.targets.iter().all(|(to, _)| called.contains(to));
        let uncalled: Vec<Entry> = ports
            .iter()
            .filter(|one| !is_called(one))
            .cloned()
            .collect();
        if uncalled.is_empty() { ports } else { uncalled }
    };
    if !ports.is_empty() {
        return ports;
    }
    let loaded = load
        .iter()
        .filter_map(|call| entry(&call.host, "a workload that makes load names it"))
        .collect();
    let loaded = unique(loaded);
    if !loaded.is_empty() {
        return loaded;
    }
    let called = found.called();
    let all: Vec<usize> = (0..system.workloads.len()).filter(is_service).collect();
    let uncalled: Vec<usize> = all
        .iter()
        .copied()
        .filter(|one| !called.contains(one))
        .collect();
    let fronts: Vec<usize> = uncalled
        .iter()
        .copied()
        .filter(|one| found.roles[*one] == Role::Front)
        .collect();
    let chosen = [fronts, uncalled, all.into_iter().take(1).collect()];
    let chosen = chosen
        .into_iter()
        .find(|some| !some.is_empty())
        .unwrap_or_default();
    let made: Vec<Entry> = chosen
        .into_iter()
        .map(|one| Entry {
            host: system.workloads[one].name.clone(),
            because: "no other service calls it".to_owned(),
            targets: vec![(one, 1.0)],
        })
        .collect();
    for one in made.iter().take(50) {
        system.assumed.push(format!(
            "requests come in at '{}', because nothing calls it",
            one.host
        ));
    }
    made
}

/// Returns the entries without those to a workload that an earlier entry already has.
fn unique(entries: Vec<Entry>) -> Vec<Entry> {
    let mut known = BTreeSet::new();
    let key = |entry: &Entry| -> Vec<usize> { entry.targets.iter().map(|(to, _)| *to).collect() };
    entries
        .into_iter()
        .filter(|entry| known.insert(key(entry)))
        .collect()
}

/// Workloads that are connected to a broker and that no workload calls receive its messages.
fn consumers(system: &mut System, found: &mut Calls) {
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
fn orphans(system: &mut System, hosts: &Hosts, found: &mut Calls) {
    let called: BTreeSet<usize> = found.called().union(&found.entered()).copied().collect();
    let Some(front) = general(system, &found.entries) else {
        return;
    };
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
            .then(|| namesake(system, &found.roles, workload))
            .flatten();
        let from = sharing.unwrap_or(front);
        // A Service of several workloads is called once, as its route says.
        let (host, mut targets) = match hosts.of(orphan) {
            Some(host) => hosts.routed(system, host, Some(&system.workloads[from].name)),
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

/// Returns the entry point of the whole system: media-frontend belongs to media-service, nginx to no service.
fn general(system: &System, entries: &[Entry]) -> Option<usize> {
    let first = |place: usize| system.workloads[place].name.split(['-', '_']).next();
    let is_alone = |place: &usize| {
        let mut all = 0..system.workloads.len();
        all.all(|other| other == *place || first(other) != first(*place))
    };
    let places = || {
        let targets = entries.iter().filter_map(|entry| entry.targets.first());
        targets.map(|(place, _)| *place)
    };
    places().find(is_alone).or_else(|| places().next())
}

/// Returns the service whose name has most words in common with the beginning of a storage's name.
fn namesake(system: &System, roles: &[Role], storage: &Workload) -> Option<usize> {
    let words = |name: &str| -> Vec<String> {
        let words = name.split(['-', '_']);
        words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let wanted = words(&storage.name);
    let mut best = None;
    for (place, workload) in system.workloads.iter().enumerate() {
        if !matches!(roles[place], Role::Service | Role::Front) {
            continue;
        }
        let own = words(&workload.name);
        let shared = own.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        // If two services share equally many words, the shorter name wins: user-service, not user-timeline-service.
        let rank = (
            shared,
            std::cmp::Reverse(own.len()),
            roles[place] == Role::Service,
        );
        if shared > 0 && best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, place));
        }
    }
    // In `redis-cart` the kind of storage comes first and its user last.
    let last = wanted.last().filter(|_| best.is_none());
    let ends =
        |workload: &Workload| last.is_some_and(|last| words(&workload.name).first() == Some(last));
    let by_end = || {
        let mut places = 0..system.workloads.len();
        places.find(|place| roles[*place] == Role::Service && ends(&system.workloads[*place]))
    };
    best.map(|(_, place)| place).or_else(by_end)
}
