//! Spare instances, in addition to those of the definition. They exist from the beginning of a run, but are idle
//! until a [`Command::Serve`](crate::Command::Serve) adds them to the registries. Nothing else in a run uses them.

use super::{Instance, Service, Topology};
use crate::geography::Zone;
use crate::nearest;
use crate::package::Package;
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum number of instances of a service, including spare instances.
const MAX_INSTANCES: u32 = 100_000;

/// The reasons why spare instances cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtraCapacityError {
    /// The service does not exist.
    #[error("there is no service '{service}'{}", near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    NoService {
        /// The name that is not a service.
        service: String,
        /// The nearest name, if there is one.
        near: Option<String>,
    },
    /// The number is too large.
    #[error("{service} cannot have {count} instances; the maximum is {MAX_INSTANCES}")]
    TooMany {
        /// The name of the service.
        service: String,
        /// The requested number of instances.
        count: u32,
    },
    /// A graph fixes the connections, so further instances would have no connections.
    #[error(
        "{service} is part of a graph, which fixes the calls between instances; new instances would receive no calls"
    )]
    Graph {
        /// The name of the service.
        service: String,
    },
    /// A load is divided among the existing entry points.
    #[error(
        "{service} is an entry point, whose number of instances is fixed by its definition; change the load instead"
    )]
    EntryPoint {
        /// The name of the entry point.
        service: String,
    },
}

impl Topology {
    /// Adds spare instances to services, up to the given total number of instances of each. A service that already has
    /// that many instances is unchanged. A different number of spare instances gives a different run, because it
    /// changes the numbers of actors.
    ///
    /// ```
    /// use corsair_arch::{Scale, Topology, read};
    /// use std::collections::BTreeMap;
    /// use std::path::Path;
    ///
    /// let mut topology = Topology::new(&read("netflixoss", Path::new(""))?, Scale::default())?;
    /// let before = topology.len();
    /// topology.add_extra_capacity(&BTreeMap::from([("login".to_owned(), 20)]))?;
    /// assert_eq!(topology.len(), before + 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ExtraCapacityError`].
    pub fn add_extra_capacity(
        &mut self,
        capacity: &BTreeMap<String, u32>,
    ) -> Result<(), ExtraCapacityError> {
        for (service, &count) in capacity {
            self.check_capacity(service, count)?;
        }
        let zones = self.zones();
        let old = std::mem::take(&mut self.instances);
        for (index, service) in (0..).zip(&mut self.services) {
            let defined = &old[service.instances.start as usize..service.instances.end as usize];
            let wanted = capacity.get(&service.name).copied().unwrap_or_default();
            let more = wanted.saturating_sub(defined.len() as u32);
            let first = self.instances.len() as u32;
            self.instances.extend_from_slice(defined);
            self.instances
                .extend(spares(index, defined, zones).take(more as usize));
            service.instances = first..self.instances.len() as u32;
            service.spare += more;
        }
        Ok(())
    }

    /// Checks whether a service can have this many instances.
    ///
    /// # Errors
    /// See [`ExtraCapacityError`].
    fn check_capacity(&self, name: &str, count: u32) -> Result<(), ExtraCapacityError> {
        let service = || name.to_owned();
        let Some(found) = self.services.iter().find(|service| service.name == name) else {
            let near = nearest(
                name,
                self.services.iter().map(|service| service.name.as_str()),
            );
            let near = near.map(str::to_owned);
            return Err(ExtraCapacityError::NoService {
                service: service(),
                near,
            });
        };
        if found.package == Package::Denominator {
            return Err(ExtraCapacityError::EntryPoint { service: service() });
        }
        if self.edges.is_some() {
            return Err(ExtraCapacityError::Graph { service: service() });
        }
        if count > MAX_INSTANCES {
            return Err(ExtraCapacityError::TooMany {
                service: service(),
                count,
            });
        }
        Ok(())
    }
}

/// Iterates without end over spare instances of a service. Their numbers follow the numbers of the defined
/// instances, and they are distributed in turn to the zones and to the regions of the service.
fn spares(service: u32, defined: &[Instance], zones: u32) -> impl Iterator<Item = Instance> {
    let last = defined.iter().filter_map(|instance| instance.number).max();
    let mut places: Vec<Zone> = defined.iter().map(|instance| instance.at).collect();
    places.sort_unstable();
    places.dedup_by_key(|at| at.region);
    let first = last.map_or(0, |last| last + 1);
    (first..)
        .zip((0..places.len()).cycle())
        .map(move |(number, place)| {
            let at = places[place];
            Instance {
                service,
                number: Some(number),
                at: Zone {
                    zone: at.zone.map(|_| (number % zones) as u8),
                    ..at
                },
            }
        })
}

impl Service {
    /// Returns the instances of the definition, without spare instances.
    pub(crate) fn defined(&self) -> Range<u32> {
        self.instances.start..self.instances.end - self.spare
    }

    /// True if instances of the service may be added and removed during a run.
    pub(crate) fn may_change(&self) -> bool {
        self.scaler.is_some() || self.spare > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scale, read};
    use std::path::Path;

    fn netflix(regions: u32) -> Topology {
        let checked = read("netflixoss", Path::new("")).unwrap();
        let scale = Scale {
            regions,
            ..Scale::default()
        };
        Topology::new(&checked, scale).unwrap()
    }

    fn capacity(service: &str, count: u32) -> BTreeMap<String, u32> {
        BTreeMap::from([(service.to_owned(), count)])
    }

    // Guarantee: arch-14.
    #[test]
    fn spare_instances_have_new_names_and_begin_idle_in_the_zones_of_the_others() {
        for regions in [1, 2] {
            let plain = netflix(regions);
            let mut topology = plain.clone();
            let service = |topology: &Topology| {
                let login = topology
                    .services
                    .iter()
                    .find(|service| service.name == "login");
                login.unwrap().clone()
            };
            let before = service(&plain).instances.len() as u32;
            topology
                .add_extra_capacity(&capacity("login", before + 7))
                .unwrap();
            let login = service(&topology);
            assert_eq!(login.instances.len() as u32, before + 7);
            assert_eq!(login.defined().len() as u32, before);
            let labels = login.instances.clone().map(|i| topology.label(i));
            let mut names: Vec<String> = labels.collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(
                names.len(),
                login.instances.len(),
                "each has a name of its own"
            );
            for instance in login.instances.clone() {
                let is_spare = !login.defined().contains(&instance);
                assert_eq!(topology.begins_idle(instance), is_spare);
                let at = topology.instances[instance as usize];
                assert_eq!(u32::from(at.at.zone.unwrap()), at.number.unwrap() % 3);
            }
            // Other services are unchanged, and existing spare instances are sufficient.
            let others = |topology: &Topology| {
                let all = (0..topology.len()).filter(|&i| topology.service_of(i).spare == 0);
                let about = all.map(|i| (topology.full_name(i), topology.begins_idle(i)));
                about.collect::<Vec<_>>()
            };
            let mut before = others(&plain);
            before.retain(|(name, _)| !name.contains(".login"));
            assert_eq!(others(&topology), before);
            let len = topology.len();
            topology.add_extra_capacity(&capacity("login", 3)).unwrap();
            assert_eq!(topology.len(), len);
        }
    }

    #[test]
    fn extra_capacity_is_refused_for_services_that_cannot_grow() {
        let mut topology = netflix(1);
        let mut refused = |service: &str, count| {
            topology
                .add_extra_capacity(&capacity(service, count))
                .unwrap_err()
                .to_string()
        };
        assert!(refused("logn", 5).contains("did you mean login"));
        assert!(refused("login", 1 << 20).contains("the maximum is 100000"));
        assert!(
            refused("www", 5).contains("entry point"),
            "{}",
            refused("www", 5)
        );
        assert_eq!(topology.len(), netflix(1).len());
        topology.edges = Some(Vec::new());
        assert!(
            topology
                .add_extra_capacity(&capacity("login", 50))
                .unwrap_err()
                .to_string()
                .contains("graph")
        );
    }
}
