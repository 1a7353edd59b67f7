//! The shared data of all actors of a run: topology, settings, recorder, and totals.

use crate::faults::{self, Occurrence};
use crate::geography::Zone;
use crate::message::Key;
use crate::package::Package;
use crate::topology::{EDDA, Instance, SCENARIO, Service, Topology};
use crate::totals::Totals;
use crate::why::trail::Trail;
use corsair::network::{LinkEffect, LinkFault, Route};
use corsair::{Addr, Time};
use corsair_observe::{Recorder, ServiceId};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The minimum travel time of messages in nanoseconds, even if a distribution gives less, because virtual time advances
/// in windows of that width.
pub const LEAST_TRAVEL: u64 = 10_000;

/// The shared data of all actors of a run.
#[derive(Debug)]
pub struct Model {
    pub(crate) topology: Topology,
    pub(crate) recorder: Recorder,
    /// True while each message carries the span that caused the message.
    pub(crate) traces: AtomicBool,
    /// The seed of all random numbers.
    pub(crate) seed: u64,
    /// The services, in the recorder's numbering.
    pub(crate) measured: Vec<ServiceId>,
    /// The interval between look-ups in a registry, in nanoseconds.
    pub(crate) poll: u64,
    /// The time after which a client gives up a lost request, in nanoseconds.
    pub(crate) patience: u64,
    /// The time within which messages in flight and their consequences have arrived, in nanoseconds.
    pub(crate) settled: u64,
    /// The number of instances that are introduced at a time, and the pause in between.
    pub(crate) introduced: (u32, u64),
    /// The start of the load in nanoseconds.
    pub(crate) load_at: u64,
    /// The end of the load in nanoseconds.
    pub(crate) load_ends: u64,
    /// Requests before this time are not counted, in nanoseconds.
    pub(crate) count_from: u64,
    /// The length of a timeline slice in nanoseconds, if a timeline is recorded.
    pub(crate) interval: Option<u64>,
    /// The rings of tokens, by service and zone.
    rings: FxHashMap<(u32, Zone), Arc<Ring>>,
    /// The zones in which services have instances.
    present: FxHashSet<(u32, Zone)>,
    /// The faults of each instance that has any.
    faults: FxHashMap<u32, Vec<Occurrence>>,
    /// Faults of a saved run that its branch does not have, by instance and number: they do not begin.
    pub(crate) revoked: FxHashSet<(u32, u32)>,
    /// The start of the branch, if this is a branch of a saved run.
    pub(crate) turn: Option<Turn>,
    /// The faulty links, with actors given by their numbers.
    links: Vec<LinkFault>,
    /// True for each service that may call itself, directly or indirectly.
    circular: Vec<bool>,
    /// The trail of requests, if the run is explained.
    pub(crate) trail: Option<Arc<Trail>>,
    /// Messages that were lost by faults.
    pub(crate) dropped: AtomicU64,
    /// The address of instance 0, once there is one.
    pub(crate) first: OnceLock<u32>,
    /// The number of the interval that is being watched; 0 if none is.
    pub(crate) watched: AtomicU32,
    /// The number of times that watching was started.
    pub(crate) period: AtomicU32,
    /// The totals of actors that have ended.
    pub(crate) totals: Mutex<Totals>,
}

/// The start of a branch of a saved run.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// The time in nanoseconds.
    pub(crate) at: u64,
    /// The seed of random numbers from there on, if it changes.
    pub(crate) seed: Option<u64>,
    /// True if the counts of requests start again from zero.
    pub(crate) counts: bool,
    /// The services whose load changes at the branch point.
    pub(crate) loads: Vec<u32>,
}

/// The settings of a run besides its topology.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) poll: u64,
    pub(crate) patience: u64,
    /// The duration of the load in nanoseconds.
    pub(crate) duration: u64,
    /// The duration of the first part of the load, which is not counted, in nanoseconds.
    pub(crate) warm_up: u64,
    /// The length of a timeline slice in nanoseconds, if a timeline is recorded.
    pub(crate) interval: Option<u64>,
    /// True if messages carry the span that caused them, for flows and the live view.
    pub(crate) traces: bool,
    pub(crate) recorder: Recorder,
}

impl Model {
    pub(crate) fn new(topology: Topology, settings: Settings) -> Model {
        let mut rings = FxHashMap::default();
        for (index, service) in (0..).zip(&topology.services) {
            if service.package.is_ring() {
                let zones = topology.rings(index).into_iter();
                rings.extend(zones.map(|(at, nodes)| {
                    let nodes = match service.may_change() {
                        false => nodes,
                        true => spread(nodes),
                    };
                    ((index, at), Arc::new(Ring(nodes)))
                }));
            }
        }
        let present = zones_with_instances(&topology);
        let measured = topology
            .services
            .iter()
            .map(|service| settings.recorder.service(&service.name))
            .collect();
        let farthest = topology.geography.longest(topology.regions);
        // An instance is started, registers, asks and is answered, and its edges are logged: at most six messages one
        // after the other. The factor 8 includes a margin.
        let ways = farthest.max(LEAST_TRAVEL).saturating_mul(8);
        let least = topology.least_latency(LEAST_TRAVEL);
        let settled = ways.saturating_add(least.saturating_mul(32));
        let connections = connections(&topology, &present);
        let introduced = introduced(topology.len(), connections, settled);
        let pauses = u64::from(topology.len().div_ceil(introduced.0).saturating_sub(1));
        let load_at = settled.saturating_add(pauses.saturating_mul(introduced.1));
        Model {
            measured,
            settled,
            introduced,
            circular: circular(&topology),
            revoked: FxHashSet::default(),
            turn: None,
            faults: faults::draw(&topology, settings.seed, settings.duration),
            links: faults::links(&topology, settings.seed, load_at, settings.duration),
            load_at,
            load_ends: load_at.saturating_add(settings.duration),
            interval: settings.interval,
            count_from: load_at.saturating_add(settings.warm_up),
            topology,
            seed: settings.seed,
            recorder: settings.recorder,
            traces: settings.traces.into(),
            poll: settings.poll,
            patience: settings.patience,
            rings,
            present,
            trail: None,
            dropped: AtomicU64::new(0),
            first: OnceLock::new(),
            watched: AtomicU32::new(0),
            period: AtomicU32::new(0),
            totals: Mutex::default(),
        }
    }

    /// Returns the number of the interval that is being watched; 0 if none is.
    #[inline]
    pub(crate) fn interval(&self) -> u32 {
        self.watched.load(Ordering::Relaxed)
    }

    /// Returns the number of times that watching was started.
    pub(crate) fn period(&self) -> u32 {
        self.period.load(Ordering::Relaxed)
    }

    /// Returns the times of the settings, which together with the topology determine the run.
    pub(crate) fn times(&self) -> [u64; 5] {
        let interval = self.interval.unwrap_or(0);
        [
            self.poll,
            self.patience,
            self.load_ends,
            self.count_from,
            interval,
        ]
    }

    pub(crate) fn instance(&self, index: u32) -> Instance {
        self.topology.instances[index as usize]
    }

    pub(crate) fn package(&self, index: u32) -> Package {
        self.topology.service_of(index).package
    }

    /// Returns the name of an actor.
    pub(crate) fn name_of(&self, actor: Addr) -> String {
        let first = self.first.get().copied().unwrap_or_default();
        let (number, instances) = (actor.as_u32().wrapping_sub(first), self.topology.len());
        let controllers = self.topology.looked_after();
        match number {
            _ if actor == Addr::NONE => "outside".to_owned(),
            instance if instance < instances => self.topology.label(instance),
            registry if registry < self.edda() => {
                self.topology.short_registry_name(registry - instances)
            }
            edda if edda == self.edda() => EDDA.to_owned(),
            controller => {
                let number = controller.wrapping_sub(self.first_controller()) as usize;
                let service = controllers.into_iter().nth(number);
                service.map_or(SCENARIO.to_owned(), |s| self.topology.controller_name(s))
            }
        }
    }

    /// Returns the number of a registry's actor; registries are numbered after the instances.
    pub(crate) fn registry(&self, registry: u32) -> u32 {
        self.topology.len() + registry
    }

    /// Returns the number of the actor that logs nodes and edges.
    pub(crate) fn edda(&self) -> u32 {
        self.topology.len() + self.topology.registries()
    }

    /// Returns the zone of an actor, given by its number: first instances, then registries, then all others.
    pub(crate) fn place(&self, actor: u32) -> Zone {
        let instances = self.topology.len();
        match self.topology.instances.get(actor as usize) {
            Some(instance) => instance.at,
            None if actor < self.edda() => self.topology.registry_at(actor - instances),
            None => Zone::EVERYWHERE,
        }
    }

    /// Returns the usual travel time between two actors in nanoseconds.
    pub(crate) fn usual_travel(&self, from: u32, to: u32) -> u64 {
        let times = (self.topology.geography).between(self.place(from), self.place(to));
        times.median().max(LEAST_TRAVEL)
    }

    /// Returns the ring of a service in a zone.
    pub(crate) fn ring(&self, service: u32, at: Zone) -> Option<&Arc<Ring>> {
        self.rings.get(&(service, at))
    }

    /// True if a service may call itself, directly or indirectly.
    #[inline]
    pub(crate) fn is_circular(&self, service: u32) -> bool {
        self.circular[service as usize]
    }

    /// True if an instance is an entry point.
    pub(crate) fn is_entry_point(&self, instance: u32) -> bool {
        self.package(instance) == Package::Denominator
    }

    /// Replaces the faults with the faults of another model.
    pub(crate) fn keep_faults_of(&mut self, other: &Model) {
        self.faults.clone_from(&other.faults);
    }

    /// Returns the faults of an instance.
    pub(crate) fn faults(&self, instance: u32) -> &[Occurrence] {
        self.faults.get(&instance).map_or(&[], Vec::as_slice)
    }

    /// True if the run has faulty links.
    #[inline]
    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns the effect of link faults on a message between two actors, given by their numbers.
    #[inline]
    pub(crate) fn effect(
        &self,
        from: u32,
        to: u32,
        now: u64,
        bits: impl FnMut() -> u64,
    ) -> LinkEffect {
        match self.has_links() {
            false => LinkEffect::default(),
            true => self.effect_of_links(from, to, now, bits),
        }
    }

    #[inline(never)]
    fn effect_of_links(
        &self,
        from: u32,
        to: u32,
        now: u64,
        mut bits: impl FnMut() -> u64,
    ) -> LinkEffect {
        let mut effect = LinkEffect::default();
        let way = Route {
            from: Addr::from_u32(from),
            to: Addr::from_u32(to),
            sent: Time::from_nanos(now),
        };
        for link in &self.links {
            link.apply(&way, &mut effect, &mut bits);
        }
        effect
    }

    /// Returns the number of actors besides the root.
    pub(crate) fn actors(&self) -> u32 {
        self.first_controller() + self.topology.looked_after().count() as u32
    }

    /// Returns the number of the first controller of a service, which follows the instances.
    pub(crate) fn first_controller(&self) -> u32 {
        self.edda() + 1
    }

    /// True if an instance may call another instance, or itself. The caller's registries must know that instance.
    /// Services that stay in their zone call other zones of their region only if their own zone has none of the instances
    /// that they depend on.
    ///
    /// A registry knows the instances of its region, and instances that register everywhere: those of services outside
    /// all regions, and of services that depend on eureka, such as joined rings.
    pub(crate) fn may_call(&self, caller: u32, node: u32) -> bool {
        may_call(&self.topology, &self.present, caller, node)
    }
}

/// See [`Model::may_call`]; `present` are the zones in which services have instances.
fn may_call(topology: &Topology, present: &FxHashSet<(u32, Zone)>, caller: u32, node: u32) -> bool {
    let [from, to] = [caller, node].map(|index| topology.instances[index as usize]);
    let service = topology.service_of(caller);
    if caller == node && !service.package.may_call_itself() {
        return false;
    }
    if from.at.region.is_none() || to.at.region.is_none() {
        return true;
    }
    let same_region = from.at.region == to.at.region;
    let is_known = same_region || service.all_regions || topology.service_of(node).all_regions;
    let stays = service.package.stays_in_zone() && from.at.zone.is_some();
    let may_leave_zone = !stays || to.at.zone.is_none() || from.at.zone == to.at.zone;
    let is_here = |&service: &u32| present.contains(&(service, from.at));
    is_known && (may_leave_zone || same_region && !service.dependencies.iter().any(is_here))
}

/// Returns the zones in which services have instances from the beginning, as (service, zone).
pub(crate) fn zones_with_instances(topology: &Topology) -> FxHashSet<(u32, Zone)> {
    let zones = |(index, service): (u32, &Service)| {
        let instances =
            &topology.instances[service.defined().start as usize..service.defined().end as usize];
        instances.iter().map(move |instance| (index, instance.at))
    };
    (0..).zip(&topology.services).flat_map(zones).collect()
}

/// Returns the number of pairs of an instance and an instance that it may call. O(services² · zones²).
pub(crate) fn connections(topology: &Topology, present: &FxHashSet<(u32, Zone)>) -> u64 {
    if let Some(edges) = &topology.edges {
        return edges.len() as u64;
    }
    // For each service and zone: the number of instances, and one instance that represents them.
    let mut zones: FxHashMap<u32, BTreeMap<Zone, (u64, u32)>> = FxHashMap::default();
    for (index, instance) in (0..).zip(&topology.instances) {
        let here = zones.entry(instance.service).or_default();
        here.entry(instance.at).or_insert((0, index)).0 += 1;
    }
    let mut connections = 0;
    for (service, about) in (0..).zip(&topology.services) {
        for dependency in &about.dependencies {
            let callers = zones.get(&service).into_iter().flatten();
            for ((_, (callers, caller)), called) in
                callers.map(|c| (c, zones.get(dependency).into_iter().flatten()))
            {
                for (_, (count, node)) in called {
                    // The caller stands for all instances of the zone, none of which calls itself.
                    if caller == node && !about.package.may_call_itself() {
                        connections += callers * (callers - 1);
                    } else if may_call(topology, present, *caller, *node) {
                        connections += callers * count;
                    }
                }
            }
        }
    }
    connections
}

/// Returns the number of instances that are introduced to their dependencies at a time, and the pause between two such
/// groups in nanoseconds. An introduced instance asks the registries, receives a message for every instance that it may
/// call, and reports each connection to the log. If an architecture has many connections, the pause is so long that the
/// messages of one group arrive before the next group is introduced. This bounds the number of messages in transit.
fn introduced(instances: u32, connections: u64, settled: u64) -> (u32, u64) {
    const AT_ONCE: u64 = 1 << 16;
    if connections <= 2 * AT_ONCE {
        return (instances.max(1), 0);
    }
    let share = u64::from(instances) * AT_ONCE / connections;
    (share.max(1) as u32, settled / 2)
}

/// Finds the services that forward requests and may receive them again. O(services · dependencies).
fn circular(topology: &Topology) -> Vec<bool> {
    let services = &topology.services;
    let mut calls: Vec<FxHashSet<u32>> = (services.iter())
        .map(|service| service.dependencies.iter().copied().collect())
        .collect();
    for &(source, target) in topology.edges.iter().flatten() {
        let [source, target] = [source, target].map(|i| topology.instances[i as usize].service);
        calls[source as usize].insert(target);
    }
    let passes_on = |service: u32| {
        let package = services[service as usize].package;
        !package.is_storage() && package != Package::Pirate
    };
    let may_call_itself = |start: u32| {
        let mut seen = vec![false; services.len()];
        let mut next = vec![start];
        while let Some(service) = next.pop() {
            for &called in calls[service as usize].iter().filter(|&&s| passes_on(s)) {
                if called == start {
                    return true;
                }
                if !std::mem::replace(&mut seen[called as usize], true) {
                    next.push(called);
                }
            }
        }
        false
    };
    (0..services.len() as u32)
        .map(|service| passes_on(service) && may_call_itself(service))
        .collect()
}

/// Orders the instances of a ring so that any prefix of the list divides the tokens nearly evenly, because an
/// autoscaler may leave only such a prefix.
fn spread(nodes: Vec<u32>) -> Vec<u32> {
    let mut spread: Vec<(u32, u32)> = (0u32..).map(u32::reverse_bits).zip(nodes).collect();
    spread.sort_unstable();
    spread.into_iter().map(|(_, node)| node).collect()
}

/// The instances of a ring in one zone, in the order of their tokens: the n-th of N owns the tokens from n·(2^32-1)/N
/// on.
#[derive(Debug)]
pub(crate) struct Ring(Vec<u32>);

impl Ring {
    /// Returns the index of the ring's instance that owns a token.
    fn place(&self, token: u32) -> usize {
        let share = (u32::MAX / self.0.len() as u32).max(1);
        ((token / share) as usize).min(self.0.len() - 1)
    }

    /// Returns the instance that owns a key. If that instance is not present, returns the next present instance on the
    /// ring.
    pub(crate) fn owner(&self, key: Key, there: impl Fn(u32) -> bool) -> Option<u32> {
        let place = self.place(key.token());
        let (before, from) = self.0.split_at(place);
        from.iter().chain(before).copied().find(|&node| there(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scale, read, read_text};
    use std::path::Path;

    fn model(topology: Topology) -> Model {
        let settings = Settings {
            seed: 1,
            poll: 1_000_000_000,
            patience: 1_000_000_000,
            duration: 0,
            warm_up: 0,
            interval: None,
            traces: true,
            recorder: Recorder::off(),
        };
        Model::new(topology, settings)
    }

    fn built_in(name: &str, regions: u32) -> Model {
        let checked = read(name, Path::new("nowhere")).unwrap();
        let scale = Scale {
            regions,
            percent: 100,
        };
        model(Topology::new(&checked, scale).unwrap())
    }

    fn find(model: &Model, label: &str) -> u32 {
        (0..model.topology.len())
            .find(|&node| model.topology.label(node) == label)
            .unwrap()
    }

    #[test]
    fn callers_stay_in_zone_region_or_go_everywhere_as_their_package_says() {
        let model = built_in("netflixoss", 2);
        let may = |a, b| model.may_call(find(&model, a), find(&model, b));
        // The number of an instance modulo three is its zone, and the instances of the second region follow those of
        // the first.
        assert!(may("login00", "subscriber03") && !may("login00", "subscriber01"));
        assert!(may("subscriber00", "cassSubscriber01"));
        // The ring registers in all regions, so data access finds all of its instances.
        assert!(may("subscriber00", "cassSubscriber07"));
        assert!(!may("subscriber00", "evcacheSubscriber03"));
        assert!(may("cassSubscriber00", "cassSubscriber07"));
        assert!(!may("cassSubscriber00", "cassSubscriber00"));
        assert!(may("www00", "www-elb00"));
    }

    #[test]
    fn connections_are_counted_without_making_them() {
        for (name, regions) in [
            ("netflixoss", 1),
            ("netflixoss", 2),
            ("test", 1),
            ("riak", 3),
        ] {
            let model = built_in(name, regions);
            let topology = &model.topology;
            let mut counted = 0;
            for caller in 0..topology.len() {
                for &dependency in &topology.service_of(caller).dependencies {
                    let nodes = topology.services[dependency as usize].instances.clone();
                    counted += nodes.filter(|&node| model.may_call(caller, node)).count() as u64;
                }
            }
            assert_eq!(
                connections(&model.topology, &model.present),
                counted,
                "{name} {regions}"
            );
        }
    }

    #[test]
    fn large_architectures_are_introduced_in_parts_and_small_ones_at_once() {
        let at = |percent| {
            let checked = read("netflixoss", Path::new("nowhere")).unwrap();
            let regions = 1;
            model(Topology::new(&checked, Scale { regions, percent }).unwrap())
        };
        let small = at(100);
        assert_eq!(small.introduced, (small.topology.len(), 0));
        assert_eq!(small.load_at, small.settled);
        let large = at(10_000);
        let (at_once, pause) = large.introduced;
        let each = connections(&large.topology, &large.present) / u64::from(large.topology.len());
        assert!(u64::from(at_once) * each <= 1 << 17 && pause > 0);
        assert!(large.load_at > large.settled);
    }

    #[test]
    fn a_zone_without_an_instance_is_served_by_the_others() {
        let model = built_in("test", 1);
        let may = |a, b| model.may_call(find(&model, a), find(&model, b));
        assert!(may("homepage00", "mysql00") && !may("homepage00", "mysql01"));
        assert!(may("homepage02", "mysql00") && may("homepage02", "mysql01"));
    }

    #[test]
    fn every_token_has_an_owner_and_the_next_one_takes_over() {
        let ring = Ring(vec![7, 8, 9, 10]);
        assert_eq!(
            [0, 1 << 30, 1 << 31, u32::MAX].map(|t| ring.place(t)),
            [0, 1, 2, 3]
        );
        for number in 0..100 {
            let key = Key::numbered(number);
            let owner = ring.owner(key, |_| true).unwrap();
            let next = ring.owner(key, |node| node != owner).unwrap();
            assert_eq!(next, if owner == 10 { 7 } else { owner + 1 });
        }
        assert_eq!(ring.owner(Key::WHY, |_| false), None);
    }

    #[test]
    fn a_fault_hits_its_share_of_instances_and_at_least_one() {
        let text = |share: f64| {
            format!(
                r#"{{"arch": "x", "services": [{{"name": "db", "package": "store", "count": 10,
                "regions": 1, "faults": [{{"kind": "kill", "at": "1s", "share": {share}}}]}}]}}"#
            )
        };
        let hit = |share| {
            let checked = read_text(&text(share), "x").unwrap();
            let model = model(Topology::new(&checked, Scale::default()).unwrap());
            (0..10).filter(|&i| !model.faults(i).is_empty()).count()
        };
        assert_eq!([hit(0.01), hit(0.3), hit(1.0)], [1, 3, 10]);
    }
}
