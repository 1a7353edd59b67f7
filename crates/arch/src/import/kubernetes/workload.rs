//! Workloads: Deployments, StatefulSets, DaemonSets, ReplicaSets and Pods.

use super::super::item::Item;
use super::super::system::{Mention, System, Workload};
use super::{named, processors};
use crate::definition::HealthCheckDefinition;
use crate::duration_text::TimeSpan;
use std::collections::BTreeMap;
use std::time::Duration;

/// The assumed number of nodes, each of which has one replica of a DaemonSet.
const NODES: i64 = 3;

pub(super) fn read(
    document: Item,
    kind: &str,
    pods: &str,
    system: &mut System,
) -> Result<(), String> {
    let name = document.text("metadata.name");
    let name = name.ok_or("metadata.name is missing; give the workload a name")?;
    let count = document.count("spec.replicas")?;
    let labels = match pods {
        "spec" => document.texts("metadata.labels"),
        _ => document.texts("spec.template.metadata.labels"),
    };
    let Some(pod) = document.at(pods) else {
        // A patch may contain only the number of replicas.
        let workload = system.workload(&name);
        workload.count = count.or(workload.count);
        return Ok(());
    };
    if let Some(host) = document.text("spec.serviceName") {
        system.host(&host, named(&name));
    }
    if kind == "DaemonSet" {
        let shown = super::shortened(&name);
        system.assumed.push(format!(
            "'{shown}' runs on {NODES} nodes; a DaemonSet does not say on how many"
        ));
    }
    let workload = system.workload(&name);
    workload.count = match kind {
        "DaemonSet" => Some(NODES),
        "Pod" => Some(1),
        _ => count.or(workload.count),
    };
    workload.labels.extend(labels);
    containers(pod, workload)?;
    for volume in pod.list("volumes") {
        workload.files.extend(volume.text("configMap.name"));
    }
    for constraint in pod.list("topologySpreadConstraints") {
        let key = constraint.peek("topologyKey").unwrap_or_default();
        if key.ends_with("/zone") {
            constraint.text("topologyKey");
        }
    }
    Ok(())
}

/// Reads the containers of a pod: together they have the limits of an instance; the largest one is its process.
fn containers(pod: Item, workload: &mut Workload) -> Result<(), String> {
    let (mut limits, mut requests) = (Some(0.0), Some(0.0));
    let mut largest = -1.0;
    let mut any_limit = false;
    for container in pod.list("containers") {
        let limit = processors(container, "resources.limits.cpu")?;
        let request = processors(container, "resources.requests.cpu")?;
        let name = container.text("name").unwrap_or_default();
        let image = container.text("image").unwrap_or_default();
        let is_sidecar = ["istio-proxy", "linkerd-proxy"].contains(&name.as_str());
        let weight = match is_sidecar {
            true => -0.5,
            false => limit.or(request).unwrap_or(0.0),
        };
        if weight > largest {
            largest = weight;
            if !image.is_empty() {
                workload.image = image;
            }
            workload.container = name;
        }
        any_limit |= limit.is_some() || request.is_some();
        limits = limits.zip(limit).map(|(sum, one)| sum + one);
        requests = requests.zip(request.or(limit)).map(|(sum, one)| sum + one);
        mentions(container, workload);
        health(container, workload)?;
    }
    if any_limit {
        workload.limit = limits.filter(|limit| *limit > 0.0).or(workload.limit);
        workload.request = requests.filter(|sum| *sum > 0.0).or(workload.request);
    }
    Ok(())
}

/// Reads the texts that may name other services: environment, arguments and command.
fn mentions(container: Item, workload: &mut Workload) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for variable in container.list("env") {
        let Some(name) = variable.text("name") else {
            continue;
        };
        if let Some(map) = variable.text("valueFrom.configMapKeyRef.name") {
            variable.text("valueFrom.configMapKeyRef.key");
            workload.environment.push(map);
        }
        let Some(value) = variable.text("value") else {
            continue;
        };
        let value = dereferenced(&value, &known);
        workload.mentions.push(Mention {
            place: format!("env {}", super::shortened(&name)),
            text: value.clone(),
            may_be_host: is_address(&name),
        });
        known.insert(name, value);
    }
    for source in container.list("envFrom") {
        workload
            .environment
            .extend(source.text("configMapRef.name"));
    }
    for field in ["command", "args"] {
        let words: Vec<String> = container
            .list(field)
            .into_iter()
            .filter_map(Item::scalar)
            .collect();
        for word in words {
            let is_host = word
                .split_once('=')
                .is_some_and(|(flag, _)| is_address(flag));
            workload.mentions.push(Mention {
                place: field.to_owned(),
                text: dereferenced(&word, &known),
                may_be_host: is_host,
            });
        }
    }
}

/// True if the name of a variable or flag suggests that its value is an address.
pub(in crate::import) fn is_address(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let endings = [
        "HOST",
        "ADDR",
        "ADDRESS",
        "URL",
        "URI",
        "ENDPOINT",
        "SERVER",
        "SERVERS",
        "SERVICE",
        "TARGET",
        "BACKEND",
        "UPSTREAM",
        "BROKER",
        "BROKERS",
        "HOSTNAME",
        "CONNECTION_STRING",
        "DSN",
        "PEERS",
    ];
    let is_own = ["HOST_NAME", "SERVICE_NAME", "OTEL_SERVICE"]
        .iter()
        .any(|own| name.contains(own));
    !is_own && endings.iter().any(|ending| name.ends_with(ending))
}

/// Returns a text in which each `$(NAME)` is replaced by the value of the variable.
fn dereferenced(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$(") {
        made.push_str(before);
        let (name, after) = after.split_once(')').unwrap_or((after, ""));
        made.push_str(known.get(name).map_or("", String::as_str));
        rest = after;
        // Variables that refer to each other could make the text very long.
        if made.len() > 64 << 10 {
            return made;
        }
    }
    made.push_str(rest);
    made
}

/// Reads a readiness probe: replicas that do not answer it get no requests.
fn health(container: Item, workload: &mut Workload) -> Result<(), String> {
    let Some(probe) = container
        .at("readinessProbe")
        .filter(|probe| probe.is_map())
    else {
        return Ok(());
    };
    let every = probe
        .number("periodSeconds")?
        .unwrap_or(10.0)
        .clamp(1.0, 3600.0);
    let failures = probe.count("failureThreshold")?.unwrap_or(3).clamp(1, 1000);
    let successes = probe.count("successThreshold")?.unwrap_or(1).clamp(1, 1000);
    let delay = probe.number("initialDelaySeconds")?;
    workload.ready_after = delay.filter(|delay| (0.0..86_400.0).contains(delay));
    workload.health = Some(HealthCheckDefinition {
        every: TimeSpan(Duration::from_secs_f64(every)),
        failures: Some(failures),
        successes: Some(successes),
    });
    Ok(())
}
