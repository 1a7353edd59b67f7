//! The table of fields of Kubernetes.

use crate::import::fields::{Field, ignored, used};

/// The kinds that have pods.
pub(super) const WORKLOADS: &str = "Deployment StatefulSet DaemonSet ReplicaSet Pod";
/// The kinds that have a template of pods.
const TEMPLATES: &str = "Deployment StatefulSet DaemonSet ReplicaSet";

pub(super) const FIELDS: &[Field] = &[
    ignored("*", "apiVersion", "all versions are read alike"),
    ignored(
        "*",
        "metadata",
        "only names, namespaces and labels are used",
    ),
    used(
        "*",
        "metadata.namespace",
        "which names and labels are meant, and a part of names that several namespaces have",
    ),
    ignored("*", "status", "it is what a cluster reports"),
    used("*", "kind", "which fields are read"),
    used("*", "metadata.name", "the service's name"),
    used(
        "Deployment StatefulSet ReplicaSet",
        "spec.replicas",
        "count; 1 if it is missing",
    ),
    used(
        TEMPLATES,
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
        "with an autoscaler: its target, and processors if there is no limit",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.env.valueFrom.configMapKeyRef",
        "calls of the hosts that the value names",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.env.valueFrom",
        "only values of ConfigMaps are read",
    ),
    ignored(
        WORKLOADS,
        "spec.template.spec.containers.resources",
        "only processors are simulated",
    ),
    used(
        WORKLOADS,
        "spec.template.spec.containers.env",
        "calls of the hosts that values name",
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
        "autoscaler.delay, if there is an autoscaler",
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
    ignored(
        WORKLOADS,
        "spec.template.spec.topologySpreadConstraints",
        "instances are spread evenly over three zones",
    ),
    ignored(TEMPLATES, "spec.template.metadata", "only labels are used"),
    ignored(
        TEMPLATES,
        "spec.selector",
        "the labels of the template are used",
    ),
    ignored(
        TEMPLATES,
        "spec.strategy",
        "replicas are replaced only by faults; give a restart",
    ),
    ignored(
        TEMPLATES,
        "spec.updateStrategy",
        "replicas are replaced only by faults; give a restart",
    ),
    ignored(
        TEMPLATES,
        "spec.revisionHistoryLimit",
        "there is one revision",
    ),
    ignored(
        TEMPLATES,
        "spec.volumeClaimTemplates",
        "disks are not simulated",
    ),
    used(
        "StatefulSet",
        "spec.serviceName",
        "another name of the host",
    ),
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
        "of a Service: the host that is routed",
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
        "spec.scaleTargetRef",
        "workloads have different names",
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
        "a note: the services that it names",
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
