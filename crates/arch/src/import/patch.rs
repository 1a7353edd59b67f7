//! Converts a definition to patches of manifests. A patch sets the replicas, processors, health checks, retries,
//! time-outs, pools and ejection of the definition. Importing the manifests together with the patch gives the values of
//! the definition.
//!
//! The patch is checked: it is read back by the code of the import, and every value that differs is reported.

mod compose;
mod kubernetes;
#[cfg(test)]
mod tests;

use super::build::ENDPOINT;
use super::item::{Item, Log};
use super::system::{System, Workload, merge};
use super::{FORMATS, Format};
use crate::definition::{CallPolicy, Definition, ServiceDefinition};
use crate::duration_text::TimeSpan;
use crate::package::Package;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::Path;

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchFormat {
    /// Partial Deployments, VirtualServices and DestinationRules, for Kubernetes and Istio.
    Kubernetes,
    /// A docker-compose file that overrides others.
    Compose,
}

/// A patch, and the settings that the patch cannot express.
#[derive(Clone, Debug)]
pub struct ManifestPatch {
    /// The patch: a list of documents of Kubernetes, or a docker-compose file.
    pub document: Value,
    /// Sentences about settings for which the format has no field.
    pub left_out: Vec<String>,
}

impl ManifestPatch {
    /// Returns the patch as JSON, which is also valid YAML.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(&self.document).unwrap_or_default() + "\n"
    }
}

/// Makes the patch of a definition.
pub fn manifest_patch(definition: &Definition, format: PatchFormat) -> ManifestPatch {
    let services: Vec<&ServiceDefinition> = (definition.services.iter())
        .filter(|one| one.package == Package::Service.name() && one.regions > 0)
        .collect();
    let (document, reads) = match format {
        PatchFormat::Kubernetes => (kubernetes::patch(&services), kubernetes::READS),
        PatchFormat::Compose => (compose::patch(&services), compose::READS),
    };
    let mut system = read(&document);
    let mut left_out = Vec::new();
    for service in services {
        if definition.machines.contains_key(&service.machine) {
            left_out.push(format!(
                "the machine of '{}': manifests do not place services on machines",
                service.name
            ));
        }
        let read = system.workload(&service.name).clone();
        not_carried(service, &read, &mut left_out);
        for (called, policy) in &service.calls {
            let carried = policy_in(&system, called);
            let fields = differences(policy, &carried);
            if !fields.is_empty() {
                left_out.push(format!(
                    "{} of calls of '{called}' by '{}': {reads}",
                    fields.join(", "),
                    service.name
                ));
            }
        }
    }
    ManifestPatch { document, left_out }
}

/// Reads a patch as an import does.
fn read(document: &Value) -> System {
    let mut system = System::default();
    let items = document.get("items").and_then(Value::as_array);
    for document in items.map_or(std::slice::from_ref(document), Vec::as_slice) {
        let format: Option<&&dyn Format> = FORMATS.iter().find(|format| format.knows(document));
        let log = Log::default();
        // A value that the format refuses differs from the definition's.
        let _ =
            format.map(|format| format.read(Item::new(document, &log), Path::new(""), &mut system));
    }
    system
}

/// Returns the policy that a patch has for calls of a host.
fn policy_in(system: &System, host: &str) -> CallPolicy {
    let mut policy = CallPolicy::default();
    let destinations = system.destinations.iter();
    let destinations = destinations.map(|one| (&one.host, &one.policy));
    let routes = system.routes.iter().map(|one| (&one.host, &one.policy));
    for (of, one) in destinations.chain(routes) {
        if of == host {
            merge(&mut policy, one);
        }
    }
    policy
}

/// The fields of a service that need no report, because they are structure or are compared with the patch.
const HANDLED: &[&str] = &[
    "name",
    "package",
    "machine",
    "instance",
    "container",
    "process",
    "dependencies",
    "count",
    "processors",
    "health_check",
    "calls",
    "regions",
];

/// Returns the names of the settings of a service that differ in a patch.
fn not_carried(service: &ServiceDefinition, read: &Workload, left_out: &mut Vec<String>) {
    let carried = ServiceDefinition {
        count: read.count.unwrap_or(service.count),
        processors: read.limit,
        health_check: read.health,
        regions: 1,
        ..service.clone()
    };
    // The rest of a definition is structure, which manifests have already, or has no field in them.
    let plain = ServiceDefinition::new(&service.name, &service.package);
    let (plain, own) = (fields_of(&plain), fields_of(service));
    let is_own = service.endpoints.iter().any(|one| one.name != ENDPOINT);
    let mut fields: Vec<String> = (own.iter())
        .filter(|(key, value)| !HANDLED.contains(&key.as_str()) && plain.get(*key) != Some(value))
        .filter(|(key, _)| *key != "endpoints" || is_own)
        .map(|(key, _)| key.clone())
        .collect();
    fields.extend(differences(service, &carried));
    for field in fields {
        let name = &service.name;
        left_out.push(match field.as_str() {
            "autoscaler" => format!("the autoscaler of '{name}': edit the HorizontalPodAutoscaler"),
            "endpoints" => format!("the script of the endpoints of '{name}': manifests have none"),
            field => format!("{field} of '{name}': the patch has no field for this value"),
        });
    }
}

fn fields_of(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Returns the names of the fields with different values.
fn differences<T: Serialize>(wanted: &T, found: &T) -> Vec<String> {
    let (wanted, found) = (fields_of(wanted), fields_of(found));
    let keys = wanted
        .keys()
        .chain(found.keys().filter(|key| !wanted.contains_key(*key)));
    let differing = keys.filter(|key| wanted.get(*key) != found.get(*key));
    differing.cloned().collect()
}

/// Returns a time as Kubernetes, Istio and docker-compose write it.
fn time(time: TimeSpan) -> String {
    let nanos = time.0.as_nanos();
    match (nanos % 1_000_000, nanos % 1_000) {
        (0, _) => format!("{}ms", nanos / 1_000_000),
        (_, 0) => format!("{}us", nanos / 1_000),
        _ => format!("{nanos}ns"),
    }
}
