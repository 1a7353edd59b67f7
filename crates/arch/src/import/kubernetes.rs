//! Manifests of Kubernetes: workloads, their routes, and their scaling.

mod routes;
mod workload;

pub(super) use workload::is_address;

use super::fields::{Field, ignored, used};
use super::item::Item;
use super::quantity::quantity;
use super::system::{Backends, Scaler, System, WayIn, definition_name};
use super::{Format, shortened};
use serde_json::Value;
use std::path::Path;

pub(super) struct Kubernetes;

const WORKLOADS: &str = "Deployment StatefulSet DaemonSet ReplicaSet Pod";
const PODS: &str = "spec.template.spec";

const FIELDS: &[Field] = &[
    ignored("*", "apiVersion", "all versions are read alike"),
    ignored(
        "*",
        "metadata",
        "only names and labels are used; names are unique in all namespaces",
    ),
    ignored("*", "status", "it is what a cluster reports"),
    used("*", "kind", "which fields are read"),
    used("*", "metadata.name", "the service's name"),
    used(WORKLOADS, "spec.replicas", "count; 1 if it is missing"),
    used(
        WORKLOADS,
        "spec.template.metadata.labels",
        "which Services, subsets and budgets mean it",
    ),
    used(
        "Pod",
        "metadata.labels",
        "which Services, subsets and budgets mean it",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.name",
        "process, of the container with the most processors",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.image",
        "container; what kind of service it is",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.resources.limits.cpu",
        "processors, the sum of all containers",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.resources.requests.cpu",
        "the target of an autoscaler; processors if it has no limit",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.resources",
        "only processors are simulated",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.env",
        "calls of the hosts that values name, also of a ConfigMap",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.envFrom.configMapRef.name",
        "calls of the hosts that values name",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.args",
        "calls of the hosts that they name",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.command",
        "calls of the hosts that it names",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.volumes.configMap.name",
        "calls of the hosts that its files name",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.readinessProbe.periodSeconds",
        "health_check.every",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.readinessProbe.failureThreshold",
        "health_check.failures",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.readinessProbe.successThreshold",
        "health_check.successes",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.readinessProbe.initialDelaySeconds",
        "autoscaler.delay",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.readinessProbe",
        "a health check has no content",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.livenessProbe",
        "containers are not restarted",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.startupProbe",
        "containers start at once",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.ports",
        "services have one address",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.securityContext",
        "permissions are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.volumeMounts",
        "disks are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.lifecycle",
        "hooks are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.imagePullPolicy",
        "images are not pulled",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.initContainers",
        "they end before requests come",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.volumes",
        "disks are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.securityContext",
        "permissions are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.serviceAccountName",
        "permissions are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.serviceAccount",
        "permissions are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.affinity",
        "instances are spread evenly over three zones",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.nodeSelector",
        "nodes are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.tolerations",
        "nodes are not simulated",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.terminationGracePeriodSeconds",
        "instances end only by faults; give a restart a drain",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.restartPolicy",
        "containers are not restarted",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.topologySpreadConstraints.topologyKey",
        "a zone: the spread that definitions have",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.topologySpreadConstraints",
        "instances are spread evenly over three zones",
    ),
    ignored(WORKLOADS, "spec.template.metadata", "only labels are used"),
    ignored(
        WORKLOADS,
        "spec.selector",
        "the labels of the template are used",
    ),
    ignored(
        WORKLOADS,
        "spec.strategy",
        "replicas are replaced only by faults; give a restart",
    ),
    ignored(
        WORKLOADS,
        "spec.updateStrategy",
        "replicas are replaced only by faults; give a restart",
    ),
    ignored(
        WORKLOADS,
        "spec.revisionHistoryLimit",
        "there is one revision",
    ),
    ignored(
        WORKLOADS,
        "spec.volumeClaimTemplates",
        "disks are not simulated",
    ),
    used(WORKLOADS, "spec.serviceName", "another name of the host"),
    used("Service", "spec.selector", "who answers at the host"),
    used(
        "Service",
        "spec.type",
        "LoadBalancer and NodePort are entry points",
    ),
    used(
        "Service",
        "spec.externalName",
        "a host outside, which is not simulated",
    ),
    ignored("Service", "spec.ports", "services have one address"),
    ignored("Service", "spec.clusterIP", "services have one address"),
    ignored(
        "Service",
        "spec.sessionAffinity",
        "requests are balanced as DestinationRules say",
    ),
    used(
        "Ingress",
        "spec.rules.http.paths.backend.service.name",
        "an entry point",
    ),
    used(
        "Ingress",
        "spec.rules.http.paths.backend.serviceName",
        "an entry point",
    ),
    used(
        "Ingress",
        "spec.defaultBackend.service.name",
        "an entry point",
    ),
    used("Ingress", "spec.backend.serviceName", "an entry point"),
    ignored(
        "Ingress",
        "spec.rules",
        "requests have no path; backends get equal shares",
    ),
    ignored("Ingress", "spec.tls", "encryption is not simulated"),
    ignored(
        "Ingress",
        "spec.ingressClassName",
        "all controllers are alike",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.parentRefs.kind",
        "a Gateway is an entry point, a Service a host",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.parentRefs.name",
        "the host that is routed",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.backendRefs.name",
        "an entry point, or weighted targets of calls",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.backendRefs.weight",
        "the weight of a target",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.timeouts.request",
        "deadline, or timeout without retries",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.timeouts.backendRequest",
        "timeout",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.retry.attempts",
        "retries.most",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.retry.backoff",
        "retries.backoff",
    ),
    ignored(
        "HTTPRoute GRPCRoute",
        "spec.rules.retry.codes",
        "every failure is retried",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.filters.requestMirror.backendRef.name",
        "a send to the mirror",
    ),
    used(
        "HTTPRoute GRPCRoute",
        "spec.rules.filters.requestMirror.percent",
        "how likely it is",
    ),
    ignored(
        "HTTPRoute GRPCRoute",
        "spec.rules.filters",
        "requests have no headers and paths",
    ),
    ignored(
        "HTTPRoute GRPCRoute",
        "spec.rules.matches",
        "requests have no headers and paths; the rule that matches everything is used",
    ),
    ignored(
        "HTTPRoute GRPCRoute",
        "spec.hostnames",
        "entry points have one address",
    ),
    ignored("Gateway", "spec", "routes say where requests come in"),
    used(
        "HorizontalPodAutoscaler",
        "spec.scaleTargetRef.name",
        "the service that has the autoscaler",
    ),
    used(
        "HorizontalPodAutoscaler",
        "spec.minReplicas",
        "autoscaler.least, and the count in the beginning",
    ),
    used(
        "HorizontalPodAutoscaler",
        "spec.maxReplicas",
        "autoscaler.most",
    ),
    used(
        "HorizontalPodAutoscaler",
        "spec.targetCPUUtilizationPercentage",
        "autoscaler.target, of requests",
    ),
    used(
        "HorizontalPodAutoscaler",
        "spec.metrics.resource.name",
        "cpu: autoscaler.target",
    ),
    used(
        "HorizontalPodAutoscaler",
        "spec.metrics.resource.target.averageUtilization",
        "autoscaler.target, of requests",
    ),
    used(
        "HorizontalPodAutoscaler",
        "spec.metrics.resource.targetAverageUtilization",
        "autoscaler.target, of requests",
    ),
    used(
        "HorizontalPodAutoscaler",
        "spec.behavior.scaleDown.stabilizationWindowSeconds",
        "autoscaler.calm",
    ),
    ignored(
        "HorizontalPodAutoscaler",
        "spec.metrics",
        "autoscalers go by processors alone",
    ),
    ignored(
        "HorizontalPodAutoscaler",
        "spec.behavior",
        "autoscalers add and remove as many as are needed",
    ),
    used(
        "PodDisruptionBudget",
        "spec.selector.matchLabels",
        "the services that the note names",
    ),
    used(
        "PodDisruptionBudget",
        "spec.minAvailable",
        "a note: restarts in the definition should leave at least this number of instances",
    ),
    used(
        "PodDisruptionBudget",
        "spec.maxUnavailable",
        "a note: restarts in the definition should stop no more",
    ),
    used(
        "ConfigMap",
        "data",
        "environment and files of the workloads that name it",
    ),
    ignored("ConfigMap", "binaryData", "it is not text"),
];

impl Format for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn knows(&self, document: &Value) -> bool {
        let has = |key| document.get(key).is_some_and(Value::is_string);
        has("apiVersion") && has("kind")
    }

    fn fields(&self) -> &'static [Field] {
        FIELDS
    }

    fn title(&self, document: &Value) -> (String, String) {
        title(document)
    }

    fn read(&self, document: Item, _file: &Path, system: &mut System) -> Result<(), String> {
        let kind = document.text("kind").unwrap_or_default();
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
                let data = document.texts("data");
                system.configuration.entry(name).or_default().extend(data);
                Ok(())
            }
            "Gateway" => Ok(()),
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
    let mut percent = document.number("spec.targetCPUUtilizationPercentage")?;
    for metric in document.list("spec.metrics") {
        if metric.text("resource.name").as_deref() == Some("cpu") {
            let new = metric.number("resource.target.averageUtilization")?;
            let old = metric.number("resource.targetAverageUtilization")?;
            percent = new.or(old).or(percent);
        }
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
    system.scalers.insert(definition_name(&name), scaler);
    Ok(())
}

fn budget(document: Item, system: &mut System) -> Result<(), String> {
    let labels = document.texts("spec.selector.matchLabels");
    let bound = match (
        document.text("spec.minAvailable"),
        document.text("spec.maxUnavailable"),
    ) {
        (Some(least), _) => format!("keep {} available", shortened(&least)),
        (None, Some(most)) => format!("stop at most {}", shortened(&most)),
        (None, None) => return Ok(()),
    };
    system.budgets.push((labels, bound));
    Ok(())
}

/// Returns an entry point at a host that is meant for requests from outside.
fn way_in(host: String, because: &str) -> WayIn {
    WayIn {
        host,
        because: because.to_owned(),
        is_port: false,
    }
}

/// Returns the backends of a host that is reached by its own name.
fn named(name: &str) -> Backends {
    Backends::Named(definition_name(name))
}

/// Returns the processors in a resource such as `200m`.
fn processors(item: Item, path: &str) -> Result<Option<f64>, String> {
    item.parsed(path, "a number of processors such as 500m or 2", quantity)
}
