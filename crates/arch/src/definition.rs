//! Definitions of architectures: the contents of `<name>_arch.json` files.
//!
//! [`read()`] checks a definition: every name that it mentions exists, and every number is valid. An error
//! names the file and the line, and suggests the nearest valid name.

mod built_in;
mod check;
mod fault;
mod load;
mod locate;
mod machine;
mod places;
mod read;
#[cfg(all(test, feature = "schema"))]
mod schema;
mod service;

pub use built_in::BUILT_IN;
pub(crate) use check::reachable;
pub use check::{CheckedDefinition, Problem};
pub use fault::{
    AutoscalerDefinition, Fault, FaultKind, HealthCheckDefinition, LinkFault, PlaceFault, Side,
};
pub use load::{Arrivals, EntryLoad, Rate, RatePoint};
pub use locate::Location;
pub use machine::MachineDefinition;
pub use places::PlacesDefinition;
pub(crate) use read::text_of;
pub use read::{DefinitionError, read, read_text};
pub use service::{
    Balance, BreakerDefinition, CacheDefinition, CallPolicy, Codel, Connections, Ejection,
    EndpointDefinition, Hedge, Order, QueueDefinition, RateLimit, Retries, RetryBudget,
    StepDefinition, Targets,
};

use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An architecture: its services, their dependencies, the load and the faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "corsair architecture", rename = "Definition")
)]
pub struct Definition {
    /// The name of the architecture; the first part of every name in the run. Example: `"shop"`.
    pub arch: String,
    /// The version of this format: arch-0.0 or arch-0.1. Default: `""`. Example: `"arch-0.1"`.
    #[serde(default)]
    pub version: String,
    /// A description for readers. Default: `""`. Example: `"Web servers in front of a database"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The command that generated the file. Default: `""`. Example: `"[corsair import shop.yaml]"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub args: String,
    /// The date when the file was generated. Default: `""`. Example: `"2026-11-26"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The service that loses one instance halfway through the run; empty: none. Default: `""`. Example: `"db"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub victim: String,
    /// Names and addresses of regions and zones. Default: spigo's. Example:
    /// `{"regions": ["paris", "rome"], "zones": ["east", "west"]}`.
    #[serde(default, skip_serializing_if = "PlacesDefinition::is_empty")]
    pub places: PlacesDefinition,
    /// Network latencies between zones and regions. Default: the latencies of its fields. Example:
    /// `{"same_zone": "250us"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Machines whose processors several services share; a service names its machine. Default: `{}`. Example:
    /// `{"node-1": {"processors": 4}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, MachineDefinition>,
    /// The load of each entry point. Default: a request every 10 ms, or as set by -kv. Example: `{"www": {"rate": 200}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load: BTreeMap<String, EntryLoad>,
    /// Faults of regions and zones, which affect several services at once. Default: `[]`. Example:
    /// `[{"zone": "zoneA", "kind": "kill", "at": "10s", "for": "5s"}]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<PlaceFault>,
    /// Faults of links between services, zones and regions. Default: `[]`. Example:
    /// `[{"to": {"service": "db"}, "at": "10s", "loss": 0.1}]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkFault>,
    /// The services, in the order of their creation. Example: `[{"name": "db", "package": "store"}]`.
    pub services: Vec<ServiceDefinition>,
}

impl Definition {
    /// Returns the definition as indented JSON with one line for each service.
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

/// Network latencies by distance. An omitted latency has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The latency between instances of one zone. Default: `{"uniform": ["200us", "300us"]}`. Example: `"250us"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_zone: Option<Distribution>,
    /// The latency between zones of one region. Default: `{"uniform": ["400us", "600us"]}`. Example:
    /// `{"exponential": "500us"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_region: Option<Distribution>,
    /// The latency between two regions whose pair is not in `regions`. Default: measured times, ±10 %. Example: `"60ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_region: Option<Distribution>,
    /// The latencies of pairs of regions, in both directions; a key is, for example, us-east-1..us-west-2. Default:
    /// measured times, ±10 %. Example: `{"us-east-1..us-west-2": "60ms"}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<String, Distribution>,
}

impl Network {
    /// Returns the latency of a pair of regions, in either order.
    pub fn pair(&self, a: &str, b: &str) -> Option<&Distribution> {
        let key = |a, b| self.regions.get(&format!("{a}..{b}"));
        key(a, b).or_else(|| key(b, a))
    }
}

/// A service of an architecture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceDefinition {
    /// The name, unique in the architecture. Example: `"db"`.
    pub name: String,
    /// The machine that the service runs on. If `machines` has this name, the service shares the processors of the
    /// machine. Default: `""`. Example: `"node-1"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The type of cloud instance; names of instances do not contain it. Default: `""`. Example: `"m4.large"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// The container image of the instances. Default: `""`. Example: `"redis:8"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// The process in the container. Default: `""`. Example: `"redis-server"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// The package that implements the service. Example: `"service"`.
    pub package: String,
    /// The number of regions, which is multiplied by the run's number of regions; 0: one instance outside all regions.
    /// Default: `0`. Example: `1`.
    #[serde(default)]
    pub regions: i64,
    /// The number of instances in each region; 0: one instance outside all zones. Default: `0`. Example: `3`.
    #[serde(default)]
    pub count: i64,
    /// The services that this service calls. A ring of stores that also lists eureka connects to the same ring in other
    /// regions. Default: `[]`. Example: `["db", "cache"]`.
    #[serde(default)]
    pub dependencies: Option<Vec<String>>,
    /// The network latency of requests to the service, instead of the latency by distance. Default: the latency by
    /// distance. Example: `"400us"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// The time that the service works on a request before it answers or calls further services. Default: `"0s"`.
    /// Example: `{"exponential": "20ms"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Distribution>,
    /// The maximum number of requests that an instance handles at once; further requests queue. Default: no limit.
    /// Example: `4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<i64>,
    /// The fraction of requests that fail, from 0 to 1. Default: `0`. Example: `0.01`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// The queue in front of the instance's slots, if concurrency is limited. Default: fifo without a limit. Example:
    /// `{"size": 100, "patience": "1s"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueDefinition>,
    /// The number of processors of an instance, which its requests share evenly. Default: one for each request. Example:
    /// `1.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<f64>,
    /// With processors: requests take turns of at most this time instead of sharing the processors evenly, as goroutines do.
    /// Default: none. Example: `"10ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_slice: Option<TimeSpan>,
    /// The rate of requests that an instance accepts; further requests are refused. Default: no limit. Example:
    /// `{"rate": 300, "burst": 50}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// For the package `service`: the endpoints. The first endpoint is the default. Default: `[]`. Example:
    /// `[{"name": "list", "steps": [{"work": "2ms"}, {"call": "db"}]}]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointDefinition>,
    /// For the package `service`: the policy for calls to each service; `*` applies to services without an entry.
    /// Default: calls without a policy. Example: `{"*": {"timeout": "200ms", "retries": {"most": 2}}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, CallPolicy>,
    /// Adds and removes instances; `count` is the initial number. Default: none. Example:
    /// `{"target": 0.6, "least": 2, "most": 10}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<AutoscalerDefinition>,
    /// Removes unresponsive instances from the registries. Default: none. Example: `{"every": "5s", "failures": 3}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheckDefinition>,
    /// Faults of the service's instances, with their times. Default: `[]`. Example:
    /// `[{"kind": "slow", "at": "10s", "for": "5s", "share": 0.5}]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// In Guesstimate's models, `guesstimateValue` replaces the measured times of this service. Default: `false`.
    /// Example: `true`.
    #[serde(
        rename = "useCustomGuesstimate",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub use_custom_guesstimate: bool,
    /// Guesstimate's type of the value, such as POINT, NORMAL or FUNCTION. Default: `""`. Example: `"POINT"`.
    #[serde(
        rename = "guesstimateType",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub guesstimate_type: String,
    /// The value or formula, as typed into a cell of Guesstimate. Default: `""`. Example: `"2"`.
    #[serde(
        rename = "guesstimateValue",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub guesstimate_value: String,
}

impl ServiceDefinition {
    /// Creates a service with one instance in no zone and no dependencies.
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
            time_slice: None,
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

    /// Returns the services that this service calls: its dependencies, and the targets of its endpoints' steps.
    pub fn called(&self) -> BTreeSet<&str> {
        let targets = self.endpoints.iter().flat_map(|one| &one.steps);
        let mut called: BTreeSet<&str> = self.dependencies().iter().map(String::as_str).collect();
        for target in targets.flat_map(StepDefinition::targets) {
            called.insert(
                target
                    .split_once('.')
                    .map_or(target, |(service, _)| service),
            );
        }
        called
    }

    /// Returns the names under `dependencies`.
    pub fn dependencies(&self) -> &[String] {
        self.dependencies.as_deref().unwrap_or_default()
    }
}

/// Returns the JSON schema of definitions (draft 2020-12), with one line per key.
///
/// The schema is generated from the types above; a test compares the two.
pub fn schema() -> &'static str {
    include_str!("definition/schema.json").trim_end()
}
