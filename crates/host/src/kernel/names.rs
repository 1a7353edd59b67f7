//! Names of hosts.

use super::Kernel;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Kernel {
    /// Returns the addresses of a name: this host, a host of the simulation, or an address in text form. `None` if names
    /// cannot be looked up now.
    pub(crate) fn resolve(&self, name: &str) -> Option<Vec<IpAddr>> {
        let is_local = name.trim_end_matches('.').eq_ignore_ascii_case("localhost");
        match is_local {
            true => Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
            false if self.has_names || name.parse::<IpAddr>().is_ok() => {
                Some(self.world.resolve(name))
            }
            false => None,
        }
    }
}
