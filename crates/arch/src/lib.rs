//! Architectures of services: from a definition to actors that answer requests.
//!
//! A [`Definition`] names services, what implements each (a [`Package`]), how many there are and
//! what they depend on. A [`Topology`] makes instances of it, in regions and zones.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod definition;
mod distribution;
mod duration_text;
mod geography;
mod nearest;
mod package;
mod topology;

pub use definition::{
    BUILT_IN, Checked, Definition, DefinitionError, Fault, FaultKind, Guesstimate, Network, Place,
    Problem, ServiceDefinition, read, read_text, schema,
};
pub use distribution::{Distribution, DistributionError, Sampler};
pub use duration_text::TimeSpan;
pub use geography::{Geography, MAX_REGIONS, REGIONS, ZONES, Zone};
pub use package::Package;
pub use topology::{Costs, Instance, Scale, ScaleError, Service, TimedFault, Topology};
