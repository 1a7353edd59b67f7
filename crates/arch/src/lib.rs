//! Architectures of services: from a definition to actors that answer requests.
//!
//! A [`Definition`] lists services: what implements each of them (a [`Package`]), the number of
//! instances, and their dependencies. A [`Topology`] creates the instances, in regions and zones.
//! [`simulate()`] runs them, and [`capacity()`] finds the highest load that they sustain. The
//! manual:
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod branch;
mod capacity;
mod controller;
mod csv;
mod definition;
mod distribution;
mod duration_text;
mod edda;
mod experiment;
mod faults;
mod gate;
mod geography;
pub mod hunt;
mod image;
mod import;
pub mod input_file;
mod learn;
pub mod live;
mod load;
mod log;
mod message;
mod migration;
mod model;
mod nearest;
mod node;
mod ordered;
pub mod outputs;
mod package;
#[cfg(feature = "pictures")]
pub mod picture;
mod plan;
mod policy;
mod registry;
mod reload;
mod resume_error;
mod saved;
mod scenario;
mod script;
mod setup;
mod stability;
pub mod summary;
pub mod sweep;
mod timeline;
mod topology;
mod totals;
mod variant;
mod why;
mod workload;

pub use branch::Branch;
pub use capacity::{
    Capacity, CapacityError, Point, Search, Sized, Slo, SloError, SloMeasure, capacity, instances,
};
pub use csv::quoted;
pub use definition::{
    Arrivals, AutoscalerDefinition, BUILT_IN, Balance, BreakerDefinition, CacheDefinition,
    CallPolicy, CheckedDefinition, Codel, Connections, Definition, DefinitionError, Ejection,
    EndpointDefinition, EntryLoad, Fault, FaultKind, HealthCheckDefinition, Hedge, LinkFault,
    Location, MachineDefinition, Network, Order, PlaceFault, PlacesDefinition, Problem,
    QueueDefinition, Rate, RateLimit, RatePoint, Retries, RetryBudget, ServiceDefinition, Side,
    StepDefinition, Targets, read, read_text, schema,
};
pub use distribution::{Distribution, DistributionError, Sampler};
pub use duration_text::{TimeSpan, duration};
pub use experiment::{
    Compared, Estimate, Measurement, compare, compared, in_parallel, measure, measured,
};
pub use gate::{
    FieldChange, GateError, GateReport, GateResult, GateRules, GateSide, Judged, ServiceChange,
    ServiceUse, SideError, Verdict, changes, gate, reason,
};
pub use geography::{Geography, Places, PlacesError, Zone};
#[cfg(feature = "compose")]
pub use import::compose;
pub use import::{
    ImportError, ImportOptions, Imported, ImportedCall, ManifestPatch, PatchFormat, Unused,
    field_table, import, manifest_patch,
};
pub use learn::{
    ConfiguredError, LearnError, LearnOptions, LearnReport, LearnedParameter, MetricSeries,
    Quantile, Recording, Resemblance, Reservoir, SpanBatch, TraceError, UnseenPolicies,
    UnseenPolicy, learn, learn_with,
};
pub use load::{Load, LoadText, LoadTextError};
pub use message::{Answer, Call, Change, Command, Key, Msg};
pub use migration::{LAST_STEP, MigrationError, step};
pub use model::LEAST_TRAVEL;
pub use nearest::nearest;
pub use node::queue::QueueRules;
pub use package::Package;
pub use plan::{KINDS, Plan, SimulateError, config, connections, default_workers, memory_needed};
pub use reload::ReloadError;
pub use resume_error::ChangeError;
pub use script::{Endpoints, Script};
pub use setup::{Setup, SetupError};
pub use stability::{
    Axis, MapError, MapPoint, MapRules, Stability, StabilityMap, Trigger, stability,
};
pub use timeline::{MOST_SLICES, Slice, Timeline, TimelineRow};
pub use topology::{
    Costs, ExtraCapacityError, Instance, Scale, ScaleError, Service, TimedFault, Topology,
    first_part,
};
pub use totals::{EntryTotals, Percentile, ServiceTotals, Totals};
pub use variant::{DefinitionText, FieldHint, Setting};
pub use why::{Contribution, Measure, Part, Remedy, Why, WhyError, WhyRules, why};
pub use workload::{Architecture, simulate};
