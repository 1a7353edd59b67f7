//! IP addresses by region and zone, as graphs and flows show them.

use crate::Places;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Assigns addresses, in sequence for each zone.
///
/// Each zone has a range of 65,536 addresses. Unknown regions and zones share the ranges of the first region and zone.
/// Addresses that do not fit into a range come from 10.0.0.0/8, or from another private network if zones have ranges in
/// 10.0.0.0/8.
///
/// ```
/// # use corsair_observe::Addresses;
/// let mut addresses = Addresses::default();
/// assert_eq!(addresses.next("us-east-1", "zoneA").to_string(), "54.198.0.1");
/// assert_eq!(addresses.next("us-east-1", "zoneC").to_string(), "50.19.0.1");
/// assert_eq!(addresses.next("us-east-1", "zoneA").to_string(), "54.198.0.2");
/// assert_eq!(addresses.next("*", "*").to_string(), "54.198.0.3");
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Addresses {
    #[serde(skip)]
    places: Arc<Places>,
    /// The number of addresses handed out per zone.
    used: HashMap<usize, u32>,
    /// The number of addresses that came from outside the ranges of the zones.
    elsewhere: u32,
}

impl Addresses {
    /// Creates the source of addresses for these places.
    pub fn of(places: &Arc<Places>) -> Addresses {
        Addresses {
            places: Arc::clone(places),
            ..Addresses::default()
        }
    }

    /// Returns this source of addresses for nodes in other places.
    pub(crate) fn within(self, places: &Arc<Places>) -> Addresses {
        let places = Arc::clone(places);
        Addresses { places, ..self }
    }

    /// Returns the next address in a zone.
    pub fn next(&mut self, region: &str, zone: &str) -> Ipv4Addr {
        let index = self.places.index(region, zone);
        let used = self.used.entry(index).or_default();
        *used += 1;
        let within = self.places.address(index, *used);
        within.unwrap_or_else(|| {
            self.elsewhere += 1;
            self.places.elsewhere(self.elsewhere)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_range_goes_on_elsewhere_without_repeating() {
        let mut addresses = Addresses::default();
        let zone_a: Vec<Ipv4Addr> = (0..65_537)
            .map(|_| addresses.next("us-east-1", "zoneA"))
            .collect();
        assert_eq!(zone_a[65_534].to_string(), "54.198.255.255");
        assert_eq!(zone_a[65_535].to_string(), "10.0.0.1");
        assert_eq!(zone_a[65_536].to_string(), "10.0.0.2");
        assert_eq!(
            addresses.next("ap-southeast-2", "zoneC").to_string(),
            "54.206.0.1"
        );
    }

    #[test]
    fn places_of_ones_own_have_addresses_of_their_own() {
        let ranges = [["10.1", "10.2"], ["10.3", "10.4"]];
        let places = Places::new(&["here", "there"], &["a", "b"], &ranges).unwrap();
        let mut addresses = Addresses::of(&Arc::new(places));
        let mut next = |region, zone| addresses.next(region, zone).to_string();
        assert_eq!(next("there", "b"), "10.4.0.1");
        assert_eq!(next("here", "b"), "10.2.0.1");
        assert_eq!(next("*", "*"), "10.1.0.1");
        let last = (0..65_535).map(|_| next("here", "a")).last();
        assert_eq!(last.as_deref(), Some("11.0.0.1"));
    }
}
