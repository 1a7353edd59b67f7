//! The definition of a system.

use super::calls::{self, Call, Calls, Weighted};
use super::role::Role;
use super::system::{Scaler, System, Workload, merge};
use super::{ImportError, ImportOptions, Imported, ImportedCall};
use crate::definition::{
    Arrivals, CallPolicy, Definition, EndpointDefinition, EntryLoad, Rate, ServiceDefinition,
    StepDefinition, Targets,
};
use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use crate::package::Package;
use std::collections::{BTreeMap, BTreeSet};

/// The endpoint that each imported service has.
pub(super) const ENDPOINT: &str = "request";

/// The maximum number of remarks about an import.
const MOST_REMARKS: usize = 500;

/// Builds the definition.
pub(super) fn build(mut system: System, options: &ImportOptions) -> Result<Imported, ImportError> {
    let stopped: Vec<Workload> = system
        .workloads
        .extract_if(.., |workload| workload.count == Some(0))
        .collect();
    for workload in stopped {
        let said = format!("'{}' has no replicas", workload.name);
        system.left_out.push(said);
    }
    if system.workloads.is_empty() {
        return Err(ImportError::NoServices);
    }
    let found = calls::find(&mut system);
    let mut services = Vec::new();
    for place in 0..system.workloads.len() {
        if found.roles[place] == Role::Load {
            let name = &system.workloads[place].name;
            let said = format!("'{name}' makes load, which entry points do");
            system.left_out.push(said);
            continue;
        }
        services.push(service(&mut system, &found, place, options));
    }
    if services.is_empty() {
        return Err(ImportError::NoServices);
    }
    let load = entry_points(&mut system, &found, &mut services, options);
    notes(&mut system, &found, options);
    let calls = listed(&system, &found);
    system.left_out.truncate(MOST_REMARKS);
    system.assumed.truncate(MOST_REMARKS);
    Ok(Imported {
        definition: Definition {
            arch: options.name.clone(),
            version: "arch-0.1".to_owned(),
            load,
            services,
            ..Definition::default()
        },
        documents: 0,
        calls,
        assumed: system.assumed,
        left_out: system.left_out,
        unused: Vec::new(),
        objectives: system.objectives,
    })
}

/// Returns the calls from outside and between services, for reports.
fn listed(system: &System, found: &Calls) -> Vec<ImportedCall> {
    let name = |place: usize| system.workloads[place].name.clone();
    let calls = found.calls.iter().flat_map(|call| {
        call.targets.iter().map(move |(to, _)| ImportedCall {
            from: name(call.from),
            to: name(*to),
            because: call.because.clone(),
            is_assumed: call.is_assumed,
            is_sent: call.is_sent,
        })
    });
    let entered = found.entries.iter().flat_map(|entry| {
        entry.targets.iter().map(|(to, _)| ImportedCall {
            from: "outside".to_owned(),
            to: name(*to),
            because: entry.because.clone(),
            is_assumed: entry.because.starts_with("no other"),
            is_sent: false,
        })
    });
    entered.chain(calls).collect()
}

/// Returns the service for a workload.
fn service(
    system: &mut System,
    found: &Calls,
    place: usize,
    options: &ImportOptions,
) -> ServiceDefinition {
    let workload = system.workloads[place].clone();
    let mut service = ServiceDefinition::new(&workload.name, Package::Service.name());
    service.machine = "machine".to_owned();
    service.container = workload.image.chars().take(200).collect();
    service.instance = workload.kind.clone();
    service.process = workload.container.chars().take(200).collect();
    service.count = workload.count.unwrap_or(1);
    service.processors = workload.limit;
    service.health_check = workload.health;
    let scaler = system.scalers.get(&workload.name).copied();
    if let Some(scaler) = scaler {
        scale(system, &workload, scaler, &mut service);
    }
    let mut steps = Vec::new();
    if found.roles[place] != Role::Background {
        steps.push(StepDefinition {
            work: Some(Distribution::Exponential(TimeSpan(options.work))),
            ..StepDefinition::default()
        });
    }
    let mut dependencies: Vec<String> = Vec::new();
    let own = found.calls.iter().filter(|call| call.from == place);
    for call in own {
        steps.push(step(system, call));
        let policy = policy(system, found, &workload, call);
        for (to, _) in &call.targets {
            let to = system.workloads[*to].name.clone();
            if let Some(policy) = &policy {
                service.calls.insert(to.clone(), policy.clone());
            }
            if !dependencies.contains(&to) {
                dependencies.push(to);
            }
        }
    }
    service.dependencies = Some(dependencies);
    service.endpoints = vec![EndpointDefinition {
        name: ENDPOINT.to_owned(),
        priority: None,
        latency: None,
        steps,
    }];
    service
}

fn scale(
    system: &mut System,
    workload: &Workload,
    scaler: Scaler,
    service: &mut ServiceDefinition,
) {
    if service.processors.is_none() {
        service.processors = workload.request;
        let name = &workload.name;
        let said = match workload.request {
            Some(request) => {
                format!(
                    "'{name}' has {request} processors, which it requests, because it scales by their use and has no limit"
                )
            }
            None => {
                let said = format!(
                    "the autoscaler of '{name}' has no effect: it has no limit and no request of processors"
                );
                system.left_out.push(said);
                return;
            }
        };
        system.assumed.push(said);
    }
    let marks = workload.scaler_marks.iter();
    marks.for_each(|mark| system.log.note(*mark));
    let wanted = workload.count.unwrap_or(scaler.least);
    service.count = wanted.clamp(scaler.least, scaler.most);
    service.autoscaler = Some(scaler.definition(workload));
}

fn step(system: &System, call: &Call) -> StepDefinition {
    let targets = targets(system, &call.targets, true);
    StepDefinition {
        call: (!call.is_sent).then(|| targets.clone()),
        send: call.is_sent.then_some(targets),
        probability: call.probability,
        ..StepDefinition::default()
    }
}

/// Returns the workloads with their weights, by names or by endpoints.
fn targets(system: &System, targets: &[Weighted], by_name: bool) -> Targets {
    let name = |place: usize| match by_name {
        true => system.workloads[place].name.clone(),
        false => format!("{}.{ENDPOINT}", system.workloads[place].name),
    };
    match targets {
        [(only, _)] => Targets::One(name(*only)),
        many => Targets::Weighted(
            many.iter()
                .map(|(to, weight)| (name(*to), *weight))
                .collect(),
        ),
    }
}

/// Returns the policy of a workload for a call, if a manifest contains one.
fn policy(system: &System, found: &Calls, workload: &Workload, call: &Call) -> Option<CallPolicy> {
    let mut policy = CallPolicy::default();
    for of in found.hosts.policies(system, &call.host, &workload.name) {
        merge(&mut policy, of);
    }
    (policy != CallPolicy::default()).then_some(policy)
}

/// Adds the entry points, and returns their load.
fn entry_points(
    system: &mut System,
    found: &Calls,
    services: &mut Vec<ServiceDefinition>,
    options: &ImportOptions,
) -> BTreeMap<String, EntryLoad> {
    let names = system.workloads.iter().map(|one| one.name.clone());
    let mut taken: BTreeSet<String> = names.collect();
    let mut free = |wanted: String| {
        let wanted = super::system::definition_name(&wanted);
        let mut numbers = 2..;
        let mut name = wanted.clone();
        while !taken.insert(name.clone()) {
            name = format!("{wanted}-{}", numbers.next().unwrap_or(u64::MAX));
        }
        name
    };
    let mut load = BTreeMap::new();
    let mut add = |name: String, of: Vec<Weighted>, mut entry: EntryLoad| {
        let mut service = ServiceDefinition::new(&name, Package::Denominator.name());
        service.machine = "external".to_owned();
        service.regions = 0;
        let names = of.iter().map(|(to, _)| system.workloads[*to].name.clone());
        service.dependencies = Some(names.collect());
        services.push(service);
        entry.requests = match targets(system, &of, false) {
            Targets::One(only) => BTreeMap::from([(only, 1.0)]),
            Targets::Weighted(weights) => weights,
        };
        load.insert(name, entry);
    };
    if system.scenarios.is_empty() {
        for entry in &found.entries {
            let name = match found.entries.len() {
                1 => "www".to_owned(),
                _ => format!("www-{}", entry.host),
            };
            let made = EntryLoad {
                rate: Some(Rate::Constant(options.rate)),
                arrivals: Some(Arrivals::Poisson),
                ..EntryLoad::default()
            };
            add(free(name), entry.targets.clone(), made);
        }
        let said = format!(
            "{} requests a second come in at each entry point, because no document says how many; --rate sets them",
            options.rate
        );
        system.assumed.push(said);
        return load;
    }
    let all = all_entries(found);
    for scenario in &system.scenarios {
        add(
            free(format!("www-{}", scenario.name)),
            all.clone(),
            scenario.load.clone(),
        );
    }
    load
}

/// Returns the workloads of all entry points together.
fn all_entries(found: &Calls) -> Vec<Weighted> {
    let mut sum: BTreeMap<usize, f64> = BTreeMap::new();
    for (to, weight) in found.entries.iter().flat_map(|entry| &entry.targets) {
        *sum.entry(*to).or_default() += weight;
    }
    sum.into_iter().collect()
}

/// Adds the remarks about the definition that users need.
fn notes(system: &mut System, found: &Calls, options: &ImportOptions) {
    let said = format!(
        "a request takes {} of processor time at each service, exponentially distributed, because manifests say nothing of it; --work sets it, --traces learn it",
        TimeSpan(options.work)
    );
    system.assumed.push(said);
    system
        .assumed
        .push("a service makes its calls one after the other, each once for a request".to_owned());
    let repeated = !system.repeated.is_empty();
    for (selector, bound) in &system.budgets {
        let is_meant = |one: &&Workload| selector.selects(one, repeated);
        for workload in system.workloads.iter().filter(is_meant).take(20) {
            system.note_labels(workload, &selector.labels);
            system.left_out.push(format!(
                "the PodDisruptionBudget of '{}' ({bound}) bounds restarts; the definition has none yet",
                workload.name
            ));
        }
    }
    let names: BTreeSet<&String> = system.workloads.iter().map(|one| &one.name).collect();
    for name in system.scalers.keys().filter(|name| !names.contains(name)) {
        system.left_out.push(format!(
            "the autoscaler of '{}', which no document describes",
            super::shortened(name)
        ));
    }
    for (kind, times) in &system.kinds_left_out {
        system.left_out.push(format!(
            "{times} documents of kind {kind}: they are not about requests"
        ));
    }
    let called: BTreeSet<&str> = found.calls.iter().map(|call| call.host.as_str()).collect();
    let is_called = |host: &str| called.contains(host);
    let routes = system.routes.iter().filter(|route| {
        let has_targets = route.targets.len() > 1 || !route.mirrors.is_empty();
        has_targets || route.policy != CallPolicy::default()
    });
    let hosts = routes.map(|route| &route.host);
    let destinations = system
        .destinations
        .iter()
        .filter(|one| one.policy != CallPolicy::default());
    let hosts: BTreeSet<&String> = hosts.chain(destinations.map(|one| &one.host)).collect();
    for host in hosts.into_iter().filter(|host| !is_called(host)) {
        system.left_out.push(format!(
            "the policy for '{}' has no effect, because no service calls it",
            super::shortened(host)
        ));
    }
}
