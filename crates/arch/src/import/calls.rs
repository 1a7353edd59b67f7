//! Finds the calls between services: from fields, or by assumption if no field names a call.

mod entries;
mod guesses;
mod hosts;
mod order;

use super::item::Mark;
use super::role::{Role, role};
use super::system::{Marks, System, Workload};
use hosts::Hosts;
use std::borrow::Cow;
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
    pub(super) hosts: Hosts,
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
    let mut left = Allowance {
        bytes: MOST_SEARCHED,
        targets: MOST_TARGETS,
    };
    for from in 0..system.workloads.len() {
        let named = named_calls(system, &hosts, from, &mut left);
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
    if left.bytes == 0 || left.targets == 0 {
        let said = "further calls: texts that name hosts are read up to 64 MiB, and calls up to 50,000 workloads";
        system.left_out.push(said.to_owned());
    }
    mirrors(system, &hosts, &mut found);
    found.entries = entries::entries(system, &hosts, &found, &from_load);
    guesses::consumers(system, &mut found);
    guesses::orphans(system, &hosts, &mut found);
    order::break_circles(system, &mut found);
    found.hosts = hosts;
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

/// The work and the memory that may still be spent on calls.
struct Allowance {
    bytes: usize,
    targets: usize,
}

/// The maximum total length of the texts that are searched for hosts. A text counts once for each workload that has it.
const MOST_SEARCHED: usize = 64 << 20;
/// The maximum number of called workloads, over all calls.
const MOST_TARGETS: usize = 50_000;

/// A text that may name hosts.
struct HostText<'a> {
    place: Cow<'a, str>,
    text: &'a str,
    /// True if the whole text may be a host.
    may_be_host: bool,
    is_file: bool,
    /// The values that have an effect if the text names a host.
    marks: [Option<Mark>; 4],
}

/// Returns the calls that the fields of a workload name.
fn named_calls(system: &mut System, hosts: &Hosts, from: usize, left: &mut Allowance) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut unknown = Vec::new();
    let workload = &system.workloads[from];
    let namespace = &workload.namespace;
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut call = |host: String, because: &str, targets_left: &mut usize| {
        if *targets_left == 0 || !known.insert(host.clone()) {
            return;
        }
        let targets = hosts.routed(system, &host, Some(&workload.name));
        *targets_left = targets_left.saturating_sub(targets.len());
        calls.push(Call {
            from,
            targets,
            host,
            because: because.to_owned(),
            is_assumed: false,
            is_sent: false,
            probability: None,
        });
    };
    let undescribed = |place: &str, host: &str| {
        let (name, host) = (&workload.name, super::shortened(host));
        format!("{place} of '{name}' names '{host}', which no document describes")
    };
    for one in host_texts(system, workload) {
        if left.bytes < one.text.len() {
            left.bytes = 0;
            break;
        }
        left.bytes -= one.text.len();
        for candidate in hosts::candidates(one.text, one.may_be_host) {
            let name = candidate.name;
            match hosts.find(name, namespace) {
                Some(host) => {
                    one.marks
                        .iter()
                        .flatten()
                        .for_each(|mark| system.log.note(*mark));
                    call(host, &one.place, &mut left.targets);
                }
                None if candidate.is_sure
                    && one.may_be_host
                    && !one.is_file
                    && hosts::is_inside(name)
                    && !system.outside.contains(name) =>
                {
                    unknown.push(undescribed(&one.place, name));
                }
                None => {}
            }
        }
    }
    for link in &workload.links {
        match hosts.find(&link.host, namespace) {
            Some(host) => call(host, link.place, &mut left.targets),
            None => unknown.push(undescribed(link.place, &link.host)),
        }
    }
    system.left_out.extend(unknown);
    calls
}

/// Returns the texts of a workload that may name hosts.
fn host_texts<'a>(
    system: &'a System,
    workload: &'a Workload,
) -> impl Iterator<Item = HostText<'a>> {
    let with = |[a, b, c]: Marks, d: Option<Mark>| [a, b, c, d];
    let own = workload.mentions.iter().map(move |mention| HostText {
        place: mention.place.as_str().into(),
        text: &mention.text,
        may_be_host: mention.may_be_host,
        is_file: false,
        marks: with(mention.marks, None),
    });
    let values = move |map: &'a str| {
        let local = system.local_in(&workload.namespace, map);
        let texts = system.configuration.get(&local).into_iter().flatten();
        let place = format!("ConfigMap {}", super::shortened(map));
        texts.map(move |(key, text)| (place.clone(), key, text))
    };
    let environment = workload.environment.iter().flat_map(move |one| {
        let is_meant = move |key: &str| one.key.as_ref().is_none_or(|wanted| wanted == key);
        let texts = values(&one.map).filter(move |(_, key, _)| is_meant(key));
        texts.map(move |(place, key, (text, mark))| HostText {
            place: place.into(),
            text,
            may_be_host: one.may_be_host || super::kubernetes::is_address(key),
            is_file: false,
            marks: with(one.marks, Some(*mark)),
        })
    });
    let files = workload.files.iter().flat_map(move |one| {
        values(&one.map).map(move |(place, _, (text, mark))| HostText {
            place: place.into(),
            text,
            may_be_host: false,
            is_file: true,
            marks: with(one.marks, Some(*mark)),
        })
    });
    own.chain(environment).chain(files)
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
