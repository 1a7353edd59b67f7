//! Regions, their zones, and the latencies between them.

use crate::Network;
use crate::distribution::{Distribution, Sampler};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use corsair_observe::REGIONS;
pub use corsair_observe::{Places, PlacesError};

/// One-way latencies between regions in milliseconds, about half of the round trips that users measure between those
/// regions.
const BETWEEN_REGIONS: [[u16; REGIONS.len()]; REGIONS.len()] = [
    [0, 33, 34, 46, 109, 99],
    [33, 0, 63, 74, 81, 70],
    [34, 63, 0, 13, 87, 129],
    [46, 74, 13, 0, 78, 124],
    [109, 81, 87, 78, 0, 46],
    [99, 70, 129, 124, 46, 0],
];

/// The latency in milliseconds between regions of which one is not in the table: the mean of the table.
const APART: u16 = 72;

/// The location of an actor: a region and one of its zones, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Zone {
    /// The index of the region in the [`Places`]; `None` for an actor outside all regions.
    pub region: Option<u8>,
    /// The number of the zone; `None` for an actor in all zones of the region.
    pub zone: Option<u8>,
}

impl Zone {
    /// The location of an actor outside all regions, such as a name service.
    pub const EVERYWHERE: Zone = Zone {
        region: None,
        zone: None,
    };

    /// Returns the name of the region, or `*` outside all regions.
    ///
    /// # Panics
    /// If `places` does not have the region.
    pub fn region_name(self, places: &Places) -> &str {
        places.region(self.region)
    }

    /// The name of the zone, or `*` in all zones.
    ///
    /// # Panics
    /// If `places` does not have the zone.
    pub fn zone_name(self, places: &Places) -> &str {
        places.zone(self.zone)
    }

    /// Returns the zone with these names; `None` if the region or zone is unknown.
    pub fn named(places: &Places, region: &str, zone: &str) -> Option<Zone> {
        let number = |name: &str, find: &dyn Fn(&str) -> Option<u8>| match name {
            "*" => Some(None),
            _ => find(name).map(Some),
        };
        Some(Zone {
            region: number(region, &|name| places.find_region(name))?,
            zone: number(zone, &|name| places.find_zone(name))?,
        })
    }
}

/// The latencies between places.
///
/// An actor outside all regions, such as a name service, counts as being in its caller's region. An actor in all zones
/// of a region counts as being in another zone than its caller.
#[derive(Clone, Debug, Serialize)]
pub struct Geography {
    same_zone: Sampler,
    same_region: Sampler,
    /// The latency of each pair of regions; `None` if all are equal.
    between: Vec<Sampler>,
    regions: usize,
}

impl Geography {
    /// Returns the latencies of this network. Defaults: 200 to 300 µs in a zone, 400 to 600 µs between zones,
    /// and a table of measured times ±10 % between regions. Regions that are not in the table have the
    /// average latency.
    pub fn new(network: Option<&Network>, places: &Places) -> Geography {
        let uniform = |from: u64, to: u64| {
            Distribution::uniform(Duration::from_micros(from), Duration::from_micros(to))
        };
        let given = |given: Option<&Distribution>, default: Distribution| {
            given.cloned().unwrap_or(default).sampler()
        };
        let other = network.and_then(|network| network.other_region.as_ref());
        let regions = places.regions();
        let mut between = Vec::with_capacity(regions.len() * regions.len());
        for a in regions {
            for b in regions {
                let pair = network.and_then(|network| network.pair(a, b)).or(other);
                let micros = u64::from(apart(a, b)) * 1000;
                between.push(given(pair, uniform(micros * 9 / 10, micros * 11 / 10)));
            }
        }
        let zone = network.and_then(|network| network.same_zone.as_ref());
        let region = network.and_then(|network| network.same_region.as_ref());
        Geography {
            same_zone: given(zone, uniform(200, 300)),
            same_region: given(region, uniform(400, 600)),
            between,
            regions: regions.len(),
        }
    }

    /// Returns a geography with the same times everywhere.
    pub fn same_everywhere(times: &Distribution) -> Geography {
        let times = times.sampler();
        Geography {
            between: Vec::new(),
            regions: 0,
            same_zone: times.clone(),
            same_region: times,
        }
    }

    /// Returns the latency of messages from one zone to another.
    pub fn between(&self, from: Zone, to: Zone) -> &Sampler {
        match (from.region, to.region) {
            (Some(a), Some(b)) if a != b => self.of_pair(usize::from(a), usize::from(b)),
            (Some(_), Some(_)) if from.zone.is_some() && from.zone == to.zone => &self.same_zone,
            _ => &self.same_region,
        }
    }

    /// Iterates over the distributions between places in the first `regions` regions.
    pub fn all(&self, regions: u32) -> impl Iterator<Item = &Sampler> {
        let regions = regions as usize;
        let pairs = (0..regions).flat_map(move |a| (0..regions).map(move |b| (a, b)));
        let between = pairs.filter(|(a, b)| a != b);
        [&self.same_zone, &self.same_region]
            .into_iter()
            .chain(between.map(|(a, b)| self.of_pair(a, b)))
    }

    /// Returns the longest median latency between places in the first `regions` regions, in nanoseconds.
    pub fn longest(&self, regions: u32) -> u64 {
        let times = self.all(regions).map(|times| times.median());
        times.max().unwrap_or(0)
    }

    fn of_pair(&self, from: usize, to: usize) -> &Sampler {
        let between = self.between.get(from * self.regions + to);
        between.unwrap_or(&self.same_region)
    }
}

/// Returns the one-way latency between two regions in milliseconds.
fn apart(a: &str, b: &str) -> u16 {
    let known = |name: &str| REGIONS.iter().position(|&known| known == name);
    match (known(a), known(b)) {
        (Some(a), Some(b)) => BETWEEN_REGIONS[a][b],
        _ if a == b => 0,
        _ => APART,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(region: u8, zone: u8) -> Zone {
        Zone {
            region: Some(region),
            zone: Some(zone),
        }
    }

    #[test]
    fn names_lead_back_to_places() {
        let places = Places::default();
        for place in [at(0, 2), at(5, 0), Zone::EVERYWHERE] {
            let (region, zone) = (place.region_name(&places), place.zone_name(&places));
            assert_eq!(Zone::named(&places, region, zone), Some(place));
        }
        assert_eq!(Zone::named(&places, "mars-north-1", "zoneA"), None);
    }

    #[test]
    fn the_table_is_symmetric_and_farther_regions_take_longer_than_zones() {
        for (a, row) in BETWEEN_REGIONS.iter().enumerate() {
            for (b, &millis) in row.iter().enumerate() {
                assert_eq!(millis, BETWEEN_REGIONS[b][a]);
            }
        }
        let rows = BETWEEN_REGIONS.as_flattened();
        let all: u32 = rows.iter().map(|&millis| u32::from(millis)).sum();
        assert_eq!(
            u32::from(APART),
            all / (REGIONS.len() * (REGIONS.len() - 1)) as u32
        );
        let geography = Geography::new(None, &Places::default());
        let least = |a, b| geography.between(a, b).least();
        assert!(least(at(0, 0), at(0, 0)) < least(at(0, 0), at(0, 1)));
        assert!(least(at(0, 0), at(0, 1)) < least(at(0, 0), at(1, 0)));
        assert_eq!(least(Zone::EVERYWHERE, at(3, 0)), least(at(0, 0), at(0, 1)));
    }

    #[test]
    fn everywhere_can_be_the_same() {
        let times = Distribution::uniform(Duration::from_millis(1), Duration::from_millis(2));
        let geography = Geography::same_everywhere(&times);
        for (a, b) in [
            (at(0, 0), at(0, 0)),
            (at(0, 0), at(0, 1)),
            (at(0, 0), at(5, 2)),
        ] {
            assert_eq!(*geography.between(a, b), times.sampler());
        }
    }

    #[test]
    fn a_network_of_its_own_replaces_the_defaults() {
        let network: Network = serde_json::from_str(
            r#"{"same_zone": "1ms", "other_region": "50ms", "regions": {"us-east-1..us-west-2": "20ms"}}"#,
        )
        .unwrap();
        let geography = Geography::new(Some(&network), &Places::default());
        let least = |a, b| geography.between(a, b).least();
        assert_eq!(least(at(0, 0), at(0, 0)), 1_000_000);
        assert_eq!(least(at(0, 0), at(1, 0)), 20_000_000);
        assert_eq!(least(at(1, 0), at(0, 2)), 20_000_000);
        assert_eq!(least(at(0, 0), at(2, 0)), 50_000_000);
    }

    #[test]
    fn regions_of_ones_own_have_the_times_of_their_names() {
        let none: [&[&str]; 0] = [];
        let places = Places::new(&["mars", "us-west-2", "us-east-1"], &[], &none).unwrap();
        let geography = Geography::new(None, &places);
        let least = |a, b| geography.between(a, b).least();
        assert_eq!(least(at(1, 0), at(2, 0)), 29_700_000);
        assert_eq!(least(at(0, 0), at(2, 0)), 64_800_000);
        assert_eq!(least(at(0, 0), at(0, 0)), 200_000);
    }
}
