//! Instances of services in regions and zones, and their names.
//!
//! Instance `i` of a service is in zone `i mod 3` of its region if there are three zones. Numbers continue from one
//! region to the next, so names are unique. Instances are in the order of their services in the definition.

mod fault;
mod name;
mod remarks;
mod scale;
mod service;
mod sizes;
mod spare;

pub use fault::{LinkSide, TimedFault, TimedLink};
pub use name::first_part;
pub(crate) use name::{EDDA, SCENARIO};
pub use scale::{Scale, ScaleError};
pub use service::{Costs, HealthRules, ScalerRules, Service};
pub use spare::ExtraCapacityError;

use crate::definition::{CheckedDefinition, ServiceDefinition, Side, reachable};
use crate::distribution::Sampler;
use crate::geography::{Geography, Places, Zone};
use crate::load::Load;
use crate::message::Key;
use crate::package::Package;
use crate::script::Endpoints;
use crate::totals::Totals;
use corsair_observe::Guess;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The version of [`Topology::encoded`]. Increase it when a field is added, removed or changes its meaning.
const ENCODING_VERSION: u32 = 2;

/// An instance of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// The index of the instance's service.
    pub service: u32,
    /// The number of the instance within the service; `None` if it was read from a graph without a number.
    pub number: Option<u32>,
    /// The zone of the instance.
    pub at: Zone,
}

/// The actors of an architecture: services, their instances, and the registries of each zone.
#[derive(Clone, Debug, Serialize)]
pub struct Topology {
    /// The first part of every name.
    pub arch: String,
    /// The names of regions and zones.
    pub places: Arc<Places>,
    /// The number of regions.
    pub regions: u32,
    /// All services.
    pub services: Vec<Service>,
    /// The instances of all services, service after service.
    pub instances: Vec<Instance>,
    /// The initial connections by index, if a graph defines them.
    pub edges: Option<Vec<(u32, u32)>>,
    /// The latencies of messages.
    pub geography: Geography,
    /// The service that loses an instance halfway through the load.
    pub victim: Option<u32>,
    /// The endpoints of all services.
    pub endpoints: Endpoints,
    /// Faults of places: the place, the affected services (empty for all), and the fault.
    pub(crate) faults: Vec<(LinkSide, Vec<u32>, TimedFault)>,
    /// Faults of links.
    pub(crate) links: Vec<TimedLink>,
}

impl Topology {
    /// Returns a checksum of everything that determines the result of a run: the CRC-32 of its canonical encoding.
    /// Equal topologies have equal checksums in every process and on every platform.
    ///
    /// ```
    /// use corsair_arch::{Scale, Topology, read};
    ///
    /// let checked = read("lamp", ".".as_ref())?;
    /// let one = Topology::new(&checked, Scale::default())?;
    /// let twice = Topology::new(&checked, Scale { percent: 200, ..Scale::default() })?;
    /// assert_eq!(one.checksum(), one.clone().checksum());
    /// assert_ne!(one.checksum(), twice.checksum());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checksum(&self) -> u32 {
        crc32fast::hash(&self.encoded())
    }

    /// Returns the canonical encoding: a version, and the values of all fields in order, without their names.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        postcard::to_allocvec(&(ENCODING_VERSION, self))
            .expect("sequences have lengths, and a vector takes any number of bytes")
    }

    /// Returns the values that replace measured times of services in Guesstimate's models, by name, for
    /// [`corsair_observe::Settings::guesses`].
    pub fn guesses(&self) -> BTreeMap<String, Guess> {
        let guess = |service: &Service| Some((service.name.clone(), service.guess.clone()?));
        self.services.iter().filter_map(guess).collect()
    }

    /// Returns the names of operations besides the kinds of messages, for
    /// [`corsair_observe::Settings::operations`]: the endpoints of services.
    pub fn operations(&self) -> Vec<String> {
        self.endpoints.names().map(str::to_owned).collect()
    }

    /// Creates the instances of a definition at this scale.
    ///
    /// # Errors
    /// See [`ScaleError`].
    pub fn new(checked: &CheckedDefinition, scale: Scale) -> Result<Topology, ScaleError> {
        let definition = checked.definition();
        let mut topology = Topology {
            arch: first_part(&definition.arch),
            places: Arc::clone(checked.places()),
            regions: scale.regions,
            services: Vec::new(),
            instances: Vec::new(),
            edges: None,
            geography: Geography::new(definition.network.as_ref(), checked.places()),
            victim: checked.victim().map(|victim| victim as u32),
            endpoints: checked.endpoints().clone(),
            faults: Vec::new(),
            links: Vec::new(),
        };
        let index = |name: &String| checked.index_of(name).map(|index| index as u32);
        for fault in &definition.faults {
            let at = (fault.region.as_deref(), fault.zone.as_deref());
            let side = side(checked.places(), at, None);
            let services = fault.services.iter().filter_map(index).collect();
            let timed = TimedFault::new(&fault.fault());
            topology.faults.push((side, services, timed));
        }
        for link in &definition.links {
            let at = |given: &Option<Side>| {
                let given = given.clone().unwrap_or_default();
                let service = given.service.as_ref().and_then(|name| match name.as_str() {
                    "eureka" => Some(LinkSide::REGISTRIES),
                    _ => index(name),
                });
                let at = (given.region.as_deref(), given.zone.as_deref());
                side(checked.places(), at, service)
            };
            topology.links.push(TimedLink {
                from: at(&link.from),
                to: at(&link.to),
                schedule: fault::schedule(
                    link.at.nanos(),
                    link.every.map(|time| time.nanos()),
                    link.probability,
                ),
                lasting: link.lasting.map(|time| time.nanos()),
                loss: link.loss.unwrap_or(0.0),
                twice: link.duplicate.unwrap_or(0.0),
                delay: link.delay.as_ref().map(|delay| delay.sampler()),
            });
        }
        scale.check(checked)?;
        for (service, package) in checked.services() {
            let first = topology.instances.len() as u32;
            let index = topology.services.len() as u32;
            for (number, at) in places(service, scale, topology.zones()) {
                topology.instances.push(Instance {
                    service: index,
                    number: Some(number),
                    at,
                });
            }
            let last = topology.instances.len() as u32;
            topology
                .services
                .push(Service::new(service, package, first..last, checked, scale));
        }
        Ok(topology)
    }

    /// Returns the utilisation of services with limited slots or shared processors and a fixed number of
    /// instances.
    pub fn utilisations(&self, totals: &Totals, measured: Duration) -> Vec<(u32, f64)> {
        let nanos = measured.as_nanos() as f64;
        let services = (0..).zip(&self.services);
        let services = services.filter(|(_, service)| !service.may_change() && nanos > 0.0);
        let part = |(index, service): (u32, &Service)| {
            let done = totals.services.get(&index)?;
            let count = service.instances.len() as f64;
            let part = match (service.costs.concurrency, service.costs.processors) {
                (Some(slots), _) => done.busy as f64 / f64::from(slots),
                (None, Some(processors)) => done.worked as f64 / processors,
                (None, None) => return None,
            };
            Some((index, (part / count / nanos).min(1.0)))
        };
        services.filter_map(part).collect()
    }

    /// Returns the number of instances.
    pub fn len(&self) -> u32 {
        self.instances.len() as u32
    }

    /// True if there are no instances.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Returns the service of an instance.
    ///
    /// # Panics
    /// If there is no such instance.
    pub fn service_of(&self, instance: u32) -> &Service {
        &self.services[self.instances[instance as usize].service as usize]
    }

    /// Returns the priority that an endpoint gives its requests.
    pub(crate) fn own_priority(&self, service: u32, key: Key) -> Key {
        let (Some(script), Some((endpoint, _, about))) =
            (&self.services[service as usize].script, key.as_endpoint())
        else {
            return key;
        };
        let number = usize::from(endpoint.wrapping_sub(script.first));
        match script.endpoints.get(number) {
            Some((_, Some(priority))) => Key::endpoint(endpoint, *priority, about),
            _ => key,
        }
    }

    /// Returns the services that requests of an entry point reach unchanged.
    pub(crate) fn reached_from(&self, entry: usize) -> Vec<u32> {
        let packages: Vec<Package> = self.services.iter().map(|s| s.package).collect();
        reachable(entry, &packages, |service| {
            let dependencies = &self.services[service].dependencies;
            dependencies.iter().map(|&called| called as usize).collect()
        })
    }

    /// Iterates over the services with a controller: an autoscaler or health checks.
    pub(crate) fn looked_after(&self) -> impl Iterator<Item = u32> + '_ {
        let services = (0..).zip(&self.services);
        services
            .filter(|(_, service)| service.scaler.is_some() || service.health_check.is_some())
            .map(|(index, _)| index)
    }

    /// True if an instance is initially idle, until an autoscaler or a command adds it.
    pub(crate) fn begins_idle(&self, instance: u32) -> bool {
        let service = self.service_of(instance);
        if instance >= service.defined().end {
            return true;
        }
        let Some(scaler) = service.scaler else {
            return false;
        };
        // Instances are numbered region after region.
        let region = self.instances[instance as usize].at.region;
        let mut before = service.instances.start..instance;
        let here = before
            .by_ref()
            .filter(|&i| self.instances[i as usize].at.region == region);
        here.count() as u32 >= scaler.begin
    }

    /// Returns the number of zones in each region.
    fn zones(&self) -> u32 {
        self.places.zones().len() as u32
    }

    /// Returns the other zones of a region.
    pub(crate) fn other_zones(&self, at: Zone) -> impl Iterator<Item = Zone> + use<> {
        let zones = self.zones();
        let first = u32::from(at.zone.unwrap_or(0));
        (1..zones).map(move |step| Zone {
            region: at.region,
            zone: Some(((first + step) % zones) as u8),
        })
    }

    /// Returns the number of registries: one in each zone.
    pub fn registries(&self) -> u32 {
        self.regions * self.zones()
    }

    /// Returns the place of a registry. With three zones, registry `i` is in zone `i mod 3` of region `i /
    /// 3`.
    pub fn registry_at(&self, registry: u32) -> Zone {
        let zones = self.zones();
        Zone {
            region: Some((registry / zones) as u8),
            zone: Some((registry % zones) as u8),
        }
    }

    /// Returns the registries that an instance uses: those of its zone, of its region if it is in no zone, or
    /// all.
    pub fn registries_of(&self, instance: u32) -> impl Iterator<Item = u32> + use<'_> {
        let at = self.instances[instance as usize].at;
        let all = self.service_of(instance).all_regions;
        (0..self.registries()).filter(move |&registry| {
            let other = self.registry_at(registry);
            let same_region = at.region == other.region;
            match (at.region, at.zone) {
                _ if all => true,
                (None, _) => true,
                (Some(_), None) => same_region,
                (Some(_), Some(_)) => at == other,
            }
        })
    }

    /// Returns the ring of a service in each zone: the instances there in the order of their tokens, which divide the
    /// 32-bit range evenly.
    pub fn rings(&self, service: u32) -> HashMap<Zone, Vec<u32>> {
        let mut rings: HashMap<Zone, Vec<u32>> = HashMap::new();
        for instance in self.services[service as usize].instances.clone() {
            let at = self.instances[instance as usize].at;
            rings.entry(at).or_default().push(instance);
        }
        rings
    }

    /// True if the topology has a source of requests: an entry point, or pirates that gossip.
    pub fn has_load(&self) -> bool {
        let sends =
            |service: &Service| matches!(service.package, Package::Denominator | Package::Pirate);
        self.services.iter().any(sends)
    }

    /// True if the load and the faults do not change during a run: rates are constant, and no fault begins at a set
    /// time.
    pub(crate) fn is_steady(&self) -> bool {
        let is_steady = |service: &Service| {
            let load = service.load.as_ref();
            load.is_none_or(Load::is_steady) && service.faults.is_empty()
        };
        self.victim.is_none()
            && self.faults.is_empty()
            && self.links.is_empty()
            && self.services.iter().all(is_steady)
    }

    /// Returns the services that take any number of requests at once, and so never limit a load.
    pub fn unlimited(&self) -> Vec<&str> {
        let takes_all = |service: &&Service| {
            let Costs {
                concurrency: None,
                processors: None,
                rate_limit: None,
                ..
            } = service.costs
            else {
                return false;
            };
            !matches!(
                service.package,
                Package::Denominator | Package::Eureka | Package::Pirate
            )
        };
        let all = self.services.iter().filter(takes_all);
        all.map(|service| service.name.as_str()).collect()
    }

    /// True if some service or some call is limited: by slots, processors, rates, pools or bulkheads. Without a
    /// limit, response times do not depend on the load.
    pub fn is_limited(&self) -> bool {
        self.services.iter().any(|service| {
            let Costs {
                concurrency,
                processors,
                rate_limit,
                ..
            } = &service.costs;
            let of_calls = service.policies.iter().any(|policy| {
                policy.connections.is_some()
                    || policy.bulkhead.is_some()
                    || policy.rate_limit.is_some()
            });
            concurrency.is_some() || processors.is_some() || rate_limit.is_some() || of_calls
        })
    }

    /// Returns the shortest time that any message can travel, in nanoseconds, but at least `floor`. A
    /// run may use it as its lookahead.
    pub fn least_latency(&self, floor: u64) -> u64 {
        let geography = self.geography.all(self.regions);
        let own = self
            .services
            .iter()
            .filter_map(|service| service.costs.latency.as_ref());
        let scripts = self.services.iter().filter_map(|s| s.script.as_ref());
        let of_endpoints = scripts.flat_map(|script| script.latencies.iter().flatten());
        let least = geography.chain(own).chain(of_endpoints);
        let least = least.map(Sampler::least).min();
        least.unwrap_or(floor).max(floor)
    }
}

/// Returns the side for checked names of a region and a zone.
fn side(
    places: &Places,
    (region, zone): (Option<&str>, Option<&str>),
    service: Option<u32>,
) -> LinkSide {
    let named = Zone::named(places, region.unwrap_or("*"), zone.unwrap_or("*"));
    let named = named.unwrap_or(Zone::EVERYWHERE);
    LinkSide {
        region: named.region,
        zone: named.zone,
        service,
    }
}

/// Returns the numbers and zones of a service's instances at this scale, which must be valid.
fn places(
    service: &ServiceDefinition,
    scale: Scale,
    zones: u32,
) -> impl Iterator<Item = (u32, Zone)> {
    let regions = service.regions as u32 * scale.regions;
    // Those that an autoscaler may add are there from the beginning, and idle.
    let most = service.autoscaler.map_or(0, |scaler| scaler.most);
    let count = scale.count(service.count.max(most));
    let everywhere = (regions == 0).then_some((0, Zone::EVERYWHERE));
    let in_regions = (0..regions).flat_map(move |region| {
        let at = move |zone| Zone {
            region: Some(region as u8),
            zone,
        };
        let cross_zone = (service.count == 0).then(|| (0, at(None)));
        let numbers = region * count..(region + 1) * count;
        let zone = move |number| (number % zones) as u8;
        cross_zone
            .into_iter()
            .chain(numbers.map(move |number| (number, at(Some(zone(number))))))
    });
    everywhere.into_iter().chain(in_regions)
}

#[cfg(test)]
mod tests;
