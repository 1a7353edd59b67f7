//! Interned names of services, instances, regions and operations.

use crate::package::Package;
use std::collections::HashMap;

/// Interned names, which are looked up by number.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
}

/// The parts of an endpoint's name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    pub(super) service: u32,
    pub(super) instance: u32,
    pub(super) region: u32,
}

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    /// Adds the names of another set, and returns their numbers here.
    pub(super) fn merge(&mut self, other: &Names) -> Vec<u32> {
        other.names.iter().map(|name| self.number(name)).collect()
    }

    /// Adds the names of another set, until there are `most` names. All further names become one name.
    pub(super) fn merge_at_most(&mut self, other: &Names, most: usize) -> Vec<u32> {
        let mut number = |name: &str| match self.numbers.get(name) {
            Some(&number) => number,
            None if self.names.len() < most => self.number(name),
            None => self.number("others"),
        };
        other.names.iter().map(|name| number(name)).collect()
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// Returns the service, the instance and the region of a name. Names of nine parts, as written by corsair
    /// and spigo, contain all three; other names are services.
    pub(super) fn endpoint(&mut self, name: &str, instance: Option<&str>) -> Endpoint {
        let parts: Vec<&str> = name.split('.').collect();
        let hierarchy = match parts[..] {
            [_, region, _, .., service, package] if parts.len() == 9 => {
                Package::named(package).map(|_| (service, region))
            }
            _ => None,
        };
        let (service, region) = hierarchy.unwrap_or((name, "*"));
        let whole = instance.unwrap_or(name);
        Endpoint {
            service: self.number(service),
            instance: self.number(whole),
            region: self.number(region),
        }
    }
}

/// True if the name of a peer denotes a machine: an IP address or `localhost`, with or without a port.
pub(super) fn is_address(name: &str) -> bool {
    let host = match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => name,
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_ip = |text: &str| text.parse::<std::net::IpAddr>().is_ok();
    bare == "localhost" || is_ip(bare) || is_ip(name)
}
