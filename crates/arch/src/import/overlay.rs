//! Combines manifests with another definition of the same system. The result has the structure, times and load of the
//! definition, and the replicas, limits and policies of the manifests.

use super::{Imported, shortened};
use crate::definition::{Definition, ServiceDefinition, StepDefinition, Targets};
use std::collections::{BTreeMap, BTreeSet};

/// The definition whose fields the manifests replace.
pub(super) struct Below<'a> {
    pub(super) definition: Definition,
    /// The name of the definition in remarks.
    pub(super) name: &'a str,
    /// True if the definition's times were recorded under processor limits.
    pub(super) is_recorded: bool,
    /// True if services that only the manifests have are added.
    pub(super) adds: bool,
}

/// Replaces the imported definition by the definition `below`, with the replicas, limits and policies of the manifests.
pub(super) fn lay(imported: &mut Imported, below: Below) {
    let Below {
        mut definition,
        name,
        is_recorded,
        adds,
    } = below;
    let manifests = std::mem::take(&mut imported.definition.services);
    let mut by_key: BTreeMap<String, &ServiceDefinition> = BTreeMap::new();
    for service in manifests.iter().filter(|one| one.regions > 0) {
        by_key.entry(key(&service.name)).or_insert(service);
    }
    // For each service name of the manifests, the name of that service in `below`.
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for service in &definition.services {
        if let Some(manifest) = by_key.get(&key(&service.name)) {
            renamed.insert(manifest.name.clone(), service.name.clone());
        }
    }
    let added: Vec<&ServiceDefinition> = manifests
        .iter()
        .filter(|one| one.regions > 0 && !renamed.contains_key(&one.name))
        .collect();
    for service in &added {
        let what = match adds {
            true => format!("'{}' is new: it is not in {name}", service.name),
            false => format!("'{}' is not in {name}, and left out", service.name),
        };
        imported.left_out.push(what);
    }
    if adds {
        let new = added.iter().map(|one| (one.name.clone(), one.name.clone()));
        renamed.extend(new.collect::<Vec<_>>());
    }
    let new: BTreeSet<&str> = added.iter().map(|one| one.name.as_str()).collect();
    for service in &mut definition.services {
        if definition.load.contains_key(&service.name) || service.regions == 0 {
            continue;
        }
        match by_key.get(&key(&service.name)) {
            Some(manifest) => {
                if adds {
                    call_new(service, manifest, &new);
                }
                take_over(service, manifest, &renamed, is_recorded);
            }
            None => imported.left_out.push(format!(
                "'{}' is in {name} and in no manifest; it stays as it is there",
                shortened(&service.name)
            )),
        }
    }
    if adds {
        let entries = definition.services.iter().position(|one| one.regions == 0);
        let at = entries.unwrap_or(definition.services.len());
        let made = added.into_iter().map(|one| add(one, &renamed));
        definition.services.splice(at..at, made.collect::<Vec<_>>());
    }
    imported.assumed.retain(|said| {
        !said.contains("--work")
            && !said.contains("--rate")
            && !said.contains("one after the other")
    });
    definition.arch.clone_from(&imported.definition.arch);
    imported.definition = definition;
}

/// Returns a name in lower case, without separators and the ending `service`, because files spell names differently.
fn key(name: &str) -> String {
    let name = name.to_lowercase().replace(['-', '_', '.'], "");
    name.strip_suffix("service")
        .filter(|rest| !rest.is_empty())
        .map_or(name.clone(), str::to_owned)
}

fn take_over(
    service: &mut ServiceDefinition,
    manifest: &ServiceDefinition,
    renamed: &BTreeMap<String, String>,
    is_recorded: bool,
) {
    service.count = manifest.count;
    service.regions = manifest.regions;
    service.container.clone_from(&manifest.container);
    service.process.clone_from(&manifest.process);
    // Recorded times already include the effect of a limit below 1, which slows even a single request.
    let least = if is_recorded { 1.0 } else { 0.0 };
    service.processors = manifest.processors.map(|limit| limit.max(least));
    service.health_check = manifest.health_check;
    service.autoscaler = manifest.autoscaler;
    for (called, policy) in &manifest.calls {
        if let Some(name) = renamed.get(called)
            && service.called().contains(name.as_str())
        {
            service.calls.insert(name.clone(), policy.clone());
        }
    }
}

/// Appends the calls of services that only the manifests have.
fn call_new(service: &mut ServiceDefinition, manifest: &ServiceDefinition, new: &BTreeSet<&str>) {
    let steps = manifest.endpoints.iter().flat_map(|one| &one.steps);
    let is_new = |step: &&StepDefinition| {
        let targets = step.targets();
        !targets.is_empty() && targets.iter().all(|to| new.contains(to))
    };
    let steps: Vec<StepDefinition> = steps.filter(is_new).cloned().collect();
    for endpoint in &mut service.endpoints {
        endpoint.steps.extend(steps.iter().cloned());
    }
    let names = steps.iter().flat_map(StepDefinition::targets);
    let names: Vec<String> = names.map(str::to_owned).collect();
    service.dependencies.get_or_insert_default().extend(names);
}

/// Creates a service that only the manifests have, with those of its calls whose targets exist.
fn add(manifest: &ServiceDefinition, renamed: &BTreeMap<String, String>) -> ServiceDefinition {
    let mut service = manifest.clone();
    let known = |to: &str| renamed.get(to).cloned();
    service.calls = std::mem::take(&mut service.calls)
        .into_iter()
        .filter_map(|(to, policy)| Some((known(&to)?, policy)))
        .collect();
    let dependencies = service.dependencies().iter().filter_map(|to| known(to));
    service.dependencies = Some(dependencies.collect());
    for endpoint in &mut service.endpoints {
        for step in &mut endpoint.steps {
            for targets in [&mut step.call, &mut step.send] {
                *targets = targets.take().and_then(|targets| rename(targets, &known));
            }
        }
        let does = |step: &StepDefinition| [&step.call, &step.send].iter().any(|to| to.is_some());
        endpoint
            .steps
            .retain(|step| step.work.is_some() || does(step));
    }
    service
}

/// Returns the targets with their names replaced by `known`; `None` if no target is known.
fn rename(targets: Targets, known: &impl Fn(&str) -> Option<String>) -> Option<Targets> {
    match targets {
        Targets::One(to) => known(&to).map(Targets::One),
        Targets::Weighted(weights) => {
            let weights = weights.into_iter();
            let weights: BTreeMap<String, f64> = weights
                .filter_map(|(to, weight)| Some((known(&to)?, weight)))
                .collect();
            (!weights.is_empty()).then_some(Targets::Weighted(weights))
        }
    }
}
