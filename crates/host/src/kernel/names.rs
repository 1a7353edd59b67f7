//! Names of hosts.

use super::Kernel;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Kernel {
    /// The addresses of a name: a host of the simulation, this host itself, or an address as text.
    pub(crate) fn resolve(&self, name: &str) -> Vec<IpAddr> {
        if let Ok(ip) = name.parse::<IpAddr>() {
            return vec![ip];
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if name == "localhost" {
            return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        }
        let host = self
            .world
            .hosts
            .iter()
            .find(|host| host.name.eq_ignore_ascii_case(&name));
        host.map_or(vec![], |host| host.addresses.to_vec())
    }
}
