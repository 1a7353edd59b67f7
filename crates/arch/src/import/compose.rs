//! docker-compose files: services, their limits, and the services that they name.

use super::document::{interpolate, variables};
use super::fields::{Field, ignored, used};
use super::item::Item;
use super::kubernetes::is_address;
use super::quantity::{duration, quantity};
use super::system::{Backends, Link, Mention, System, WayIn, definition_name};
use super::{Format, shortened};
use crate::definition::HealthCheckDefinition;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) struct Compose;

const FIELDS: &[Field] = &[
    ignored("*", "version", "all versions are read alike"),
    ignored("*", "name", "--name gives the architecture its name"),
    ignored("*", "networks", "all services reach each other"),
    ignored("*", "volumes", "disks are not simulated"),
    ignored("*", "secrets", "files are not simulated"),
    ignored("*", "configs", "files are not simulated"),
    used(
        "*",
        "services.*.image",
        "container; what kind of service it is",
    ),
    used("*", "services.*.build", "container, without an image"),
    used("*", "services.*.hostname", "another name of the host"),
    used("*", "services.*.container_name", "another name of the host"),
    used(
        "*",
        "services.*.deploy.replicas",
        "count; 1 if it is missing",
    ),
    used("*", "services.*.scale", "count"),
    used("*", "services.*.deploy.resources.limits.cpus", "processors"),
    used("*", "services.*.cpus", "processors"),
    used(
        "*",
        "services.*.deploy.resources.reservations.cpus",
        "processors, without a limit",
    ),
    ignored(
        "*",
        "services.*.deploy.resources",
        "only processors are simulated",
    ),
    used(
        "*",
        "services.*.deploy.mode",
        "global: three replicas, as on three nodes",
    ),
    ignored(
        "*",
        "services.*.deploy",
        "replicas are replaced only by faults; give a restart",
    ),
    ignored("*", "services.*.mem_limit", "only processors are simulated"),
    used(
        "*",
        "services.*.environment",
        "calls of the hosts that values name",
    ),
    used(
        "*",
        "services.*.command",
        "calls of the hosts that it names",
    ),
    used(
        "*",
        "services.*.entrypoint",
        "calls of the hosts that it names",
    ),
    used("*", "services.*.links", "calls"),
    used("*", "services.*.depends_on", "calls"),
    used(
        "*",
        "services.*.ports",
        "a port of the host is an entry point",
    ),
    used("*", "services.*.healthcheck.interval", "health_check.every"),
    used(
        "*",
        "services.*.healthcheck.retries",
        "health_check.failures",
    ),
    ignored(
        "*",
        "services.*.healthcheck",
        "a health check has no content",
    ),
    ignored(
        "*",
        "services.*.env_file",
        "only values in the file are read, and those of .env beside it",
    ),
    ignored("*", "services.*.volumes", "disks are not simulated"),
    ignored("*", "services.*.restart", "containers are not restarted"),
    ignored("*", "services.*.networks", "all services reach each other"),
    ignored("*", "services.*.logging", "logs are not simulated"),
    ignored("*", "services.*.expose", "services have one address"),
    ignored(
        "*",
        "services.*.profiles",
        "services of all profiles are read",
    ),
    ignored("*", "services.*", "it does not change requests"),
];

impl Format for Compose {
    fn name(&self) -> &'static str {
        "compose"
    }

    fn knows(&self, document: &Value) -> bool {
        // A file that another extends may have services with few fields, so all must be maps.
        let services = document.get("services").and_then(Value::as_object);
        document.get("apiVersion").is_none()
            && document.get("arch").is_none()
            && services.is_some_and(|services| {
                services
                    .values()
                    .all(|one| one.is_object() || one.is_null())
            })
    }

    fn fields(&self) -> &'static [Field] {
        FIELDS
    }

    fn title(&self, _document: &Value) -> (String, String) {
        ("file".to_owned(), "services".to_owned())
    }

    fn prepare(&self, document: Value, file: &Path) -> Value {
        let variables = variables(file);
        with_variables(document, &variables)
    }

    fn read(&self, document: Item, _file: &Path, system: &mut System) -> Result<(), String> {
        for (key, service) in document.entries("services") {
            let read = read_service(key, service, system);
            read.map_err(|what| format!("service '{}': {what}", shortened(key)))?;
        }
        Ok(())
    }
}

/// Replaces variables in the texts of a document, including environment variables that are named without a value.
fn with_variables(value: Value, variables: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(interpolate(&text, variables)),
        Value::Array(list) => {
            let list = list.into_iter();
            list.map(|value| with_variables(value, variables)).collect()
        }
        Value::Object(map) => {
            let map = map.into_iter().map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    ("environment", Value::Array(list)) => {
                        list.into_iter().map(|one| given(one, variables)).collect()
                    }
                    (_, value) => value,
                };
                (key, with_variables(value, variables))
            });
            Value::Object(map.collect())
        }
        other => other,
    }
}

/// Gives a variable that is named without a value the value from `.env`.
fn given(entry: Value, variables: &BTreeMap<String, String>) -> Value {
    match entry.as_str() {
        Some(name) if !name.contains('=') => match variables.get(name) {
            Some(value) => Value::String(format!("{name}={value}")),
            None => entry,
        },
        _ => entry,
    }
}

fn read_service(key: &str, service: Item, system: &mut System) -> Result<(), String> {
    let name = definition_name(key);
    let mut hosts = vec![key.to_owned()];
    hosts.extend(service.text("hostname"));
    hosts.extend(service.text("container_name"));
    for host in hosts {
        system.host(&host, Backends::Named(name.clone()));
    }
    let image = service.text("image");
    let build = service.at("build");
    if image.is_none()
        && let Some(build) = build
    {
        let context = build.scalar().or_else(|| build.text("context"));
        system.workload(&name).image = context.unwrap_or_default();
    }
    let published = service
        .list("ports")
        .into_iter()
        .filter(|port| is_published(*port))
        .count();
    if published > 0 {
        system.ways_in.push(WayIn {
            host: key.to_owned(),
            because: "ports of the host".to_owned(),
            is_port: true,
        });
    }
    let workload = system.workload(&name);
    if let Some(image) = image {
        workload.image = image;
    }
    let replicas = service.count("deploy.replicas")?;
    let scale = service.count("scale")?;
    workload.count = replicas.or(scale).or(workload.count);
    if service.text("deploy.mode").as_deref() == Some("global") {
        workload.count = Some(3);
    }
    let cpus = |path| service.parsed(path, "a number of processors such as 0.5", quantity);
    let limit = cpus("deploy.resources.limits.cpus")?.or(cpus("cpus")?);
    workload.limit = limit.filter(|limit| *limit > 0.0).or(workload.limit);
    let request = cpus("deploy.resources.reservations.cpus")?;
    workload.request = request
        .filter(|request| *request > 0.0)
        .or(workload.request);
    for (field, place) in [("links", "links"), ("depends_on", "depends_on")] {
        for host in names(service, field) {
            // A link may have an alias behind a colon.
            let host = host.split(':').next().unwrap_or_default().to_owned();
            workload.links.push(Link { host, place });
        }
    }
    for (place, text, may_be_host) in mentions(service) {
        workload.mentions.push(Mention {
            place,
            text,
            may_be_host,
        });
    }
    if let Some(check) = service.at("healthcheck").filter(|check| check.is_map()) {
        let every = check.parsed("interval", "a duration such as 30s", duration)?;
        let failures = check.count("retries")?;
        if let Some(every) = every.filter(|every| !every.0.is_zero()) {
            workload.health = Some(HealthCheckDefinition {
                every,
                failures: failures.map(|failures| failures.clamp(1, 1000)),
                successes: None,
            });
        }
    }
    Ok(())
}

/// Returns the strings of a list, or the keys of a map.
fn names(service: Item, field: &str) -> Vec<String> {
    let members = service.entries(field);
    if members.is_empty() {
        return service
            .list(field)
            .into_iter()
            .filter_map(Item::scalar)
            .collect();
    }
    let names = members.into_iter().map(|(key, condition)| {
        condition.read_whole();
        key.to_owned()
    });
    names.collect()
}

/// Returns the texts of a service that may name others.
fn mentions(service: Item) -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    let mut variable = |name: &str, value: String| {
        found.push((
            format!("environment {}", shortened(name)),
            value,
            is_address(name),
        ));
    };
    for (name, value) in service.entries("environment") {
        variable(name, value.scalar().unwrap_or_default());
    }
    if service
        .at("environment")
        .is_some_and(|environment| !environment.is_map())
    {
        for entry in service.list("environment") {
            let text = entry.scalar().unwrap_or_default();
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            variable(name, value.to_owned());
        }
    }
    for field in ["command", "entrypoint"] {
        for word in service.list(field).into_iter().filter_map(Item::scalar) {
            for word in word.split_whitespace().take(1000) {
                let is_host = word
                    .split_once('=')
                    .is_some_and(|(flag, _)| is_address(flag));
                found.push((field.to_owned(), word.to_owned(), is_host));
            }
        }
    }
    found
}

/// True if an entry of `ports` publishes a port of the host: true for `8080:80`, false for `80` and `127.0.0.1::80`.
fn is_published(port: Item) -> bool {
    match port.scalar() {
        Some(text) => {
            let mut parts = text.rsplit(':').skip(1);
            parts.next().is_some_and(|host| !host.is_empty())
        }
        None => {
            let published = port.at("published").is_some();
            port.read_whole();
            published
        }
    }
}
