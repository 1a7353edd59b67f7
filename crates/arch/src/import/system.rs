//! The system that manifests describe, independent of their format.

use crate::definition::{AutoscalerDefinition, CallPolicy, EntryLoad, HealthCheckDefinition};
use std::collections::BTreeMap;

pub(super) type Labels = BTreeMap<String, String>;

/// A system: its workloads, the names by which they are reached, and the policies for calls to
/// them.
#[derive(Debug, Default)]
pub(super) struct System {
    /// The workloads, in the order of the files.
    pub(super) workloads: Vec<Workload>,
    pub(super) hosts: BTreeMap<String, Vec<Backends>>,
    /// The texts of configuration maps, by their names.
    pub(super) configuration: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) ways_in: Vec<WayIn>,
    pub(super) routes: Vec<Route>,
    pub(super) destinations: Vec<Destination>,
    /// Autoscalers, by the workloads that they scale.
    pub(super) scalers: BTreeMap<String, Scaler>,
    pub(super) scenarios: Vec<Scenario>,
    pub(super) objectives: Vec<String>,
    pub(super) assumed: Vec<String>,
    pub(super) left_out: Vec<String>,
    /// The number of documents of each kind that do not affect requests.
    pub(super) kinds_left_out: BTreeMap<String, u64>,
    /// Labels of workloads that must not all stop at once, and the limit.
    pub(super) budgets: Vec<(Labels, String)>,
}

/// A program that runs in some replicas.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    pub(super) name: String,
    pub(super) image: String,
    /// The name of the container from which the image and the limits were taken.
    pub(super) container: String,
    pub(super) count: Option<i64>,
    pub(super) labels: Labels,
    /// The limit and the request of processors.
    pub(super) limit: Option<f64>,
    pub(super) request: Option<f64>,
    pub(super) mentions: Vec<Mention>,
    /// The configuration maps whose values are its environment.
    pub(super) environment: Vec<String>,
    /// The configuration maps whose texts are its files.
    pub(super) files: Vec<String>,
    pub(super) links: Vec<Link>,
    pub(super) health: Option<HealthCheckDefinition>,
    /// The time until a new replica is ready, in seconds.
    pub(super) ready_after: Option<f64>,
}

/// A text that may name the host of another service.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    /// The position of the text, for reports.
    pub(super) place: String,
    pub(super) text: String,
    /// True if the whole text may be a host, as in `DB_HOST=db`.
    pub(super) may_be_host: bool,
}

/// A field that names another workload.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) host: String,
    pub(super) place: &'static str,
}

/// The workloads that answer at a host.
#[derive(Clone, Debug)]
pub(super) enum Backends {
    /// All workloads with these labels.
    Labelled(Labels),
    /// The workload of this name.
    Named(String),
}

/// An entry point.
#[derive(Clone, Debug)]
pub(super) struct WayIn {
    pub(super) host: String,
    pub(super) because: String,
    /// True if only a published port suggests it, because ports of databases are often published as
    /// well.
    pub(super) is_port: bool,
}

/// The destinations of requests to a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    /// The caller; `None` for all callers.
    pub(super) caller: Option<String>,
    pub(super) host: String,
    /// Weighted hosts and subsets; if empty, the host itself.
    pub(super) targets: Vec<Target>,
    pub(super) mirrors: Vec<Target>,
    pub(super) policy: CallPolicy,
    pub(super) place: &'static str,
}

/// A host, or a subset of its workloads.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) subset: Option<String>,
    /// The weight, or the share that is mirrored.
    pub(super) weight: f64,
}

/// The policy for calls to a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Destination {
    /// The caller; `None` for all callers.
    pub(super) caller: Option<String>,
    pub(super) host: String,
    pub(super) policy: CallPolicy,
    pub(super) subsets: BTreeMap<String, Labels>,
}

/// Adds and removes replicas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaler {
    pub(super) least: i64,
    pub(super) most: i64,
    /// The target utilisation, relative to the requested resources.
    pub(super) of_request: f64,
    pub(super) calm: Option<f64>,
}

/// The load of a test.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) load: EntryLoad,
}

impl System {
    /// Returns the workload of this name, and creates it if there is none.
    pub(super) fn workload(&mut self, name: &str) -> &mut Workload {
        let name = definition_name(name);
        let known = self.workloads.iter().position(|one| one.name == name);
        let place = known.unwrap_or_else(|| {
            self.workloads.push(Workload {
                name,
                ..Workload::default()
            });
            self.workloads.len() - 1
        });
        &mut self.workloads[place]
    }

    pub(super) fn host(&mut self, host: &str, backends: Backends) {
        self.hosts
            .entry(host.to_lowercase())
            .or_default()
            .push(backends);
    }
}

/// Converts a name to one that definitions allow: short, and with only the allowed characters.
pub(super) fn definition_name(text: &str) -> String {
    let bad = |c: char| matches!(c, '.' | '/' | '*') || c.is_whitespace() || c.is_control();
    let name = text.replace(bad, "_");
    let name = match name.as_str() {
        "" => "unnamed".to_owned(),
        "eureka" | "edda" => format!("{name}-service"),
        _ => name,
    };
    let mut end = name.len().min(80);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// Merges two policies; the later one wins.
pub(super) fn merge(policy: &mut CallPolicy, later: &CallPolicy) {
    let CallPolicy {
        balance,
        hash_bound: _,
        zone_spill: _,
        connections,
        timeout,
        deadline,
        retries,
        hedge: _,
        breaker: _,
        bulkhead,
        rate_limit: _,
        ejection,
    } = later;
    policy.balance = balance.or(policy.balance);
    policy.connections = connections.or(policy.connections);
    policy.timeout = timeout.or(policy.timeout);
    policy.deadline = deadline.or(policy.deadline);
    policy.retries = retries.or(policy.retries);
    policy.bulkhead = bulkhead.or(policy.bulkhead);
    policy.ejection = ejection.or(policy.ejection);
}

impl Scaler {
    /// Returns the autoscaler of a workload with these processors, because Kubernetes relates the
    /// target to requested resources.
    pub(super) fn definition(self, workload: &Workload) -> AutoscalerDefinition {
        let (limit, request) = (workload.limit, workload.request);
        let share = match (request, limit) {
            (Some(request), Some(limit)) if limit > 0.0 => request / limit,
            _ => 1.0,
        };
        let target = (self.of_request * share).clamp(0.01, 1.0);
        AutoscalerDefinition {
            target: (target * 1e4).round() / 1e4,
            least: Some(self.least),
            most: self.most,
            every: None,
            delay: workload.ready_after.and_then(super::seconds),
            calm: self.calm.and_then(super::seconds),
        }
    }
}
