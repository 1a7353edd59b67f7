//! Where things are: regions, their zones, and how far apart they are.

use crate::Network;
use crate::distribution::{Distribution, Sampler};
use std::time::Duration;

pub use corsair_observe::{REGIONS, ZONES};

/// How many regions there are at most.
pub const MAX_REGIONS: u32 = REGIONS.len() as u32;

/// One-way times between regions in milliseconds, about half of the round trips that users of
/// those regions measure.
const BETWEEN_REGIONS: [[u16; REGIONS.len()]; REGIONS.len()] = [
    [0, 33, 34, 46, 109, 99],
    [33, 0, 63, 74, 81, 70],
    [34, 63, 0, 13, 87, 129],
    [46, 74, 13, 0, 78, 124],
    [109, 81, 87, 78, 0, 46],
    [99, 70, 129, 124, 46, 0],
];

/// A region and a zone in it, either of which may be all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Zone {
    /// The index of the region in [`REGIONS`]; none: not in a region.
    pub region: Option<u8>,
    /// The index of the zone in [`ZONES`]; none: all zones of the region.
    pub zone: Option<u8>,
}

impl Zone {
    /// Everywhere.
    pub const EVERYWHERE: Zone = Zone {
        region: None,
        zone: None,
    };

    /// The name of the region, or `*`.
    pub fn region_name(self) -> &'static str {
        self.region.map_or("*", |region| REGIONS[region as usize])
    }

    /// The name of the zone, or `*`.
    pub fn zone_name(self) -> &'static str {
        self.zone.map_or("*", |zone| ZONES[zone as usize])
    }

    /// The place of these names; `None` if a region or zone is not known.
    pub fn named(region: &str, zone: &str) -> Option<Zone> {
        let index = |name: &str, names: &[&str]| match name {
            "*" => Some(None),
            _ => Some(Some(names.iter().position(|&known| known == name)? as u8)),
        };
        Some(Zone {
            region: index(region, &REGIONS)?,
            zone: index(zone, &ZONES)?,
        })
    }
}

/// How long messages travel between places.
///
/// What is everywhere (a name service) is in the same region as its caller, and what is
/// in all zones of a region is in another zone.
#[derive(Clone, Debug)]
pub struct Geography {
    same_zone: Sampler,
    same_region: Sampler,
    between: Vec<Sampler>,
}

impl Geography {
    /// The times of this network; where it says nothing, 200 to 300 µs in a zone, 400 to 600 µs
    /// between zones, and a table of measured times with a tenth more or less between regions.
    pub fn new(network: Option<&Network>) -> Geography {
        let uniform = |from: u64, to: u64| {
            Distribution::uniform(Duration::from_micros(from), Duration::from_micros(to))
        };
        let given = |given: Option<&Distribution>, default: Distribution| {
            given.cloned().unwrap_or(default).sampler()
        };
        let other = network.and_then(|network| network.other_region.as_ref());
        let mut between = Vec::with_capacity(REGIONS.len() * REGIONS.len());
        for (a, row) in REGIONS.iter().zip(BETWEEN_REGIONS) {
            for (b, millis) in REGIONS.iter().zip(row) {
                let pair = network.and_then(|network| network.pair(a, b)).or(other);
                let micros = u64::from(millis) * 1000;
                between.push(given(pair, uniform(micros * 9 / 10, micros * 11 / 10)));
            }
        }
        let zone = network.and_then(|network| network.same_zone.as_ref());
        let region = network.and_then(|network| network.same_region.as_ref());
        Geography {
            same_zone: given(zone, uniform(200, 300)),
            same_region: given(region, uniform(400, 600)),
            between,
        }
    }

    /// The same times everywhere.
    pub fn same_everywhere(times: &Distribution) -> Geography {
        let times = times.sampler();
        Geography {
            between: vec![times.clone(); REGIONS.len() * REGIONS.len()],
            same_zone: times.clone(),
            same_region: times,
        }
    }

    /// How long messages travel from one place to another.
    pub fn between(&self, from: Zone, to: Zone) -> &Sampler {
        match (from.region, to.region) {
            (Some(a), Some(b)) if a != b => {
                &self.between[usize::from(a) * REGIONS.len() + usize::from(b)]
            }
            (Some(_), Some(_)) if from.zone.is_some() && from.zone == to.zone => &self.same_zone,
            _ => &self.same_region,
        }
    }

    /// Every distribution that is used between these places.
    pub fn all(&self, regions: u32) -> impl Iterator<Item = &Sampler> {
        let regions = regions as usize;
        let pairs = (0..regions).flat_map(move |a| (0..regions).map(move |b| (a, b)));
        let between = pairs.filter(|(a, b)| a != b);
        [&self.same_zone, &self.same_region]
            .into_iter()
            .chain(between.map(|(a, b)| &self.between[a * REGIONS.len() + b]))
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
        for place in [at(0, 2), at(5, 0), Zone::EVERYWHERE] {
            let named = Zone::named(place.region_name(), place.zone_name());
            assert_eq!(named, Some(place));
        }
        assert_eq!(Zone::named("mars-north-1", "zoneA"), None);
    }

    #[test]
    fn the_table_is_symmetric_and_farther_regions_take_longer_than_zones() {
        for (a, row) in BETWEEN_REGIONS.iter().enumerate() {
            for (b, &millis) in row.iter().enumerate() {
                assert_eq!(millis, BETWEEN_REGIONS[b][a]);
            }
        }
        let geography = Geography::new(None);
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
        let geography = Geography::new(Some(&network));
        let least = |a, b| geography.between(a, b).least();
        assert_eq!(least(at(0, 0), at(0, 0)), 1_000_000);
        assert_eq!(least(at(0, 0), at(1, 0)), 20_000_000);
        assert_eq!(least(at(1, 0), at(0, 2)), 20_000_000);
        assert_eq!(least(at(0, 0), at(2, 0)), 50_000_000);
    }
}
