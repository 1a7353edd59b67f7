//! The system that manifests describe, independent of their format.

use super::item::{Item, Log, Mark};
use crate::definition::{AutoscalerDefinition, CallPolicy, EntryLoad, HealthCheckDefinition};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) type Labels = BTreeMap<String, String>;

/// A system: its workloads, the names by which they are reached, and the policies for calls to
/// them.
#[derive(Debug, Default)]
pub(super) struct System {
    /// The values that had an effect.
    pub(super) log: Log,
    /// The namespace of the document that is being read; empty if the document has none.
    pub(super) namespace: String,
    /// Names that documents of several namespaces have.
    pub(super) repeated: BTreeSet<String>,
    /// The workloads, in the order of the files.
    pub(super) workloads: Vec<Workload>,
    by_name: HashMap<String, usize>,
    pub(super) hosts: BTreeMap<String, Vec<Backends>>,
    /// Hosts that documents describe without saying which workloads answer there.
    pub(super) outside: BTreeSet<String>,
    /// The texts of configuration maps, by their names.
    pub(super) configuration: BTreeMap<String, BTreeMap<String, (String, Mark)>>,
    pub(super) ways_in: Vec<WayIn>,
    pub(super) routes: Vec<Route>,
    pub(super) destinations: Vec<Destination>,
    /// Autoscalers, by the workloads that they scale.
    pub(super) scalers: BTreeMap<String, Scaler>,
    pub(super) scenarios: Vec<Scenario>,
    pub(super) objectives: Vec<String>,
    pub(super) assumed: Vec<String>,
    pub(super) left_out: Vec<String>,
    /// The number of bytes of texts with variables, after their replacement.
    pub(super) replaced: usize,
    /// The number of documents of each kind that do not affect requests.
    pub(super) kinds_left_out: BTreeMap<String, u64>,
    /// Workloads that must not all stop at once, and the limit.
    pub(super) budgets: Vec<(Selector, String)>,
}

/// A program that runs in some replicas.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    pub(super) name: String,
    /// The host name of the workload if no Service selects it.
    pub(super) host: String,
    pub(super) namespace: String,
    /// The kind of its document, such as `StatefulSet`; empty for formats with one kind.
    pub(super) kind: String,
    pub(super) image: String,
    /// The name of the container from which the image and the limits were taken.
    pub(super) container: String,
    pub(super) count: Option<i64>,
    pub(super) labels: Labels,
    /// The keys of the labels with their marks.
    pub(super) label_marks: Vec<(String, Mark)>,
    /// The maximum number of processors. The next field is the number that is reserved.
    pub(super) limit: Option<f64>,
    pub(super) request: Option<f64>,
    /// The values that only an autoscaler uses: requests and the time until a replica is ready.
    pub(super) scaler_marks: Vec<Mark>,
    pub(super) mentions: Vec<Mention>,
    /// The values of configuration maps in its environment.
    pub(super) environment: Vec<Configured>,
    /// The configuration maps whose texts are its files.
    pub(super) files: Vec<Configured>,
    pub(super) links: Vec<Link>,
    pub(super) health: Option<HealthCheckDefinition>,
    /// The time until a new replica is ready, in seconds.
    pub(super) ready_after: Option<f64>,
}

/// A value of a configuration map, or all of its values.
#[derive(Clone, Debug)]
pub(super) struct Configured {
    pub(super) map: String,
    pub(super) key: Option<String>,
    /// True if the name of the variable suggests that the complete value is a host.
    pub(super) may_be_host: bool,
    pub(super) marks: Marks,
}

/// The values that have an effect if a text names a host.
pub(super) type Marks = [Option<Mark>; 3];

impl Configured {
    /// Returns all values of the map whose name is at a path.
    pub(super) fn whole(item: Item, path: &str) -> Option<Configured> {
        let name = item.at(path)?;
        Some(Configured {
            map: name.peek()?,
            key: None,
            may_be_host: false,
            marks: [Some(name.mark()), None, None],
        })
    }
}

/// A text that may name the host of another service.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    /// The position of the text, for reports.
    pub(super) place: String,
    pub(super) text: String,
    /// True if the whole text may be a host, as in `DB_HOST=db`.
    pub(super) may_be_host: bool,
    pub(super) marks: Marks,
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
    /// All workloads that a Service selects.
    Selected(Selector),
    /// The workload of this name.
    Named(String),
    /// The workloads of another host.
    Alias(String),
}

/// A selector of workloads by labels, in a namespace.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    pub(super) namespace: String,
    pub(super) labels: Labels,
}

impl Selector {
    /// True if a workload is selected. A missing namespace is any namespace, unless names are `repeated` in several.
    pub(super) fn selects(&self, workload: &Workload, repeated: bool) -> bool {
        let [own, other] = [&self.namespace, &workload.namespace];
        let any = !repeated && (own.is_empty() || other.is_empty());
        (any || own == other) && has_labels(&workload.labels, &self.labels)
    }
}

/// True if labels include all of the wanted ones.
pub(super) fn has_labels(labels: &Labels, wanted: &Labels) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
}

/// An entry point.
#[derive(Clone, Debug)]
pub(super) struct WayIn {
    pub(super) host: String,
    pub(super) because: String,
    /// True if only a published port suggests that this is an entry point. Ports of databases are often published as
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
    /// The weight of the target; for a mirror, the share of requests that is mirrored.
    pub(super) weight: f64,
}

/// The policy for calls to a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Destination {
    /// The caller; `None` for all callers.
    pub(super) caller: Option<String>,
    pub(super) host: String,
    pub(super) policy: CallPolicy,
    pub(super) subsets: BTreeMap<String, Subset>,
}

/// A part of the workloads of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Subset {
    pub(super) labels: Labels,
    pub(super) marks: Vec<Mark>,
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
        let host = self.local(name);
        let name = definition_name(&host);
        let place = *self.by_name.entry(name).or_insert_with_key(|name| {
            self.workloads.push(Workload {
                name: name.clone(),
                host: host.to_lowercase(),
                namespace: self.namespace.clone(),
                ..Workload::default()
            });
            self.workloads.len() - 1
        });
        &mut self.workloads[place]
    }

    pub(super) fn host(&mut self, host: &str, backends: Backends) {
        let host = self.local(host).to_lowercase();
        self.hosts.entry(host).or_default().push(backends);
    }

    /// Returns a name in the current document, with its namespace if several namespaces have the name.
    pub(super) fn local(&self, name: &str) -> String {
        self.local_in(&self.namespace, name)
    }

    /// Returns a name in a namespace, with the namespace if several have the name.
    pub(super) fn local_in(&self, namespace: &str, name: &str) -> String {
        match self.repeated.contains(name) && !namespace.is_empty() {
            true => format!("{name}.{namespace}"),
            false => name.to_owned(),
        }
    }

    /// Records the labels by which a workload is selected.
    pub(super) fn note_labels(&self, workload: &Workload, labels: &Labels) {
        let marks = workload.label_marks.iter();
        for (_, mark) in marks.filter(|(key, _)| labels.contains_key(key)) {
            self.log.note(*mark);
        }
    }

    pub(super) fn way_in(&mut self, mut way: WayIn) {
        way.host = self.local(&way.host);
        self.ways_in.push(way);
    }

    pub(super) fn route(&mut self, mut route: Route) {
        let targets = route.targets.iter_mut().chain(&mut route.mirrors);
        targets.for_each(|target| target.host = self.local(&target.host));
        route.host = self.local(&route.host);
        self.routes.push(route);
    }

    pub(super) fn destination(&mut self, mut destination: Destination) {
        destination.host = self.local(&destination.host);
        self.destinations.push(destination);
    }

    /// Returns a selection of workloads in the namespace of the current document.
    pub(super) fn selector(&self, labels: Labels) -> Selector {
        let namespace = self.namespace.clone();
        Selector { namespace, labels }
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
    /// Returns the autoscaler of a workload as a definition. The target is converted, because in Kubernetes it is
    /// relative to the requested processors.
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
