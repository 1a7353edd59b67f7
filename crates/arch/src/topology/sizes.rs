//! Service times and slots for architectures without these fields, so that they have queues, utilisation and a
//! capacity.
//!
//! The sizes are illustrative: they are typical orders of magnitude of such software, not measurements of a system. A
//! user with measurements sets `service_time` and `concurrency` in a definition, or learns them from traces.

use super::Topology;
use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use crate::package::Package;
use std::time::Duration;

/// Returns the mean of the exponential service time of an instance in microseconds, and its number of slots; `None` if
/// the package gets no size.
const fn size(package: Package) -> Option<(u64, u32)> {
    Some(match package {
        Package::Elb => (100, 256),
        Package::Zuul => (1_000, 16),
        Package::Karyon => (5_000, 2),
        Package::Monolith => (5_000, 4),
        Package::Staash => (2_000, 2),
        Package::Cache => (500, 4),
        Package::Store => (4_000, 1),
        Package::Volume => (5_000, 2),
        Package::PriamCassandra | Package::Riak => (2_000, 4),
        Package::Denominator | Package::Eureka | Package::Pirate | Package::Service => return None,
    })
}

impl Topology {
    /// Gives an illustrative size to every service that has neither a service time nor a limit. The size depends on
    /// the package.
    ///
    /// ```
    /// use corsair_arch::{Scale, Topology, read};
    ///
    /// let mut topology = Topology::new(&read("lamp", ".".as_ref())?, Scale::default())?;
    /// assert!(!topology.is_limited());
    /// topology.add_sizes();
    /// assert!(topology.is_limited() && topology.unlimited().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_sizes(&mut self) {
        for service in &mut self.services {
            let costs = &mut service.costs;
            let is_sized = costs.service_time.is_some()
                || costs.concurrency.is_some()
                || costs.processors.is_some()
                || costs.rate_limit.is_some();
            if let Some((micros, slots)) = size(service.package).filter(|_| !is_sized) {
                let mean = Duration::from_micros(micros);
                costs.service_time = Some(Distribution::Exponential(TimeSpan(mean)).sampler());
                costs.concurrency = Some(slots);
            }
        }
    }
}
