//! Manifests of Kubernetes: workloads, their routes, and their scaling.

mod routes;
mod workload;

pub(super) use workload::is_address;

use super::document::LIST;
use super::item::{Item, Mark};
use super::quantity::quantity;
use super::system::{Scaler, System, WayIn, definition_name};
use super::{Format, shortened};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) struct Kubernetes;

const PODS: &str = "spec.template.spec";
/// The kinds that have pods.
const WORKLOADS: &str = "Deployment StatefulSet DaemonSet ReplicaSet Pod";

impl Format for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn knows(&self, document: &Value) -> bool {
        let has = |key| document.get(key).is_some_and(Value::is_string);
        has("apiVersion") && has("kind")
    }

    fn title(&self, document: &Value) -> (String, String) {
        title(document)
    }

    fn read(&self, document: Item, _file: &Path, system: &mut System) -> Result<(), String> {
        let kind = document.text("kind").unwrap_or_default();
        let annotations = document.entries("metadata.annotations");
        if annotations.iter().any(|(key, _)| *key == "helm.sh/hook") {
            document.read_whole();
            let name = document.text("metadata.name").unwrap_or_default();
            let (kind, name) = (shortened(&kind), shortened(&name));
            system.left_out.push(format!(
                "{kind} '{name}' is a hook of Helm, which is not a part of the running system"
            ));
            return Ok(());
        }
        match kind.as_str() {
            "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => {
                workload::read(document, &kind, PODS, system)
            }
            "Pod" => workload::read(document, &kind, "spec", system),
            "Service" => routes::service(document, system),
            "Ingress" => routes::ingress(document, system),
            "HTTPRoute" | "GRPCRoute" => routes::route(document, system),
            "HorizontalPodAutoscaler" => autoscaler(document, system),
            "PodDisruptionBudget" => budget(document, system),
            "ConfigMap" => {
                let name = document.text("metadata.name").unwrap_or_default();
                let name = system.local(&name);
                let map = system.configuration.entry(name).or_default();
                for (key, text, mark) in document.marked_texts("data") {
                    map.insert(key, (text, mark));
                }
                Ok(())
            }
            // All of their fields are reported.
            "Gateway" | LIST => Ok(()),
            _ => {
                let name = document.text("metadata.name").unwrap_or_default();
                document.read_whole();
                if !IGNORED_KINDS.contains(&kind.as_str())
                    || KINDS_WITH_PODS.contains(&kind.as_str())
                {
                    let (kind, name) = (shortened(&kind), shortened(&name));
                    system.left_out.push(format!(
                        "{kind} '{name}' says nothing that definitions have"
                    ));
                }
                *system.kinds_left_out.entry(shortened(&kind)).or_default() += 1;
                Ok(())
            }
        }
    }
}

/// Kinds of documents that do not affect requests.
const IGNORED_KINDS: &[&str] = &[
    "ServiceAccount",
    "Secret",
    "Namespace",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "NetworkPolicy",
    "CustomResourceDefinition",
    "Kustomization",
    "Component",
    "LimitRange",
    "ResourceQuota",
    "PriorityClass",
    "IngressClass",
    "GatewayClass",
];
const KINDS_WITH_PODS: &[&str] = &["Job", "CronJob"];

/// Returns the namespace of a document; empty if it has none.
pub(super) fn namespace(document: &Value) -> &str {
    let namespace = document.pointer("/metadata/namespace");
    namespace.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the names that documents of several namespaces have. Patches, which describe nothing new, do not count.
pub(super) fn repeated_names<'a>(documents: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut repeated = BTreeSet::new();
    for document in documents {
        let has = |path: &str| document.pointer(path).is_some();
        let is_new = match document
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "Pod" | "ConfigMap" => true,
            "Service" => has("/spec"),
            kind if WORKLOADS.split(' ').any(|known| known == kind) => {
                has("/spec/template/spec/containers/0/image")
            }
            _ => false,
        };
        let name = document.pointer("/metadata/name").and_then(Value::as_str);
        if let Some(name) = name.filter(|_| is_new) {
            let namespace = namespace(document);
            if *first.entry(name).or_insert(namespace) != namespace {
                repeated.insert(name.to_owned());
            }
        }
    }
    repeated
}

/// Returns the kind and the name of a document with metadata.
pub(super) fn title(document: &Value) -> (String, String) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = document
        .get("metadata")
        .and_then(|metadata| metadata.get("name"));
    (text(document.get("kind")), text(name))
}

fn autoscaler(document: Item, system: &mut System) -> Result<(), String> {
    let name = document.text("spec.scaleTargetRef.name");
    let name =
        name.ok_or("spec.scaleTargetRef.name is missing; name the workload that is scaled")?;
    let most = document.count("spec.maxReplicas")?;
    let most = most
        .ok_or("spec.maxReplicas is missing; give the most replicas")?
        .max(1);
    let least = document
        .count("spec.minReplicas")?
        .unwrap_or(1)
        .clamp(1, most);
    let mut percent = None;
    for metric in document.list("spec.metrics") {
        if percent.is_none()
            && metric
                .text_if("resource.name", |name| name == "cpu")
                .is_some()
        {
            percent = match metric.number("resource.target.averageUtilization")? {
                None => metric.number("resource.targetAverageUtilization")?,
                percent => percent,
            };
        }
    }
    if percent.is_none() {
        percent = document.number("spec.targetCPUUtilizationPercentage")?;
    }
    let Some(percent) = percent.filter(|percent| *percent > 0.0) else {
        let name = shortened(&name);
        system.left_out.push(format!(
            "the autoscaler of '{name}' does not go by processors, so its count stays"
        ));
        return Ok(());
    };
    let calm = document.number("spec.behavior.scaleDown.stabilizationWindowSeconds")?;
    let scaler = Scaler {
        least,
        most,
        of_request: percent / 100.0,
        calm,
    };
    let name = definition_name(&system.local(&name));
    system.scalers.insert(name, scaler);
    Ok(())
}

fn budget(document: Item, system: &mut System) -> Result<(), String> {
    let labels = document.texts("spec.selector.matchLabels");
    let bound = match document.text("spec.minAvailable") {
        Some(least) => format!("keep {} available", shortened(&least)),
        None => match document.text("spec.maxUnavailable") {
            Some(most) => format!("stop at most {}", shortened(&most)),
            None => return Ok(()),
        },
    };
    let selector = system.selector(labels);
    system.budgets.push((selector, bound));
    Ok(())
}

/// Returns the entry point for a host that receives requests from outside.
pub(super) fn way_in(host: String, because: &str) -> WayIn {
    WayIn {
        host,
        because: because.to_owned(),
        is_port: false,
    }
}

/// Returns the processors in a resource such as `200m`.
fn processors(item: Item, path: &str) -> Result<Option<(f64, Mark)>, String> {
    item.marked(path, "a number of processors such as 500m or 2", quantity)
}
