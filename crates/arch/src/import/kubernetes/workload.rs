//! Workloads: Deployments, StatefulSets, DaemonSets, ReplicaSets and Pods.

use super::super::item::{Item, Log, Mark};
use super::super::system::{Backends, Configured, Mention, System, Workload, definition_name};
use super::processors;
use crate::definition::HealthCheckDefinition;
use crate::duration_text::TimeSpan;
use crate::import::document::MOST_REPLACED;
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
    let count = match kind {
        "DaemonSet" => {
            let shown = super::shortened(&name);
            system.assumed.push(format!(
                "'{shown}' runs on {NODES} nodes; a DaemonSet does not say on how many"
            ));
            Some(NODES)
        }
        "Pod" => Some(1),
        _ => document.count("spec.replicas")?,
    };
    let workload = system.workload(&name);
    workload.count = count.or(workload.count);
    kind.clone_into(&mut workload.kind);
    // A patch may say how many replicas there are, and nothing else.
    let Some(pod) = document.at(pods) else {
        return Ok(());
    };
    let labels = match kind {
        "Pod" => document.marked_texts("metadata.labels"),
        _ => document.marked_texts("spec.template.metadata.labels"),
    };
    for (key, value, mark) in labels {
        workload.label_marks.push((key.clone(), mark));
        workload.labels.insert(key, value);
    }
    for volume in pod.list("volumes") {
        let map = Configured::whole(volume, "configMap.name");
        workload.files.extend(map);
    }
    let log = system.log.clone();
    let mut replaced = system.replaced;
    containers(pod, system.workload(&name), &log, &mut replaced)?;
    system.replaced = replaced;
    if kind == "StatefulSet"
        && let Some(host) = document.text("spec.serviceName")
    {
        let own = Backends::Named(definition_name(&system.local(&name)));
        system.host(&host, own);
    }
    Ok(())
}

/// A sum over containers, with the values that it is made of; `None` if a container has no value.
struct Sum {
    value: Option<f64>,
    marks: Vec<Mark>,
}

impl Sum {
    const ZERO: Sum = Sum {
        value: Some(0.0),
        marks: Vec::new(),
    };

    fn add(&mut self, value: Option<(f64, Mark)>) {
        self.value = self.value.zip(value).map(|(sum, (one, _))| sum + one);
        self.marks.extend(value.map(|(_, mark)| mark));
    }

    fn is_positive(&self) -> bool {
        self.value.is_some_and(|value| value > 0.0)
    }
}

/// Reads the containers of a pod: together they have the limits of an instance; the largest one is its process.
fn containers(
    pod: Item,
    workload: &mut Workload,
    log: &Log,
    replaced: &mut usize,
) -> Result<(), String> {
    let (mut limits, mut requests) = (Sum::ZERO, Sum::ZERO);
    let mut largest: Option<(f64, Item)> = None;
    for container in pod.list("containers") {
        let limit = processors(container, "resources.limits.cpu")?;
        let request = processors(container, "resources.requests.cpu")?;
        let name = container.at("name").and_then(Item::peek);
        let is_sidecar = ["istio-proxy", "linkerd-proxy"]
            .map(Some)
            .contains(&name.as_deref());
        let weight = match is_sidecar {
            true => -0.5,
            false => limit.or(request).map_or(0.0, |(processors, _)| processors),
        };
        if largest.is_none_or(|(most, _)| weight > most) {
            largest = Some((weight, container));
        }
        limits.add(limit);
        requests.add(request.or(limit));
        mentions(container, workload, replaced)?;
        health(container, workload)?;
    }
    if let Some((_, container)) = largest {
        if let Some(image) = container.text("image").filter(|image| !image.is_empty()) {
            workload.image = image;
        }
        workload.container = container.text("name").unwrap_or_default();
    }
    if limits.is_positive() {
        limits.marks.iter().for_each(|mark| log.note(*mark));
        workload.limit = limits.value;
    }
    if requests.is_positive() {
        workload.scaler_marks.extend(requests.marks);
        workload.request = requests.value;
    }
    Ok(())
}

/// Reads the texts that may name other services: environment, arguments and command.
fn mentions(container: Item, workload: &mut Workload, replaced: &mut usize) -> Result<(), String> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for variable in container.list("env") {
        let Some((name_mark, name)) = peeked(variable, "name") else {
            continue;
        };
        let may_be_host = is_address(&name);
        if let Some((map_mark, map)) = peeked(variable, "valueFrom.configMapKeyRef.name") {
            let key = peeked(variable, "valueFrom.configMapKeyRef.key");
            let (key_mark, key) = key.unzip();
            workload.environment.push(Configured {
                map,
                key,
                may_be_host,
                marks: [Some(name_mark), Some(map_mark), key_mark],
            });
        }
        let Some((mark, value)) = peeked(variable, "value") else {
            continue;
        };
        let value = dereferenced(value, &known, replaced)?;
        workload.mentions.push(Mention {
            place: format!("env {}", super::shortened(&name)),
            text: value.clone(),
            may_be_host,
            marks: [Some(name_mark), Some(mark), None],
        });
        known.insert(name, value);
    }
    for source in container.list("envFrom") {
        let map = Configured::whole(source, "configMapRef.name");
        workload.environment.extend(map);
    }
    for field in ["command", "args"] {
        for item in container.list(field) {
            let Some(word) = item.peek() else {
                continue;
            };
            let is_host = word
                .split_once('=')
                .is_some_and(|(flag, _)| is_address(flag));
            workload.mentions.push(Mention {
                place: field.to_owned(),
                text: dereferenced(word, &known, replaced)?,
                may_be_host: is_host,
                marks: [Some(item.mark()), None, None],
            });
        }
    }
    Ok(())
}

/// Returns the scalar at a path and its mark.
fn peeked(item: Item, path: &str) -> Option<(Mark, String)> {
    let item = item.at(path)?;
    Some((item.mark(), item.peek()?))
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

/// Replaces `$(NAME)` in a text. Returns an error if variables refer to each other in a cycle.
fn dereferenced(
    text: String,
    known: &BTreeMap<String, String>,
    replaced: &mut usize,
) -> Result<String, String> {
    if !text.contains("$(") {
        return Ok(text);
    }
    let mut made = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("$(") {
        let (name, after) = after.split_once(')').unwrap_or((after, ""));
        let value = known.get(name).map_or("", String::as_str);
        made.push_str(before);
        made.push_str(value);
        rest = after;
        *replaced += before.len() + value.len();
        if *replaced > MOST_REPLACED {
            return Err(
                "its env refers to itself until there are more than 16 MiB of texts; shorten them"
                    .to_owned(),
            );
        }
    }
    made.push_str(rest);
    Ok(made)
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
    let delay = probe.marked("initialDelaySeconds", "0 to 86400 seconds", |text| {
        let delay = text.parse().ok();
        delay.filter(|delay| (0.0..=86_400.0).contains(delay))
    })?;
    if let Some((delay, mark)) = delay {
        workload.ready_after = Some(delay);
        workload.scaler_marks.push(mark);
    }
    workload.health = Some(HealthCheckDefinition {
        every: TimeSpan(Duration::from_secs_f64(every)),
        failures: Some(failures),
        successes: Some(successes),
    });
    Ok(())
}
