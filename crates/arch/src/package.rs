//! The packages that implement services.

use serde::Serialize;
use std::fmt;

/// The package that implements a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Package {
    /// The registry of a zone, which answers look-ups of instances.
    Eureka,
    /// Hoards gold and gossips.
    Pirate,
    /// Spreads requests over the zones of its region.
    Elb,
    /// The name service of all regions, and the source of the load.
    Denominator,
    /// Proxies requests to services of its zone.
    Zuul,
    /// Business logic that calls services of its zone.
    Karyon,
    /// Business logic that calls services of its region.
    Monolith,
    /// Data access: asks one kind of storage after the other.
    Staash,
    /// A ring of nodes, each with a share of the keys, replicated across zones and regions.
    PriamCassandra,
    /// A ring of nodes, each with a share of the keys, replicated across zones and regions.
    Riak,
    /// Stores values, replicated among the stores it depends on.
    Store,
    /// A store that data access asks first.
    Cache,
    /// A store that data access asks second, with a separate namespace for each writer.
    Volume,
    /// Runs the scripts of its endpoints.
    Service,
}

impl Package {
    /// All packages, in the order in which messages list them.
    pub const ALL: [Package; 14] = [
        Package::Pirate,
        Package::Denominator,
        Package::Elb,
        Package::Zuul,
        Package::Karyon,
        Package::Monolith,
        Package::Staash,
        Package::Store,
        Package::Cache,
        Package::Volume,
        Package::PriamCassandra,
        Package::Riak,
        Package::Service,
        Package::Eureka,
    ];

    /// Returns the package's name in definitions, graphs and flows.
    pub const fn name(self) -> &'static str {
        match self {
            Package::Eureka => "eureka",
            Package::Pirate => "pirate",
            Package::Elb => "elb",
            Package::Denominator => "denominator",
            Package::Zuul => "zuul",
            Package::Karyon => "karyon",
            Package::Monolith => "monolith",
            Package::Staash => "staash",
            Package::PriamCassandra => "priamCassandra",
            Package::Riak => "riak",
            Package::Store => "store",
            Package::Cache => "cache",
            Package::Volume => "volume",
            Package::Service => "service",
        }
    }

    /// Returns the package with this name.
    pub fn named(name: &str) -> Option<Package> {
        Package::ALL
            .into_iter()
            .find(|package| package.name() == name)
    }

    /// True if definitions may use this package for a service. Registries always exist.
    pub fn is_for_services(self) -> bool {
        self != Package::Eureka
    }

    /// True if instances store values, so that requests end there.
    pub fn is_storage(self) -> bool {
        matches!(
            self,
            Package::Store
                | Package::Cache
                | Package::Volume
                | Package::PriamCassandra
                | Package::Riak
        )
    }

    /// True if instances receive requests from other instances.
    pub fn takes_requests(self) -> bool {
        !matches!(
            self,
            Package::Denominator | Package::Pirate | Package::Eureka
        )
    }

    /// True if instances forward requests unchanged.
    pub fn passes_on(self) -> bool {
        matches!(
            self,
            Package::Elb | Package::Zuul | Package::Karyon | Package::Monolith
        )
    }

    /// True if an instance may call itself, if its service calls itself.
    pub fn may_call_itself(self) -> bool {
        self == Package::Service
    }

    /// True if instances share the keys on a ring of tokens.
    pub fn is_ring(self) -> bool {
        matches!(self, Package::PriamCassandra | Package::Riak)
    }

    /// True if instances call only services of their own zone, provided that the zone has an instance of one of them.
    pub fn stays_in_zone(self) -> bool {
        matches!(self, Package::Zuul | Package::Karyon)
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_packages() {
        for package in Package::ALL {
            assert_eq!(Package::named(package.name()), Some(package));
        }
        assert_eq!(Package::named("unknown"), None);
    }
}
