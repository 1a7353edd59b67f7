//! Definitions of architectures: what a `<name>_arch.json` says.
//!
//! A definition that was [read](read()) has been checked: every name it mentions exists, and every
//! number is valid. An error names the file and the line, and suggests the nearest valid name.

mod built_in;
mod check;
mod fault;
mod load;
mod locate;
mod places;
mod read;
#[cfg(all(test, feature = "schema"))]
mod schema;
mod service;

pub use built_in::BUILT_IN;
pub(crate) use check::reachable;
pub use check::{Checked, Problem};
pub use fault::{
    AutoscalerDefinition, Fault, FaultKind, HealthCheckDefinition, LinkFault, PlaceFault, Side,
};
pub use load::{Arrivals, EntryLoad, Rate, RatePoint};
pub use locate::Location;
pub use places::PlacesDefinition;
pub(crate) use read::text_of;
pub use read::{DefinitionError, read, read_text};
pub use service::{
    Balance, BreakerDefinition, CacheDefinition, CallPolicy, Codel, Connections, Ejection,
    EndpointDefinition, Hedge, Order, QueueDefinition, RateLimit, Retries, RetryBudget,
    StepDefinition, Targets,
};

use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An architecture: its services, and what each depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "corsair architecture", rename = "Definition")
)]
pub struct Definition {
    /// The first part of every name of the run.
    pub arch: String,
    /// The version of this format: arch-0.0 or arch-0.1.
    #[serde(default)]
    pub version: String,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The command that made it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub args: String,
    /// When it was made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The service of which half-way one instance is killed; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub victim: String,
    /// What regions and zones are called, and their addresses, if not as spigo's.
    #[serde(default, skip_serializing_if = "PlacesDefinition::is_empty")]
    pub places: PlacesDefinition,
    /// How long messages travel from place to place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What comes in, by entry point. Those left out make a request every 10 ms, or as -kv says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load: BTreeMap<String, EntryLoad>,
    /// What goes wrong in places, with several services at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<PlaceFault>,
    /// What goes wrong between places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkFault>,
    /// The services, in the order in which they are created.
    pub services: Vec<ServiceDefinition>,
}

impl Definition {
    /// The definition as people read it: a line for each service.
    pub fn to_text(&self) -> String {
        let mut head = self.clone();
        let services = std::mem::take(&mut head.services);
        // Plain data with string keys can always be written.
        let head = serde_json::to_string_pretty(&head).unwrap_or_default();
        let line = |service: &ServiceDefinition| {
            let service = serde_json::to_string(service).unwrap_or_default();
            format!("    {service}")
        };
        let lines: Vec<String> = services.iter().map(line).collect();
        let services = format!("\"services\": [\n{}\n  ]", lines.join(",\n"));
        head.replace("\"services\": []", &services) + "\n"
    }
}

/// How long messages travel, by place. What is left out has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Between instances of one zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_zone: Option<Distribution>,
    /// Between zones of one region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_region: Option<Distribution>,
    /// Between regions that `regions` does not mention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_region: Option<Distribution>,
    /// Between two regions, in both directions; keys are as us-east-1..us-west-2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<String, Distribution>,
}

impl Network {
    /// What is said of this pair of regions, in either order.
    pub fn pair(&self, a: &str, b: &str) -> Option<&Distribution> {
        let key = |a, b| self.regions.get(&format!("{a}..{b}"));
        key(a, b).or_else(|| key(b, a))
    }
}

/// A service of an architecture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceDefinition {
    /// Its name, unique in the architecture.
    pub name: String,
    /// What it runs on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// What kind of instance it runs on; not part of any name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// The container image of its instances.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// The process in the container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// What implements it.
    pub package: String,
    /// Into how many regions it goes for each region of the run; 0: one instance that is in no
    /// region.
    #[serde(default)]
    pub regions: i64,
    /// How many instances there are in each region; 0: one that is in no zone.
    #[serde(default)]
    pub count: i64,
    /// The services that it calls. A ring that also names eureka knows its other regions.
    #[serde(default)]
    pub dependencies: Option<Vec<String>>,
    /// How long requests to it travel, whatever the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// How long it works on a request before it answers or asks on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Distribution>,
    /// How many requests an instance handles at once; the others queue. Left out: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<i64>,
    /// The part of requests that fail, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// How requests wait, where concurrency is limited. Left out: any number, first come first
    /// served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueDefinition>,
    /// How many processors all work of an instance shares evenly. Left out: each request has its
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<f64>,
    /// How many requests an instance takes; more are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// For the package service: what it does for each kind of request. The first is the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointDefinition>,
    /// For the package service: how it calls others, by their names; `*` is for those left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, CallPolicy>,
    /// Adds and removes instances; `count` is how many there are in the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<AutoscalerDefinition>,
    /// Takes instances that do not answer out of the registries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheckDefinition>,
    /// What goes wrong, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// In Guesstimate's models, `guesstimateValue` stands for the measured times of this service.
    #[serde(
        rename = "useCustomGuesstimate",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub use_custom_guesstimate: bool,
    /// Guesstimate's word for what the value is, such as POINT, NORMAL or FUNCTION.
    #[serde(
        rename = "guesstimateType",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub guesstimate_type: String,
    /// The value or formula, as one types it into a cell of Guesstimate's.
    #[serde(
        rename = "guesstimateValue",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub guesstimate_value: String,
}

impl ServiceDefinition {
    /// A service of this name and package, with one instance in no zone and no dependencies.
    pub fn new(name: impl Into<String>, package: impl Into<String>) -> ServiceDefinition {
        ServiceDefinition {
            name: name.into(),
            machine: String::new(),
            instance: String::new(),
            container: String::new(),
            process: String::new(),
            package: package.into(),
            regions: 1,
            count: 0,
            dependencies: Some(Vec::new()),
            latency: None,
            service_time: None,
            concurrency: None,
            error_rate: None,
            queue: None,
            processors: None,
            rate_limit: None,
            endpoints: Vec::new(),
            calls: BTreeMap::new(),
            autoscaler: None,
            health_check: None,
            faults: Vec::new(),
            use_custom_guesstimate: false,
            guesstimate_type: String::new(),
            guesstimate_value: String::new(),
        }
    }

    /// The services that it calls.
    pub fn dependencies(&self) -> &[String] {
        self.dependencies.as_deref().unwrap_or_default()
    }
}

/// The JSON schema of definitions (draft 2020-12), as one line per key.
///
/// It is made from the types above; a test holds the file and the types together.
pub fn schema() -> &'static str {
    include_str!("definition/schema.json").trim_end()
}
