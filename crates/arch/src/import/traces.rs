//! Traces combined with manifests: the learned structure, with the replicas, limits and policies of the manifests.

use super::{ImportOptions, Imported, LearnError, shortened};
use crate::definition::ServiceDefinition;
use crate::learn::learn;
use std::collections::BTreeMap;

/// Replaces the structure and times of the import by those learned from traces.
pub(super) fn learn_from(
    imported: &mut Imported,
    options: &ImportOptions,
) -> Result<(), LearnError> {
    let learned = learn(&options.traces, &options.name)?;
    let mut definition = learned.definition;
    let manifests = std::mem::take(&mut imported.definition.services);
    let mut by_key: BTreeMap<String, &ServiceDefinition> = BTreeMap::new();
    for service in &manifests {
        by_key.entry(key(&service.name)).or_insert(service);
    }
    // The names of services in traces, by those of the manifests.
    let mut renamed: BTreeMap<&str, String> = BTreeMap::new();
    for service in &definition.services {
        if let Some(manifest) = by_key.get(&key(&service.name)) {
            renamed.insert(&manifest.name, service.name.clone());
        }
    }
    let renamed: BTreeMap<String, String> = renamed
        .into_iter()
        .map(|(from, to)| (from.to_owned(), to))
        .collect();
    for service in &mut definition.services {
        if definition.load.contains_key(&service.name) {
            continue;
        }
        match by_key.get(&key(&service.name)) {
            Some(manifest) => take_over(service, manifest, &renamed),
            None => imported.left_out.push(format!(
                "'{}' is in the traces and in no manifest; it stays as it was learned",
                shortened(&service.name)
            )),
        }
    }
    for manifest in manifests.iter().filter(|one| one.regions > 0) {
        if !renamed.contains_key(&manifest.name) {
            imported
                .left_out
                .push(format!("'{}' is in no trace, and left out", manifest.name));
        }
    }
    imported.assumed.retain(|said| {
        !said.contains("--work")
            && !said.contains("--rate")
            && !said.contains("one after the other")
    });
    imported.assumed.extend(learned.remarks);
    imported.calls.clear();
    definition.arch.clone_from(&imported.definition.arch);
    imported.definition = definition;
    Ok(())
}

/// Returns a name in a form that compares equal between files.
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
) {
    service.count = manifest.count;
    service.regions = manifest.regions;
    service.container.clone_from(&manifest.container);
    service.process.clone_from(&manifest.process);
    // Recorded times are those under the limit: of a request alone, a limit below 1 has slowed them already.
    service.processors = manifest.processors.map(|limit| limit.max(1.0));
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
