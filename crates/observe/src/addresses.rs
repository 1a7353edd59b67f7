//! IP addresses by region and zone, as graphs and flows show them.

use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Hands out addresses, one after the other in each zone.
///
/// Each zone of spigo's six regions has a range of 65,536 addresses that begins as AWS's did
/// (Ireland's third is 54.228: spigo has 54.288, which is no address). Regions and zones of other
/// names take the ranges of the first. What does not fit into a range comes from 10.0.0.0/8.
///
/// ```
/// # use corsair_observe::Addresses;
/// let mut addresses = Addresses::default();
/// assert_eq!(addresses.next("us-east-1", "zoneA").to_string(), "54.198.0.1");
/// assert_eq!(addresses.next("us-east-1", "zoneC").to_string(), "50.19.0.1");
/// assert_eq!(addresses.next("us-east-1", "zoneA").to_string(), "54.198.0.2");
/// assert_eq!(addresses.next("*", "*").to_string(), "54.198.0.3");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// How many each range has handed out.
    used: HashMap<u16, u32>,
    /// How many came from elsewhere.
    elsewhere: u32,
}

/// spigo's regions, in the order in which architectures spread into them.
pub const REGIONS: [&str; 6] = [
    "us-east-1",
    "us-west-2",
    "eu-west-1",
    "eu-central-1",
    "ap-southeast-1",
    "ap-southeast-2",
];

/// The zones of each region.
pub const ZONES: [&str; 3] = ["zoneA", "zoneB", "zoneC"];

/// The first two bytes of each range.
const RANGES: [[[u8; 2]; ZONES.len()]; REGIONS.len()] = [
    [[54, 198], [54, 221], [50, 19]],
    [[54, 245], [54, 244], [54, 214]],
    [[54, 247], [54, 246], [54, 228]],
    [[54, 93], [54, 28], [54, 78]],
    [[54, 251], [54, 254], [54, 255]],
    [[54, 252], [54, 253], [54, 206]],
];

impl Addresses {
    /// The next address in a zone.
    pub fn next(&mut self, region: &str, zone: &str) -> Ipv4Addr {
        let place = |names: &[&str], name| names.iter().position(|known| *known == name);
        let region = place(&REGIONS, region).unwrap_or(0);
        let zone = place(&ZONES, zone).unwrap_or(0);
        let [first, second] = RANGES[region][zone];
        let used = self
            .used
            .entry(u16::from_be_bytes([first, second]))
            .or_default();
        *used += 1;
        match u16::try_from(*used) {
            Ok(within) => {
                let [third, fourth] = within.to_be_bytes();
                Ipv4Addr::new(first, second, third, fourth)
            }
            Err(_) => {
                self.elsewhere += 1;
                Ipv4Addr::from_bits(10 << 24 | self.elsewhere & 0x00FF_FFFF)
            }
        }
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
}
