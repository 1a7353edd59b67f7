//! Sample systems in which each field of the table matters.

use super::super::super::FORMATS;
use serde_json::{Value, json};

/// Documents that are imported together.
#[derive(Clone)]
pub(super) struct System {
    pub(super) name: &'static str,
    pub(super) documents: Vec<(String, Value)>,
}

impl System {
    fn new(name: &'static str, documents: Vec<Value>) -> System {
        let documents = documents.into_iter().enumerate();
        System {
            name,
            documents: documents
                .map(|(number, document)| (format!("{name}-{number}.json"), document))
                .collect(),
        }
    }

    pub(super) fn files(&self) -> Vec<(String, String)> {
        let documents = self.documents.iter();
        documents
            .map(|(name, document)| (name.clone(), document.to_string()))
            .collect()
    }

    /// True if a document has this format and kind.
    pub(super) fn has(&self, document: usize, format: &str, kind: &str) -> bool {
        let document = &self.documents[document].1;
        let known = FORMATS.iter().find(|known| known.knows(document));
        let of_kind = kind == "all" || document["kind"] == kind;
        known.is_some_and(|known| known.name() == format) && of_kind
    }
}

/// The ends of the paths of maps whose keys are no fields.
pub(super) const FREE: &[&str] = &[
    "/labels",
    "/matchLabels",
    "/spec/selector",
    "/data",
    "/environment",
    "/services",
    "/scenarios",
    "/depends_on",
    "/consistentHash",
];

pub(super) fn all() -> Vec<System> {
    vec![kubernetes(), mesh(), envoy(), compose(), k6(), users()]
}

fn document(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Returns a Deployment that calls hosts.
fn calling(name: &str, hosts: &[&str]) -> Value {
    let env: Vec<Value> = (hosts.iter().enumerate())
        .map(|(number, host)| json!({"name": format!("N{number}_ADDR"), "value": format!("{host}:80")}))
        .collect();
    let pods = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "x:1", "env": env}]}});
    document("apps/v1", "Deployment", name, json!({"template": pods}))
}

fn service(name: &str, app: &str) -> Value {
    document("v1", "Service", name, json!({"selector": {"app": app}}))
}

/// Returns the pods of a workload, in which each field matters.
fn pods(name: &str) -> Value {
    json!({"volumes": [{"configMap": {"name": format!("{name}-files")}}], "containers": [
        {"name": "main", "image": "redis:7", "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "200m"}},
         "env": [{"name": "DB_ADDR", "value": "db:5432"},
             {"name": "USERS", "valueFrom": {"configMapKeyRef": {"name": "keys", "key": name}}}],
         "envFrom": [{"configMapRef": {"name": format!("{name}-env")}}],
         "command": ["run", "--to=search:80"], "args": ["--mail=mail:25"],
         "readinessProbe": {"periodSeconds": 7, "failureThreshold": 4, "successThreshold": 2, "initialDelaySeconds": 9}}]})
}

const KINDS: [&str; 5] = [
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Pod",
];

fn kubernetes() -> System {
    let leaves = ["db", "cache", "queue", "mail", "search", "users", "outer"];
    let mut documents: Vec<Value> = leaves.iter().map(|name| calling(name, &[])).collect();
    let mut hosts = vec!["alias", "by-http", "by-grpc", "back"];
    let names = KINDS.map(|kind| {
        (
            kind,
            kind.to_lowercase(),
            format!("svc-{}", kind.to_lowercase()),
        )
    });
    for (kind, name, host) in &names {
        // Storage calls nobody, so the image is business logic.
        let mut pods = pods(name);
        pods["containers"][0]["image"] = "shop:1".into();
        let labels = json!({"app": name});
        let workload = match *kind {
            "Pod" => {
                let mut pod = document("v1", kind, name, pods);
                pod["metadata"]["labels"] = labels;
                pod
            }
            _ => {
                let mut spec = json!({"template": {"metadata": {"labels": labels}, "spec": pods}});
                if *kind != "DaemonSet" {
                    spec["replicas"] = 2.into();
                }
                if *kind == "StatefulSet" {
                    spec["serviceName"] = "set-host".into();
                }
                document("apps/v1", kind, name, spec)
            }
        };
        documents.push(workload);
        documents.push(service(host, name));
        let config = |name: String, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        documents.push(config(
            format!("{name}-env"),
            json!({"CACHE_ADDR": "cache:6379"}),
        ));
        documents.push(config(
            format!("{name}-files"),
            json!({"app.ini": "host=queue\n"}),
        ));
        hosts.push(host);
    }
    documents.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keys"},
        "data": KINDS.map(|kind| (kind.to_lowercase(), Value::from("users:1"))).into_iter().collect::<serde_json::Map<_, _>>()}));
    documents.extend(scalers());
    documents.push(document(
        "policy/v1",
        "PodDisruptionBudget",
        "keep",
        json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "deployment"}}}),
    ));
    documents.push(document(
        "policy/v1",
        "PodDisruptionBudget",
        "stop",
        json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "pod"}}}),
    ));
    documents.push(calling("front", &hosts));
    documents.push(calling("back", &["set-host"]));
    documents.extend(ways_in());
    for (namespace, app) in [("left", "front"), ("right", "db")] {
        let mut twin = calling("twin", &["db"]);
        twin["metadata"]["namespace"] = namespace.into();
        twin["spec"]["template"]["metadata"]["labels"]["app"] = app.into();
        documents.push(twin);
    }
    System::new("kubernetes", documents)
}

fn scalers() -> Vec<Value> {
    let scaler = |name: &str, metric: Value| {
        let mut spec = json!({"scaleTargetRef": {"name": name}, "minReplicas": 1, "maxReplicas": 9,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}});
        spec.as_object_mut()
            .unwrap()
            .extend(metric.as_object().unwrap().clone());
        document("autoscaling/v2", "HorizontalPodAutoscaler", name, spec)
    };
    let metrics = |of: Value| json!({"metrics": [{"resource": of}]});
    let new = || metrics(json!({"name": "cpu", "target": {"averageUtilization": 70}}));
    vec![
        scaler("deployment", new()),
        scaler("statefulset", new()),
        scaler("pod", new()),
        scaler("daemonset", json!({"targetCPUUtilizationPercentage": 60})),
        scaler(
            "replicaset",
            metrics(json!({"name": "cpu", "targetAverageUtilization": 50})),
        ),
    ]
}

/// Returns entry points, and routes of the Gateway API.
fn ways_in() -> Vec<Value> {
    let mut entry = service("entry", "front");
    entry["spec"]["type"] = "LoadBalancer".into();
    let alias = document(
        "v1",
        "Service",
        "alias",
        json!({"type": "ExternalName", "externalName": "outer"}),
    );
    let ingress = |name: &str, spec: Value| document("networking.k8s.io/v1", "Ingress", name, spec);
    let paths = |backend: Value| json!({"rules": [{"http": {"paths": [{"backend": backend}]}}]});
    let route = |kind: &str, host: &str, to: [&str; 3]| {
        let rule = json!({"backendRefs": [{"name": to[0], "weight": 3}, {"name": to[1], "weight": 1}],
            "timeouts": {"request": "3s", "backendRequest": "1s"}, "retry": {"attempts": 2, "backoff": "20ms"},
            "filters": [{"requestMirror": {"backendRef": {"name": to[2]}, "percent": 40}}]});
        document(
            "gateway.networking.k8s.io/v1",
            kind,
            host,
            json!({"parentRefs": [{"kind": "Service", "name": host}], "rules": [rule]}),
        )
    };
    vec![
        entry,
        alias,
        ingress("a", paths(json!({"service": {"name": "svc-statefulset"}}))),
        ingress("b", paths(json!({"serviceName": "svc-daemonset"}))),
        ingress(
            "c",
            json!({"defaultBackend": {"service": {"name": "svc-replicaset"}}}),
        ),
        ingress("d", json!({"backend": {"serviceName": "svc-pod"}})),
        service("by-http", "outer"),
        service("by-grpc", "outer"),
        route("HTTPRoute", "by-http", ["db", "cache", "mail"]),
        route("GRPCRoute", "by-grpc", ["users", "search", "queue"]),
        document(
            "gateway.networking.k8s.io/v1",
            "Gateway",
            "gateway",
            json!({"gatewayClassName": "x"}),
        ),
    ]
}

fn mesh() -> System {
    let istio =
        |kind: &str, name: &str, spec: Value| document("networking.istio.io/v1", kind, name, spec);
    let mut documents = vec![calling("page", &["a", "b", "c"]), service("page", "page")];
    for name in ["a", "b", "c"] {
        for version in ["v1", "v2"] {
            let mut workload = calling(&format!("{name}-{version}"), &[]);
            workload["spec"]["template"]["metadata"]["labels"] =
                json!({"app": name, "version": version});
            documents.push(workload);
        }
        documents.push(service(name, name));
    }
    documents.push(calling("shadow", &[]));
    documents.push(calling("mirror", &[]));
    documents.push(istio(
        "VirtualService",
        "in",
        json!({"hosts": ["*"], "gateways": ["in"],
        "http": [{"route": [{"destination": {"host": "page"}}]}]}),
    ));
    documents.push(istio("VirtualService", "a", json!({"hosts": ["a"], "http": [{
        "route": [{"destination": {"host": "a", "subset": "one"}, "weight": 90}, {"destination": {"host": "b", "subset": "two"}, "weight": 10}],
        "timeout": "2s", "retries": {"attempts": 3, "perTryTimeout": "500ms", "backoff": "30ms"},
        "mirror": {"host": "c", "subset": "two"}, "mirrorPercentage": {"value": 50}}]})));
    documents.push(istio("VirtualService", "b", json!({"hosts": ["b"], "http": [{
        "mirrors": [{"destination": {"host": "a", "subset": "two"}, "percentage": {"value": 30}}]}]})));
    let subsets = json!([{"name": "one", "labels": {"version": "v1"}}, {"name": "two", "labels": {"version": "v2"}}]);
    let rule = |name: &str, balancer: Value, outliers: Value| {
        let pool = json!({"tcp": {"maxConnections": 10}, "http": {"http1MaxPendingRequests": 5, "http2MaxRequests": 20}});
        istio(
            "DestinationRule",
            name,
            json!({"host": name, "subsets": subsets, "trafficPolicy": {
            "loadBalancer": balancer, "connectionPool": pool, "outlierDetection": outliers}}),
        )
    };
    documents.push(rule(
        "a",
        json!({"simple": "ROUND_ROBIN"}),
        json!({"consecutive5xxErrors": 7, "baseEjectionTime": "15s", "maxEjectionPercent": 20}),
    ));
    documents.push(rule(
        "b",
        json!({"consistentHash": {"useSourceIp": true}}),
        json!({"consecutiveGatewayErrors": 6}),
    ));
    documents.push(rule(
        "c",
        json!({"localityLbSetting": {"enabled": true}}),
        json!({"consecutiveErrors": 8}),
    ));
    for kind in [
        "Gateway",
        "ServiceEntry",
        "Sidecar",
        "EnvoyFilter",
        "PeerAuthentication",
        "AuthorizationPolicy",
        "RequestAuthentication",
        "Telemetry",
    ] {
        documents.push(istio(kind, "x", json!({"x": 1})));
    }
    System::new("mesh", documents)
}

fn envoy() -> System {
    let cluster = |name: &str, address: &str| {
        json!({"name": name, "lb_policy": "ROUND_ROBIN",
        "load_assignment": {"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": address}}}}]}]},
        "circuit_breakers": {"thresholds": [{"max_connections": 7, "max_pending_requests": 3, "max_requests": 9,
            "retry_budget": {"budget_percent": {"value": 25}, "min_retry_concurrency": 4}}]},
        "outlier_detection": {"consecutive_5xx": 6, "base_ejection_time": "20s", "max_ejection_percent": 40}})
    };
    let routes = json!([
        {"match": {"prefix": "/"}, "route": {"cluster": "web", "timeout": "2s", "request_mirror_policies": [{"cluster": "shadow"}],
            "retry_policy": {"num_retries": 2, "per_try_timeout": "0.3s", "retry_back_off": {"base_interval": "0.02s", "max_interval": "0.3s"}}}},
        {"match": {"prefix": "/v"}, "route": {"weighted_clusters": {"clusters": [{"name": "one", "weight": 3}, {"name": "two", "weight": 1}]}}}]);
    let proxy = json!({"node": {"cluster": "edge"}, "static_resources": {
        "listeners": [{"filter_chains": [{"filters": [{"typed_config": {"route_config": {"virtual_hosts": [{"routes": routes}]}}}]}]}],
        "clusters": [cluster("web", "web-app"), cluster("shadow", "shadow-app"), cluster("one", "one-app"), cluster("two", "two-app")]}});
    let services = json!({"services": {"web-app": {"image": "x"}, "shadow-app": {"image": "x"}, "one-app": {"image": "x"}, "two-app": {"image": "x"}}});
    System::new("envoy", vec![proxy, services])
}

// What shop calls would be guessed, too, so that the fields of calls are those of user.
fn compose() -> System {
    let services = json!({
        "shop": {"image": "shop:1", "ports": ["80:80"],
            "environment": {"DB_ADDR": "db:5432", "ALSO_ADDR": "second-name:1"},
            "deploy": {"replicas": 2, "resources": {"limits": {"cpus": "0.5"}}},
            "healthcheck": {"interval": "5s", "retries": 4}},
        "user": {"build": "./user", "environment": {"LAST_ADDR": "third-name:1"}, "command": "serve --to=queue:9", "entrypoint": "run --mail=mail:25",
            "links": ["linked"], "depends_on": {"needed": {"condition": "service_started"}}, "scale": 3, "cpus": 1.5, "hostname": "second-name"},
        "cache": {"build": {"context": "./cache"}, "deploy": {"mode": "global"}, "container_name": "third-name"},
        "db": {"image": "postgres"},
        "queue": {"image": "x"},
        "mail": {"image": "x"},
        "linked": {"image": "x"},
        "needed": {"image": "x"},
        "side": {"image": "x"}});
    System::new("compose", vec![json!({"services": services})])
}

fn k6() -> System {
    let load = json!({"scenarios": {
        "open": {"executor": "constant-arrival-rate", "rate": 60, "timeUnit": "2s", "duration": "30s", "startTime": "5s"},
        "ramp": {"executor": "ramping-arrival-rate", "startRate": 3, "stages": [{"target": 100, "duration": "10s"}]},
        "people": {"executor": "constant-vus", "vus": 12},
        "growing": {"executor": "ramping-vus", "startVUs": 30, "stages": [{"target": 25}]},
        "outside": {"executor": "externally-controlled", "maxVUs": 50}},
        "thresholds": {"http_req_duration": ["p(95)<200", {"threshold": "avg<50"}], "http_req_failed": ["rate<0.01"]}});
    System::new(
        "k6",
        vec![load, json!({"services": {"web": {"image": "x"}}})],
    )
}

/// Returns options without scenarios.
fn users() -> System {
    let web = || json!({"services": {"web": {"image": "x"}}});
    let documents = vec![
        json!({"vus": 5}),
        json!({"stages": [{"target": 40}]}),
        web(),
    ];
    System::new("users", documents)
}
