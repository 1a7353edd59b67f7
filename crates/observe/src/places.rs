//! Regions and zones with their names and addresses.

use serde::Serialize;
use std::net::Ipv4Addr;

/// spigo's regions, in the order in which architectures use them.
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

/// The first two bytes of the addresses of each of spigo's zones. Ireland's third zone has 54.228, because spigo's
/// 54.288 is not a valid address.
const RANGES: [[[u8; 2]; ZONES.len()]; REGIONS.len()] = [
    [[54, 198], [54, 221], [50, 19]],
    [[54, 245], [54, 244], [54, 214]],
    [[54, 247], [54, 246], [54, 228]],
    [[54, 93], [54, 28], [54, 78]],
    [[54, 251], [54, 254], [54, 255]],
    [[54, 252], [54, 253], [54, 206]],
];

/// The invalid prefix of Ireland's third zone in spigo's files.
const NO_ADDRESS: &str = "54.288";

/// The maximum number of zones of all regions together: the number of ranges in 10.0.0.0/8.
const MOST_ZONES: usize = 256;

/// The longest allowed name of a region or zone, in bytes.
const MOST_BYTES: usize = 100;

/// The regions and zones of a run, and the addresses of each zone.
///
/// ```
/// # use corsair_observe::Places;
/// let spigos = Places::default();
/// assert_eq!((spigos.region(Some(0)), spigos.zone(Some(2))), ("us-east-1", "zoneC"));
/// let own = Places::new(&["here", "there"], &["a"], &[&["10.1."], &["10.2.0.0/16"]])?;
/// assert_eq!((own.regions().len(), own.find_region("there")), (2, Some(1)));
/// # Ok::<(), corsair_observe::PlacesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Places {
    regions: Vec<String>,
    zones: Vec<String>,
    /// The first two bytes of the addresses of each zone, ordered by region, then by zone.
    ranges: Vec<[u8; 2]>,
    /// The first byte of the addresses that are used when a range is full.
    elsewhere: u8,
}

/// The reasons why names and addresses are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is in its sentence")]
pub enum PlacesError {
    #[error("'{}' is not a name of a {kind}; leave out dots, slashes, stars, spaces and line breaks", .name.escape_debug())]
    Name { kind: &'static str, name: String },
    #[error("the name '{start}…' of a {kind} has {length} bytes; give at most {MOST_BYTES}")]
    Long {
        kind: &'static str,
        start: String,
        length: usize,
    },
    #[error("there are two {kind}s '{name}'; call one of them something else")]
    Twice { kind: &'static str, name: String },
    #[error(
        "{regions} regions of {zones} zones each are {} zones; at most {MOST_ZONES} are possible",
        regions * zones
    )]
    TooMany { regions: usize, zones: usize },
    #[error(
        "there are address ranges for {ranges} regions, but {regions} regions; give a list for each region"
    )]
    Regions { ranges: usize, regions: usize },
    #[error(
        "region '{region}' has {ranges} address ranges, but {zones} zones; give a range for each zone"
    )]
    Zones {
        region: String,
        ranges: usize,
        zones: usize,
    },
    #[error("'{}' is not a range of addresses; write the first two numbers, as 10.1", .0.escape_debug())]
    Range(String),
    #[error("the address range {0} is used twice; give each zone a different one")]
    RangeTwice(String),
}

impl Default for Places {
    /// Returns spigo's six regions of three zones, each with a range of addresses that begins as AWS's ranges did.
    fn default() -> Places {
        Places {
            regions: REGIONS.map(str::to_owned).to_vec(),
            zones: ZONES.map(str::to_owned).to_vec(),
            ranges: RANGES.concat(),
            elsewhere: 10,
        }
    }
}

impl Places {
    /// Creates regions and zones with these names, or with spigo's names if none are given. `ranges` has the first two
    /// bytes of the addresses of each zone in each region. If it is empty, the first three zones of the first six
    /// regions have spigo's ranges, and all other zones have ranges in 10.0.0.0/8.
    ///
    /// # Errors
    /// Returns a [`PlacesError`] if the names or ranges are invalid.
    pub fn new<T: AsRef<str>, R: AsRef<[T]>>(
        regions: &[T],
        zones: &[T],
        ranges: &[R],
    ) -> Result<Places, PlacesError> {
        let regions = names(regions, &REGIONS, "region")?;
        let zones = names(zones, &ZONES, "zone")?;
        if regions.len() * zones.len() > MOST_ZONES {
            let (regions, zones) = (regions.len(), zones.len());
            return Err(PlacesError::TooMany { regions, zones });
        }
        let ranges = match ranges.is_empty() {
            true => usual(regions.len(), zones.len()),
            false => own(ranges, &regions, zones.len())?,
        };
        let is_free = |first: &u8| ranges.iter().all(|range| range[0] != *first);
        Ok(Places {
            elsewhere: (10..224).find(is_free).unwrap_or(10),
            regions,
            zones,
            ranges,
        })
    }

    /// Returns the names of the regions, in the order in which architectures use them.
    pub fn regions(&self) -> &[String] {
        &self.regions
    }

    /// Returns the names of the zones that each region has.
    pub fn zones(&self) -> &[String] {
        &self.zones
    }

    /// Returns the name of the region with this number, or `*` for no region.
    ///
    /// # Panics
    /// If there is no region with this number.
    pub fn region(&self, number: Option<u8>) -> &str {
        number.map_or("*", |number| &self.regions[usize::from(number)])
    }

    /// Returns the name of the zone with this number, or `*` for no zone.
    ///
    /// # Panics
    /// If there is no zone with this number.
    pub fn zone(&self, number: Option<u8>) -> &str {
        number.map_or("*", |number| &self.zones[usize::from(number)])
    }

    /// Returns the number of the region with this name.
    pub fn find_region(&self, name: &str) -> Option<u8> {
        find(&self.regions, name)
    }

    /// Returns the number of the zone with this name.
    pub fn find_zone(&self, name: &str) -> Option<u8> {
        find(&self.zones, name)
    }

    /// Returns the index of a zone among the zones of all regions. Unknown names count as the first region or zone.
    pub(crate) fn index(&self, region: &str, zone: &str) -> usize {
        let region = usize::from(self.find_region(region).unwrap_or(0));
        region * self.zones.len() + usize::from(self.find_zone(zone).unwrap_or(0))
    }

    /// Returns the address with this number, counted from 1, in a zone; `None` beyond its capacity.
    pub(crate) fn address(&self, zone: usize, number: u32) -> Option<Ipv4Addr> {
        let [third, fourth] = u16::try_from(number).ok()?.to_be_bytes();
        let [first, second] = self.ranges[zone];
        Some(Ipv4Addr::new(first, second, third, fourth))
    }

    /// Returns the address with this number, counted from 1, among the addresses that belong to no zone.
    pub(crate) fn elsewhere(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::from(self.elsewhere) << 24 | number & 0x00FF_FFFF)
    }
}

/// Returns the index of a name; there are at most 256 names.
fn find(names: &[String], name: &str) -> Option<u8> {
    let place = names.iter().position(|known| known == name)?;
    u8::try_from(place).ok()
}

/// Returns the given names, or the defaults.
fn names<T: AsRef<str>>(
    given: &[T],
    usual: &[&str],
    kind: &'static str,
) -> Result<Vec<String>, PlacesError> {
    if given.is_empty() {
        return Ok(usual.iter().map(|&name| name.to_owned()).collect());
    }
    if given.len() > MOST_ZONES {
        let (regions, zones) = match kind {
            "region" => (given.len(), 1),
            _ => (1, given.len()),
        };
        return Err(PlacesError::TooMany { regions, zones });
    }
    let bad = |c: char| matches!(c, '.' | '/' | '*') || c.is_whitespace() || c.is_control();
    let mut names: Vec<String> = Vec::with_capacity(given.len());
    for name in given.iter().map(AsRef::as_ref) {
        let name = name.to_owned();
        if name.is_empty() || name.contains(bad) {
            return Err(PlacesError::Name { kind, name });
        }
        if name.len() > MOST_BYTES {
            return Err(PlacesError::Long {
                kind,
                start: name.chars().take(20).collect(),
                length: name.len(),
            });
        }
        if names.contains(&name) {
            return Err(PlacesError::Twice { kind, name });
        }
        names.push(name);
    }
    Ok(names)
}

/// Returns the default ranges of regions and zones.
fn usual(regions: usize, zones: usize) -> Vec<[u8; 2]> {
    let all = (0..regions).flat_map(|region| (0..zones).map(move |zone| (region, zone)));
    let mut own = 0..=u8::MAX;
    all.map(|(region, zone)| {
        let spigos = RANGES.get(region).and_then(|zones| zones.get(zone));
        // There are as many ranges in 10.0.0.0/8 as zones at most.
        spigos
            .copied()
            .unwrap_or_else(|| [10, own.next().unwrap_or(u8::MAX)])
    })
    .collect()
}

fn own<T: AsRef<str>, R: AsRef<[T]>>(
    given: &[R],
    regions: &[String],
    zones: usize,
) -> Result<Vec<[u8; 2]>, PlacesError> {
    if given.len() != regions.len() {
        let (ranges, regions) = (given.len(), regions.len());
        return Err(PlacesError::Regions { ranges, regions });
    }
    let mut ranges = Vec::with_capacity(regions.len() * zones);
    for (region, given) in regions.iter().zip(given) {
        let given = given.as_ref();
        if given.len() != zones {
            return Err(PlacesError::Zones {
                region: region.clone(),
                ranges: given.len(),
                zones,
            });
        }
        for text in given.iter().map(AsRef::as_ref) {
            let range = range(text).ok_or_else(|| PlacesError::Range(text.to_owned()))?;
            if ranges.contains(&range) {
                return Err(PlacesError::RangeTwice(text.to_owned()));
            }
            ranges.push(range);
        }
    }
    Ok(ranges)
}

/// Parses a range: `10.1`, spigo's `10.1.`, or `10.1.0.0/16`.
fn range(text: &str) -> Option<[u8; 2]> {
    let start = text.strip_suffix(".0.0/16").unwrap_or(text);
    let start = start.strip_suffix('.').unwrap_or(start);
    if start == NO_ADDRESS {
        return Some(RANGES[2][2]);
    }
    let (first, second) = start.split_once('.')?;
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u8>().ok()).flatten()
    };
    Some([number(first)?, number(second)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(regions: &[&str], zones: &[&str], ranges: &[&[&str]]) -> String {
        Places::new(regions, zones, ranges).unwrap_err().to_string()
    }

    #[test]
    fn what_is_left_out_is_spigos() {
        let none: [&[&str]; 0] = [];
        assert_eq!(Places::new(&[], &[], &none), Ok(Places::default()));
        let four = Places::new(&[], &["a", "b", "c", "d"], &none).unwrap();
        let shown = |region, zone| {
            four.address(four.index(region, zone), 1)
                .unwrap()
                .to_string()
        };
        assert_eq!(shown("us-east-1", "c"), "50.19.0.1");
        assert_eq!(shown("us-east-1", "d"), "10.0.0.1");
        assert_eq!(shown("ap-southeast-2", "d"), "10.5.0.1");
        assert_eq!(four.elsewhere(1).to_string(), "11.0.0.1");
    }

    #[test]
    fn ranges_may_be_written_as_spigo_writes_them() {
        let spigos = ["54.247.", "54.246", "54.288."];
        let ireland = Places::new(&["x"], &["a", "b", "c"], &[&spigos[..]]).unwrap();
        assert_eq!(ireland.ranges, RANGES[2]);
    }

    #[test]
    fn places_that_cannot_be_distinguished_are_refused() {
        assert_eq!(
            refusal(&["a", "a"], &[], &[]),
            "there are two regions 'a'; call one of them something else"
        );
        assert_eq!(
            refusal(&["a"], &["x y"], &[]),
            "'x y' is not a name of a zone; leave out dots, slashes, stars, spaces and line breaks"
        );
        let long = "n".repeat(101);
        assert!(refusal(&[&long], &[], &[]).contains("has 101 bytes; give at most 100"));
        let many: Vec<String> = (0..86).map(|number| format!("r{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            refusal(&many, &[], &[]),
            "86 regions of 3 zones each are 258 zones; at most 256 are possible"
        );
        assert_eq!(
            refusal(&["a", "b"], &["x"], &[&["10.1"]]),
            "there are address ranges for 1 regions, but 2 regions; give a list for each region"
        );
        assert_eq!(
            refusal(&["a"], &["x"], &[&["10.1", "10.2"]]),
            "region 'a' has 2 address ranges, but 1 zones; give a range for each zone"
        );
        assert_eq!(
            refusal(&["a", "b"], &["x"], &[&["10.1"], &["10.1."]]),
            "the address range 10.1. is used twice; give each zone a different one"
        );
        for wrong in ["", "10", "10.1.2", "10.+1", "300.1", "10.1.0.0/24"] {
            assert_eq!(
                refusal(&["a"], &["x"], &[&[wrong]]),
                format!(
                    "'{wrong}' is not a range of addresses; write the first two numbers, as 10.1"
                )
            );
        }
    }
}
