//! Hosts: the workloads behind a host name, and host names in texts.

use super::super::shortened;
use super::super::system::{Backends, Destination, Route, Selector, System, has_labels};
use super::Weighted;
use crate::definition::CallPolicy;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// The workloads of every host.
#[derive(Debug, Default)]
pub(in super::super) struct Hosts {
    /// The workloads, by lower-case names.
    known: HashMap<String, Vec<usize>>,
    routes: HashMap<String, Vec<usize>>,
    subsets: HashMap<String, Vec<usize>>,
    /// For each workload, the host with the most workloads behind it; of several such hosts, the first by name.
    of: HashMap<usize, String>,
}

/// The maximum number of workloads behind all hosts together.
const MOST_BACKENDS: usize = 200_000;

/// The workloads by their names and by their labels.
struct Index<'a> {
    system: &'a System,
    by_name: HashMap<&'a str, usize>,
    by_label: HashMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Index<'a> {
    fn new(system: &'a System) -> Index<'a> {
        let mut index = Index {
            system,
            by_name: HashMap::new(),
            by_label: HashMap::new(),
        };
        for (place, workload) in system.workloads.iter().enumerate() {
            index.by_name.insert(&workload.name, place);
            for (key, value) in &workload.labels {
                let list = index.by_label.entry((key, value)).or_default();
                list.push(place);
            }
        }
        index
    }

    /// Returns the workloads that a Service selects, in the order of the files.
    fn selected(&self, selector: &Selector) -> Vec<usize> {
        let lists = selector.labels.iter().map(|(key, value)| {
            let list = self.by_label.get(&(key.as_str(), value.as_str()));
            list.map(Vec::as_slice).unwrap_or_default()
        });
        let shortest = lists.min_by_key(|list| list.len()).unwrap_or_default();
        let repeated = !self.system.repeated.is_empty();
        let is_meant = |place: &&usize| selector.selects(&self.system.workloads[**place], repeated);
        let places: Vec<usize> = shortest.iter().filter(is_meant).copied().collect();
        for place in &places {
            let workload = &self.system.workloads[*place];
            self.system.note_labels(workload, &selector.labels);
        }
        places
    }

    /// Returns the workloads of the backends of a host, except those of other hosts.
    fn behind(&self, backends: &[Backends]) -> Vec<usize> {
        let mut seen = HashSet::new();
        let places = backends.iter().flat_map(|backend| match backend {
            Backends::Selected(selector) => self.selected(selector),
            Backends::Named(name) => self
                .by_name
                .get(name.as_str())
                .copied()
                .into_iter()
                .collect(),
            Backends::Alias(_) => Vec::new(),
        });
        places.filter(|place| seen.insert(*place)).collect()
    }
}

impl Hosts {
    /// Collects the hosts of a system, and replaces the host names of its routes and policies by these hosts.
    pub(super) fn new(system: &mut System) -> Hosts {
        let index = Index::new(system);
        let mut known: HashMap<String, Vec<usize>> = HashMap::new();
        let mut backends = 0;
        let mut nobody = Vec::new();
        for (host, of) in &system.hosts {
            let places = index.behind(of);
            backends += places.len();
            if !places.is_empty() && backends <= MOST_BACKENDS {
                known.insert(host.clone(), places);
            } else if matches!(of.as_slice(), [Backends::Selected(_)]) {
                nobody.push(shortened(host));
            }
        }
        // A workload without a Service may still be named.
        for (place, workload) in system.workloads.iter().enumerate() {
            for name in [workload.name.to_lowercase(), workload.host.clone()] {
                known.entry(name).or_insert_with(|| vec![place]);
            }
        }
        for host in nobody {
            let said = format!("no workload has the labels that Service '{host}' selects");
            system.left_out.push(said);
        }
        let mut hosts = Hosts {
            known,
            ..Hosts::default()
        };
        for (host, of) in &system.hosts {
            let aliases = of.iter().filter_map(|backend| match backend {
                Backends::Alias(other) => hosts.known.get(&hosts.find(other, "")?),
                _ => None,
            });
            let places: Vec<usize> = aliases.flatten().copied().take(MOST_BACKENDS).collect();
            if !places.is_empty() {
                hosts.known.entry(host.clone()).or_insert(places);
            } else if let [Backends::Alias(other)] = of.as_slice()
                && !hosts.known.contains_key(host)
            {
                system.left_out.push(format!(
                    "'{}' is the host '{}' outside, which is not simulated",
                    shortened(host),
                    shortened(other)
                ));
                system.outside.insert(host.clone());
            }
        }
        hosts.replace_names(system);
        for (place, route) in system.routes.iter().enumerate() {
            hosts
                .routes
                .entry(route.host.clone())
                .or_default()
                .push(place);
        }
        for (place, destination) in system.destinations.iter().enumerate() {
            let host = destination.host.clone();
            hosts.subsets.entry(host).or_default().push(place);
        }
        hosts.of = hosts.first_hosts();
        hosts
    }

    fn first_hosts(&self) -> HashMap<usize, String> {
        let mut hosts: Vec<(&String, &Vec<usize>)> = self.known.iter().collect();
        // The workload's own name is a host only if there is no Service.
        hosts.sort_by_key(|(host, places)| (Reverse(places.len()), *host));
        let mut first = HashMap::new();
        for (host, places) in hosts {
            for place in places {
                first.entry(*place).or_insert_with(|| host.clone());
            }
        }
        first
    }

    /// Replaces the names with which routes, policies and entry points refer to hosts.
    fn replace_names(&self, system: &mut System) {
        let replace =
            |host: &mut String| *host = self.find(host, "").unwrap_or(std::mem::take(host));
        for route in &mut system.routes {
            let targets = route.targets.iter_mut().chain(&mut route.mirrors);
            targets.for_each(|target| replace(&mut target.host));
            replace(&mut route.host);
        }
        let destinations = system.destinations.iter_mut().map(|one| &mut one.host);
        let ways_in = system.ways_in.iter_mut().map(|one| &mut one.host);
        destinations.chain(ways_in).for_each(replace);
    }

    /// Returns the host that a document in `namespace` means: the name itself, or the first parts of
    /// `cart.shop.svc.cluster.local`.
    pub(super) fn find(&self, name: &str, namespace: &str) -> Option<String> {
        let known = |host: String| self.known.contains_key(&host).then_some(host);
        let name = name.trim_matches(['.', '-']).to_lowercase();
        if let Some(host) = known(format!("{name}.{}", namespace.to_lowercase())) {
            return Some(host);
        }
        if self.known.contains_key(&name) {
            return Some(name);
        }
        let (first, rest) = name.split_once('.')?;
        let second = rest.split('.').next()?;
        let is_cluster = rest == "svc" || rest.contains(".svc") || !rest.contains('.');
        if is_cluster
            && let Some(host) =
                known(format!("{first}.{second}")).or_else(|| known(first.to_owned()))
        {
            return Some(host);
        }
        // A pod of a StatefulSet: db-0.db.
        let pod = first.strip_prefix(second)?.strip_prefix('-')?;
        let is_pod = pod.bytes().all(|byte| byte.is_ascii_digit());
        is_pod.then(|| known(second.to_owned())).flatten()
    }

    /// Returns the host with the most workloads of all hosts behind which there is this workload; of several such
    /// hosts, the first by name.
    pub(super) fn of(&self, workload: usize) -> Option<&str> {
        self.of.get(&workload).map(String::as_str)
    }

    /// Returns the workloads of a host, weighted by their replicas.
    fn weighted(&self, system: &System, host: &str) -> Vec<Weighted> {
        let places = self.known.get(host).map(Vec::as_slice).unwrap_or_default();
        let weight = |place: &usize| system.workloads[*place].count.unwrap_or(1) as f64;
        places.iter().map(|place| (*place, weight(place))).collect()
    }

    /// Returns the workloads of a subset of a host, or of the whole host.
    pub(super) fn subset(
        &self,
        system: &System,
        host: &str,
        subset: Option<&str>,
    ) -> Vec<Weighted> {
        let mut all = self.weighted(system, host);
        let Some(subset) = subset else {
            return all;
        };
        let destinations = self.destinations(system, host);
        let subset = destinations
            .filter_map(|known| known.subsets.get(subset))
            .next_back();
        let Some(subset) = subset else {
            return all;
        };
        subset.marks.iter().for_each(|mark| system.log.note(*mark));
        all.retain(|(place, _)| {
            let workload = &system.workloads[*place];
            let is_meant = has_labels(&workload.labels, &subset.labels);
            if is_meant {
                system.note_labels(workload, &subset.labels);
            }
            is_meant
        });
        all
    }

    /// Returns the settings for a host.
    fn destinations<'a>(
        &self,
        system: &'a System,
        host: &str,
    ) -> impl DoubleEndedIterator<Item = &'a Destination> {
        let places = self.subsets.get(host).map(Vec::as_slice);
        let places = places.unwrap_or_default().iter();
        places.map(|place| &system.destinations[*place])
    }

    /// Returns the policies for calls of a host by a caller. Later ones replace earlier ones.
    pub(in super::super) fn policies<'a>(
        &self,
        system: &'a System,
        host: &str,
        caller: &str,
    ) -> Vec<&'a CallPolicy> {
        let destinations = self.destinations(system, host);
        let destinations = destinations.map(|one| (&one.caller, &one.policy));
        let routes = self.routes.get(host).map(Vec::as_slice);
        let routes = routes.unwrap_or_default().iter().map(|place| {
            let route = &system.routes[*place];
            (&route.caller, &route.policy)
        });
        let sorted = |policies: Vec<(&'a Option<String>, &'a CallPolicy)>| {
            let mut policies = policies;
            policies.retain(|(of, _)| of.as_deref().is_none_or(|of| of == caller));
            // Of those for everybody and those for this caller, the latter say more.
            policies.sort_by_key(|(of, _)| of.is_some());
            policies.into_iter().map(|(_, policy)| policy)
        };
        let destinations = sorted(destinations.collect());
        destinations.chain(sorted(routes.collect())).collect()
    }

    /// Returns the route of a host for a caller: a route for that caller, or one for all callers. Later routes replace
    /// earlier ones.
    pub(super) fn route<'a>(
        &self,
        system: &'a System,
        host: &str,
        caller: Option<&str>,
    ) -> Option<&'a Route> {
        let places = self.routes.get(host).map(Vec::as_slice).unwrap_or_default();
        let routes = || {
            let routes = places.iter().rev().map(|place| &system.routes[*place]);
            // A route that only patches a policy does not change the targets.
            routes.filter(|route| !route.targets.is_empty() || !route.mirrors.is_empty())
        };
        let own =
            routes().find(|route| route.caller.is_some() && route.caller.as_deref() == caller);
        own.or_else(|| routes().find(|route| route.caller.is_none()))
    }

    /// Returns the workloads to which the route of a host leads.
    pub(super) fn routed(
        &self,
        system: &System,
        host: &str,
        caller: Option<&str>,
    ) -> Vec<Weighted> {
        let mut targets: Vec<Weighted> = Vec::new();
        for target in self
            .route(system, host, caller)
            .into_iter()
            .flat_map(|route| &route.targets)
        {
            let of = self.subset(system, &target.host, target.subset.as_deref());
            let sum: f64 = of.iter().map(|(_, weight)| weight).sum();
            for (place, weight) in of {
                let weight = target.weight * weight / sum.max(1e-9);
                match targets.iter_mut().find(|(known, _)| *known == place) {
                    Some((_, known)) => *known += weight,
                    None => targets.push((place, weight)),
                }
            }
        }
        targets.retain(|(_, weight)| *weight > 0.0);
        if targets.is_empty() {
            targets = self.weighted(system, host);
            targets.retain(|(_, weight)| *weight > 0.0);
        }
        targets
    }
}

/// A part of a text that may be a host.
#[derive(Debug, PartialEq)]
pub(super) struct Candidate<'a> {
    pub(super) name: &'a str,
    /// True if the name is before a port or in an address.
    pub(super) is_sure: bool,
}

/// Returns the names in a text whose position shows that they are hosts: before a port, in an address, after `host=`,
/// or as the whole value of a field for addresses.
pub(super) fn candidates(text: &str, may_be_host: bool) -> Vec<Candidate<'_>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(start) = text[place..].find(is_part).map(|at| at + place) {
        let end = text[start..]
            .find(|c| !is_part(c))
            .map_or(text.len(), |at| at + start);
        place = end;
        let name = text[start..end].trim_matches(['.', '-', '_']);
        if name.is_empty() || name.len() > 253 {
            continue;
        }
        let (before, after) = (&text[..start], &text[end..]);
        let has_port = after.strip_prefix(':').is_some_and(|rest| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let is_end = rest[digits..]
                .chars()
                .next()
                .is_none_or(|c| !c.is_ascii_alphabetic());
            (1..=5).contains(&digits) && is_end
        });
        // After `://` there may be a user and a password, followed by an at sign.
        let is_user = before.ends_with("://")
            && after
                .split('/')
                .next()
                .is_some_and(|rest| rest.contains('@'));
        let is_in_address = before.ends_with("://") && !is_user
            || before.ends_with('@') && after.starts_with([':', '/']);
        let key = before.strip_suffix('=').unwrap_or_default();
        let key = &key[key.len().saturating_sub(
            key.bytes()
                .rev()
                .take_while(u8::is_ascii_alphabetic)
                .count(),
        )..];
        let is_keyed = ["host", "server"]
            .iter()
            .any(|known| key.eq_ignore_ascii_case(known));
        let is_sure = has_port || is_in_address || name.contains(".svc");
        let stands_alone = (before.is_empty() || before.ends_with(['=', ',', ';', ' ']))
            && (after.is_empty() || after.starts_with([',', ';', ' ', '/']));
        if is_sure || is_keyed || may_be_host && stands_alone {
            found.push(Candidate { name, is_sure });
        }
    }
    found
}

/// True if a name may belong to the system, and is not an external name, a number or the machine itself.
pub(super) fn is_inside(name: &str) -> bool {
    let is_number = name
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_own = ["localhost", "tcp", "http", "https"].contains(&name);
    !is_number && !is_own && (!name.contains('.') || name.contains(".svc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_where_they_stand() {
        let names = |text, may_be| -> Vec<&str> {
            candidates(text, may_be).iter().map(|c| c.name).collect()
        };
        assert_eq!(names("cart:7070", false), ["cart"]);
        assert_eq!(names("http://email:6060/x", false), ["email"]);
        assert_eq!(names("http://frontend/", false), ["frontend"]);
        assert_eq!(names("postgres://u:p@db/shop", false), ["db"]);
        assert_eq!(
            names("a.shop.svc.cluster.local", false),
            ["a.shop.svc.cluster.local"]
        );
        assert_eq!(names("redis", true), ["redis"]);
        assert!(names("redis", false).is_empty());
        assert_eq!(names("Host=pg;Username=x;Password=y", false), ["pg"]);
        assert_eq!(names("k1:9092,k2:9092", false), ["k1", "k2"]);
        assert_eq!(names("--db-host=db", true), ["db"]);
        assert!(names("v1:latest 10:30am", false).is_empty());
        assert!(is_inside("cart") && !is_inside("10.0.0.1") && !is_inside("example.com"));
    }
}
