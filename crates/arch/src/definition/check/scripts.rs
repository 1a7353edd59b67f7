//! Checks of queues, scripts and policies.

use super::super::{Definition, ServiceDefinition};
use super::{Problem, Wrong, at};
use crate::duration_text::TimeSpan;
use crate::nearest::did_you_mean;
use crate::package::Package;
use crate::policy::{Policy, Rate};
use crate::script::{self, CertainCalls, Endpoints, Script};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn names_to_index(definition: &Definition, name: &str) -> Option<usize> {
    let mut services = definition.services.iter();
    services.position(|service| service.name == name)
}

/// Returns the services that requests of an entry point reach unchanged: its dependencies, and the
/// dependencies of services that forward them.
pub(crate) fn reachable(
    entry: usize,
    packages: &[Package],
    dependencies: impl Fn(usize) -> Vec<usize>,
) -> Vec<u32> {
    let mut reached: Vec<u32> = Vec::new();
    let mut next = vec![entry];
    while let Some(service) = next.pop() {
        for called in dependencies(service) {
            if !reached.contains(&(called as u32)) {
                reached.push(called as u32);
                if packages[called].passes_on() {
                    next.push(called);
                }
            }
        }
    }
    reached
}

/// True if an instance or a machine can have this number of processors.
pub(super) fn are_possible(processors: f64) -> bool {
    processors > 0.0 && processors <= 1e6
}

/// The shortest time slice: each turn is an event.
const LEAST_SLICE: Duration = Duration::from_micros(10);

/// Checks the time slice of an instance or a machine.
pub(super) fn check_time_slice(slice: Option<TimeSpan>) -> Result<(), String> {
    match slice {
        Some(slice) if slice.0 < LEAST_SLICE => Err(format!(
            "a time slice of {slice}, which is too short; give 10us or more, or remove it to share evenly"
        )),
        _ => Ok(()),
    }
}

/// Checks fields of services that accept requests, and rejects invalid combinations.
pub(super) fn check_queue(
    service: &ServiceDefinition,
    package: Package,
) -> Result<(), (&'static str, String)> {
    let takes = package.takes_requests();
    for (key, is_there) in [
        ("queue", service.queue.is_some()),
        ("processors", service.processors.is_some()),
        ("time_slice", service.time_slice.is_some()),
        ("rate_limit", service.rate_limit.is_some()),
    ] {
        if is_there && !takes {
            return Err((key, format!("a {package} takes no requests; remove {key}")));
        }
    }
    if service.queue.is_some() && service.concurrency.is_none() {
        let what =
            "without a limit of concurrency no request waits; give concurrency, or remove queue";
        return Err(("queue", what.to_owned()));
    }
    if let Some(queue) = &service.queue {
        if let Some(size) = queue
            .size
            .filter(|size| !(0..=1_000_000_000).contains(size))
        {
            return Err((
                "queue",
                format!("a queue of {size} is not possible; give 0 or more"),
            ));
        }
        let is_empty = |time: Option<TimeSpan>| time.is_some_and(|time| time.0.is_zero());
        if is_empty(queue.patience) {
            return Err((
                "queue",
                "with a patience of 0s no request waits; give \"size\" 0 instead".to_owned(),
            ));
        }
        if is_empty(queue.codel.map(|codel| codel.interval)) {
            return Err((
                "queue",
                "an interval of 0s is not possible; give a longer one".to_owned(),
            ));
        }
    }
    if let Some(processors) = service.processors
        && !are_possible(processors)
    {
        let what = format!(
            "{processors:?} processors are not possible; give more than 0, up to a million"
        );
        return Err(("processors", what));
    }
    if service.time_slice.is_some() && service.processors.is_none() {
        let what =
            "without processors requests take no turns; give processors, or remove time_slice";
        return Err(("time_slice", what.to_owned()));
    }
    check_time_slice(service.time_slice).map_err(|what| ("time_slice", what))?;
    if let Some(limit) = &service.rate_limit {
        Rate::new(limit).map_err(|what| ("rate_limit", what))?;
    }
    Ok(())
}

pub(super) type Scripts = BTreeMap<usize, (Arc<Script>, Vec<Policy>)>;

/// Returns the endpoints of all services, and the scripts of services with scripts.
pub(super) fn check_scripts(
    definition: &Definition,
    packages: &[Package],
) -> Result<(Endpoints, Scripts), Wrong<'static>> {
    let mut endpoints = Endpoints::default();
    let problem = |index: usize, key: &'static str, what: String| {
        let service = definition.services[index].name.clone();
        at(index, key, Problem::Service { service, what })
    };
    for (index, service) in definition.services.iter().enumerate() {
        let has_script = packages[index] == Package::Service;
        for (key, is_there) in [
            ("endpoints", !service.endpoints.is_empty()),
            ("calls", !service.calls.is_empty()),
        ] {
            if is_there && !has_script {
                let what = format!("only the package service has {key}; remove them");
                return Err(problem(index, key, what));
            }
        }
        let added = endpoints.add(&service.name, &service.endpoints);
        added.map_err(|what| problem(index, "endpoints", what))?;
    }
    let mut scripts = Scripts::new();
    for (index, service) in definition.services.iter().enumerate() {
        if packages[index] != Package::Service {
            continue;
        }
        let script = script::compile(&endpoints, index, &service.endpoints);
        let script = script.map_err(|what| problem(index, "endpoints", what))?;
        let called = |place: &u32| definition.services[*place as usize].name.as_str();
        let unasked = script
            .routes
            .iter()
            .find(|&&place| !packages[place as usize].takes_requests());
        if let Some(place) = unasked {
            let package = packages[*place as usize];
            let what = format!(
                "'{}' is a {package}, which takes no requests",
                called(place)
            );
            return Err(problem(index, "endpoints", what));
        }
        for (name, policy) in &service.calls {
            let wrong =
                |what: String| problem(index, "calls", format!("calls of '{name}': {what}"));
            Policy::new(policy).map_err(wrong)?;
            if name != "*" && !script.routes.iter().any(|place| called(place) == name) {
                let meant = did_you_mean(name, script.routes.iter().map(called));
                let name = name.escape_debug();
                let what = format!("no endpoint calls '{name}'{meant}");
                return Err(problem(index, "calls", what));
            }
        }
        let policies = script.routes.iter().map(|place| {
            let policy = service.calls.get(called(place)).or(service.calls.get("*"));
            Policy::new(policy.unwrap_or(&super::super::CallPolicy::default()))
        });
        let policies = policies.collect::<Result<Vec<_>, String>>();
        let policies = policies.map_err(|what| problem(index, "calls", what))?;
        scripts.insert(index, (Arc::new(script), policies));
    }
    let certain = CertainCalls::new(scripts.values().map(|(script, _)| &**script));
    if let Some(cycle) = certain.cycle() {
        let index = endpoints.service(cycle[0]).unwrap_or_default() as usize;
        return Err(problem(index, "endpoints", endless(&endpoints, &cycle)));
    }
    Ok((endpoints, scripts))
}

/// Returns the sentence for endpoints that certainly call each other in a cycle.
fn endless(endpoints: &Endpoints, cycle: &[u16]) -> String {
    const MOST_NAMES: usize = 8;
    let name = |&number: &u16| endpoints.name(number).unwrap_or_default();
    let first = name(&cycle[0]);
    let others: Vec<String> = cycle[1..].iter().take(MOST_NAMES).map(name).collect();
    let by = match (others.is_empty(), cycle.len() > MOST_NAMES + 1) {
        (true, _) => String::new(),
        (false, false) => format!(" by way of {}", others.join(", ")),
        (false, true) => format!(" by way of {}, …", others.join(", ")),
    };
    format!(
        "each request of '{first}' calls '{first}' again{by}, without end; remove a call, or give it a probability below 1"
    )
}
