//! Partial Deployments, VirtualServices and DestinationRules.

use super::time;
use crate::definition::{Balance, CallPolicy, ServiceDefinition};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The reason why a policy is different in a patch.
pub(super) const READS: &str =
    "manifests have no field for this value, or have one policy for all callers";

const ISTIO: &str = "networking.istio.io/v1";

pub(super) fn patch(services: &[&ServiceDefinition]) -> Value {
    let mut documents: Vec<Value> = services.iter().map(|service| workload(service)).collect();
    // A host has one policy for all of its callers: that of the first.
    let mut by_host: BTreeMap<&str, &CallPolicy> = BTreeMap::new();
    for (called, policy) in services.iter().flat_map(|service| &service.calls) {
        by_host.entry(called).or_insert(policy);
    }
    for (host, policy) in by_host.into_iter().filter(|(host, _)| *host != "*") {
        let http = route(policy);
        if !http.is_empty() {
            let spec = json!({"hosts": [host], "http": [http]});
            documents.push(document(ISTIO, "VirtualService", host, spec));
        }
        let traffic = traffic_policy(policy);
        if !traffic.is_empty() {
            let spec = json!({"host": host, "trafficPolicy": traffic});
            documents.push(document(ISTIO, "DestinationRule", host, spec));
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": documents})
}

fn document(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn workload(service: &ServiceDefinition) -> Value {
    let mut container = Map::new();
    if let Some(processors) = service.processors {
        let cpu = format!("{}m", (processors * 1000.0).round());
        container.insert("resources".to_owned(), json!({"limits": {"cpu": cpu}}));
    }
    if let Some(check) = service.health_check {
        let mut probe = json!({"periodSeconds": check.every.0.as_secs().max(1)});
        probe["failureThreshold"] = check.failures.unwrap_or(3).into();
        probe["successThreshold"] = check.successes.unwrap_or(1).into();
        container.insert("readinessProbe".to_owned(), probe);
    }
    let mut pods = Map::new();
    if !container.is_empty() {
        let name = match service.process.is_empty() {
            true => &service.name,
            false => &service.process,
        };
        container.insert("name".to_owned(), name.as_str().into());
        pods.insert("containers".to_owned(), json!([container]));
    }
    // The kind is that of the manifest that was imported.
    let kind = match service.instance.as_str() {
        "Pod" => return document("v1", "Pod", &service.name, pods.into()),
        kind @ ("StatefulSet" | "DaemonSet" | "ReplicaSet") => kind,
        _ => "Deployment",
    };
    let mut spec = json!({"replicas": service.count});
    if !pods.is_empty() {
        spec["template"] = json!({"spec": pods});
    }
    document("apps/v1", kind, &service.name, spec)
}

/// Returns the retries and time-outs of calls.
fn route(policy: &CallPolicy) -> Map<String, Value> {
    let mut http = Map::new();
    let Some(retries) = policy.retries else {
        let whole = policy.timeout.into_iter().chain(policy.deadline);
        let whole = whole.min_by_key(|time| time.0);
        http.extend(whole.map(|whole| ("timeout".to_owned(), time(whole).into())));
        return http;
    };
    let mut of = Map::from_iter([("attempts".to_owned(), json!(retries.most))]);
    let times = [
        ("perTryTimeout", policy.timeout),
        ("backoff", retries.backoff),
    ];
    for (field, value) in times {
        of.extend(value.map(|value| (field.to_owned(), time(value).into())));
    }
    http.insert("retries".to_owned(), of.into());
    let deadline = policy.deadline;
    http.extend(deadline.map(|deadline| ("timeout".to_owned(), time(deadline).into())));
    http
}

/// Returns connection pools, outlier ejection and load balancing of calls.
fn traffic_policy(policy: &CallPolicy) -> Map<String, Value> {
    let mut traffic = Map::new();
    let mut pool = Map::new();
    let mut http = Map::new();
    if let Some(connections) = policy.connections {
        pool.insert(
            "tcp".to_owned(),
            json!({"maxConnections": connections.most}),
        );
        let waiting = connections.waiting;
        http.extend(waiting.map(|most| ("http1MaxPendingRequests".to_owned(), json!(most))));
    }
    let bulkhead = policy.bulkhead;
    http.extend(bulkhead.map(|most| ("http2MaxRequests".to_owned(), json!(most))));
    if !http.is_empty() {
        pool.insert("http".to_owned(), http.into());
    }
    if !pool.is_empty() {
        traffic.insert("connectionPool".to_owned(), pool.into());
    }
    if let Some(ejection) = policy.ejection {
        let mut of = json!({
            "consecutive5xxErrors": ejection.failures,
            "baseEjectionTime": time(ejection.lasting)
        });
        if let Some(most) = ejection.most {
            of["maxEjectionPercent"] = json!((most * 100.0).round());
        }
        traffic.insert("outlierDetection".to_owned(), of);
    }
    let balancer = policy.balance.map(|balance| match balance {
        Balance::Random => json!({"simple": "RANDOM"}),
        Balance::RoundRobin => json!({"simple": "ROUND_ROBIN"}),
        Balance::TwoChoices | Balance::LeastRequests => json!({"simple": "LEAST_REQUEST"}),
        Balance::Hash => json!({"consistentHash": {"useSourceIp": true}}),
        Balance::Zone => json!({"localityLbSetting": {"enabled": true}}),
    });
    traffic.extend(balancer.map(|balancer| ("loadBalancer".to_owned(), balancer)));
    traffic
}
