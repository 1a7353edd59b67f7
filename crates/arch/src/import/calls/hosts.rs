//! Hosts: the workloads behind a host name, and host names in texts.

use super::super::system::{Backends, Destination, Route, System, definition_name};
use super::Weighted;
use std::collections::{BTreeMap, HashMap};

/// The workloads of every host.
pub(super) struct Hosts {
    /// The workloads, by lower-case names.
    known: HashMap<String, Vec<usize>>,
    routes: HashMap<String, Vec<usize>>,
    subsets: HashMap<String, Vec<usize>>,
}

impl Hosts {
    pub(super) fn new(system: &System) -> Hosts {
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let mut by_label: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (place, workload) in system.workloads.iter().enumerate() {
            by_name.insert(&workload.name, place);
            for (key, value) in &workload.labels {
                by_label.entry((key, value)).or_default().push(place);
            }
        }
        let labelled = |labels: &BTreeMap<String, String>| -> Vec<usize> {
            let lists = labels.iter().map(|(key, value)| {
                let list = by_label.get(&(key.as_str(), value.as_str()));
                list.map(Vec::as_slice).unwrap_or_default()
            });
            let Some(shortest) = lists.min_by_key(|list| list.len()) else {
                return Vec::new();
            };
            let has_all = |place: &&usize| {
                let own = &system.workloads[**place].labels;
                labels
                    .iter()
                    .all(|(key, value)| own.get(key) == Some(value))
            };
            shortest.iter().filter(has_all).copied().collect()
        };
        let mut known: HashMap<String, Vec<usize>> = HashMap::new();
        for (host, backends) in &system.hosts {
            for backend in backends {
                let places = match backend {
                    Backends::Labelled(labels) => labelled(labels),
                    Backends::Named(name) => {
                        by_name.get(name.as_str()).copied().into_iter().collect()
                    }
                };
                let entry = known.entry(host.clone()).or_default();
                for place in places {
                    if !entry.contains(&place) {
                        entry.push(place);
                    }
                }
            }
        }
        known.retain(|_, places| !places.is_empty());
        // A workload without a Service may still be named by another workload.
        for (name, place) in by_name {
            known
                .entry(name.to_lowercase())
                .or_insert_with(|| vec![place]);
        }
        let mut hosts = Hosts {
            known,
            routes: HashMap::new(),
            subsets: HashMap::new(),
        };
        for (place, route) in system.routes.iter().enumerate() {
            let host = hosts.find(&route.host).unwrap_or_default();
            hosts.routes.entry(host).or_default().push(place);
        }
        for (place, destination) in system.destinations.iter().enumerate() {
            let host = hosts.find(&destination.host).unwrap_or_default();
            hosts.subsets.entry(host).or_default().push(place);
        }
        hosts
    }

    /// Returns the host of a name: the name itself, or the first part of `cart.shop.svc.cluster.local`.
    pub(super) fn find(&self, name: &str) -> Option<String> {
        let name = name.trim_matches(['.', '-']).to_lowercase();
        if self.known.contains_key(&name) {
            return Some(name);
        }
        let (first, rest) = name.split_once('.')?;
        let is_cluster = rest == "svc" || rest.contains(".svc") || !rest.contains('.');
        if is_cluster && self.known.contains_key(first) {
            return Some(first.to_owned());
        }
        // A pod of a StatefulSet: db-0.db.
        let second = rest.split('.').next()?;
        let pod = first.strip_prefix(second)?.strip_prefix('-')?;
        let is_pod =
            pod.bytes().all(|byte| byte.is_ascii_digit()) && self.known.contains_key(second);
        is_pod.then(|| second.to_owned())
    }

    /// Returns the first host, by name, that leads to this workload.
    pub(super) fn of(&self, workload: usize) -> Option<&str> {
        let hosts = self
            .known
            .iter()
            .filter(|(_, places)| places.contains(&workload));
        // The workload's own name is a host only if there is no Service.
        hosts
            .max_by_key(|(host, places)| (places.len(), std::cmp::Reverse(host.as_str())))
            .map(|(host, _)| host.as_str())
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
        name: &str,
        subset: Option<&str>,
    ) -> Vec<Weighted> {
        let Some(host) = self.find(name) else {
            return Vec::new();
        };
        let all = self.weighted(system, &host);
        let Some(subset) = subset else {
            return all;
        };
        let destinations = self.destinations(system, &host);
        let labels = destinations
            .filter_map(|known| known.subsets.get(subset))
            .next_back();
        let Some(labels) = labels else {
            return all;
        };
        let has_all = |place: usize| {
            let own = &system.workloads[place].labels;
            labels
                .iter()
                .all(|(key, value)| own.get(key) == Some(value))
        };
        all.into_iter()
            .filter(|(place, _)| has_all(*place))
            .collect()
    }

    /// Returns the settings for a host.
    pub(super) fn destinations<'a>(
        &'a self,
        system: &'a System,
        host: &str,
    ) -> impl DoubleEndedIterator<Item = &'a Destination> {
        let places = self
            .subsets
            .get(host)
            .map(Vec::as_slice)
            .unwrap_or_default();
        places.iter().map(|place| &system.destinations[*place])
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

    /// Returns the host of a name, and the workloads to which its route leads.
    pub(super) fn routed(
        &self,
        system: &System,
        name: &str,
        caller: Option<&str>,
    ) -> (String, Vec<Weighted>) {
        let host = self.find(name).unwrap_or_else(|| definition_name(name));
        let mut targets: Vec<Weighted> = Vec::new();
        for target in self
            .route(system, &host, caller)
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
            targets = self.weighted(system, &host);
            targets.retain(|(_, weight)| *weight > 0.0);
        }
        (host, targets)
    }
}

/// A part of a text that may be a host.
#[derive(Debug, PartialEq)]
pub(super) struct Candidate<'a> {
    pub(super) name: &'a str,
    /// True if it is before a port or in an address.
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
