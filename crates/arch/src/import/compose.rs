//! docker-compose files: services, their limits, and the services that they name.

#[cfg(feature = "compose")]
pub(super) mod architecture;

use super::document::{Variables, variables};
use super::item::Item;
use super::kubernetes::is_address;
use super::quantity::{duration, quantity};
use super::system::{Backends, Link, Mention, System, WayIn, definition_name};
use super::{Format, shortened};
use crate::definition::HealthCheckDefinition;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

pub(super) struct Compose;

/// The limits of the time between two health checks.
const LEAST_CHECK: Duration = Duration::from_millis(1);
const MOST_CHECK: Duration = Duration::from_secs(3600);
/// The assumed number of nodes, each of which has one replica of a global service.
const NODES: i64 = 3;

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

    fn title(&self, _document: &Value) -> (String, String) {
        ("file".to_owned(), "services".to_owned())
    }

    fn prepare(&self, document: Value, file: &Path) -> Result<Value, &'static str> {
        with_variables(document, &mut variables(file))
    }

    fn read(&self, document: Item, _file: &Path, system: &mut System) -> Result<(), String> {
        for (key, service) in document.entries("services") {
            let read = add_service(key, service, system);
            read.map_err(|what| format!("service '{}': {what}", shortened(key)))?;
        }
        Ok(())
    }
}

/// Replaces variables in the texts of a document, including environment variables that are named without a value.
fn with_variables(value: Value, variables: &mut Variables) -> Result<Value, &'static str> {
    Ok(match value {
        Value::String(text) => Value::String(variables.interpolate(text)?),
        Value::Array(list) => {
            let list = list.into_iter();
            let list = list.map(|value| with_variables(value, variables));
            Value::Array(list.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let map = map.into_iter().map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    ("environment", Value::Array(list)) => {
                        list.into_iter().map(|one| given(one, variables)).collect()
                    }
                    (_, value) => value,
                };
                Ok::<_, &'static str>((key, with_variables(value, variables)?))
            });
            Value::Object(map.collect::<Result<_, _>>()?)
        }
        other => other,
    })
}

/// Gives a variable that is named without a value the value from `.env`.
fn given(entry: Value, variables: &Variables) -> Value {
    match entry.as_str() {
        Some(name) if !name.contains('=') => match variables.get(name) {
            Some(_) => Value::String(format!("{name}=${{{name}}}")),
            None => entry,
        },
        _ => entry,
    }
}

/// The fields of a service that the import and [`compose`](architecture::compose) read alike.
struct ComposeService {
    image: Option<String>,
    /// The directory that the image is built from.
    build: Option<String>,
    count: Option<i64>,
    links: Vec<Link>,
    /// True if the service can be reached through a port of the host.
    is_published: bool,
}

fn read_service(service: Item) -> Result<ComposeService, String> {
    let image = service.text("image");
    let build = match &image {
        None => service.at("build"),
        Some(_) => None,
    };
    let mut links = Vec::new();
    for place in ["links", "depends_on"] {
        for host in texts_of(service, place) {
            // A link may have an alias behind a colon.
            let host = host.split(':').next().unwrap_or_default().to_owned();
            links.push(Link { host, place });
        }
    }
    let count = if service
        .text_if("deploy.mode", |mode| mode == "global")
        .is_some()
    {
        Some(NODES)
    } else {
        match service.count("deploy.replicas")? {
            None => service.count("scale")?,
            replicas => replicas,
        }
    };
    let ports = service.list("ports").into_iter();
    let published = ports.filter(|port| is_published(*port)).count();
    Ok(ComposeService {
        image,
        build: build.and_then(|build| build.scalar().or_else(|| build.text("context"))),
        count,
        links,
        is_published: published > 0,
    })
}

/// Reads a service into the system.
fn add_service(key: &str, service: Item, system: &mut System) -> Result<(), String> {
    let ComposeService {
        image,
        build,
        count,
        links,
        is_published,
    } = read_service(service)?;
    let name = definition_name(key);
    let names = [service.text("hostname"), service.text("container_name")];
    for host in std::iter::once(key.to_owned()).chain(names.into_iter().flatten()) {
        system.host(&host, Backends::Named(name.clone()));
    }
    if is_published {
        system.way_in(WayIn {
            host: key.to_owned(),
            because: "ports of the host".to_owned(),
            is_port: true,
        });
    }
    let workload = system.workload(&name);
    // A file that overrides another may leave out both.
    if let Some(image) = image.or(build) {
        workload.image = image;
    }
    workload.count = count.or(workload.count);
    let cpus = |path| {
        let cpus = service.parsed(path, "a number of processors such as 0.5", quantity)?;
        Ok::<_, String>(cpus.filter(|cpus| *cpus > 0.0))
    };
    let limit = match cpus("deploy.resources.limits.cpus")? {
        None => cpus("cpus")?,
        limit => limit,
    };
    workload.limit = limit.or(workload.limit);
    workload.links.extend(links);
    workload.mentions.extend(mentions(service));
    if let Some(check) = service.at("healthcheck").filter(|check| check.is_map()) {
        let every = check.parsed(
            "interval",
            "a duration from 1ms to 1h, such as 30s",
            |text| {
                let every = duration(text)?;
                let is_possible =
                    every.0.is_zero() || (LEAST_CHECK..=MOST_CHECK).contains(&every.0);
                is_possible.then_some(every)
            },
        )?;
        if let Some(every) = every.filter(|every| !every.0.is_zero()) {
            workload.health = Some(HealthCheckDefinition {
                every,
                failures: check
                    .count("retries")?
                    .map(|failures| failures.clamp(1, 1000)),
                successes: None,
            });
        }
    }
    Ok(())
}

/// Returns the strings of a list, or the keys of a map.
fn texts_of(service: Item, field: &str) -> Vec<String> {
    let members = service.entries(field);
    if members.is_empty() {
        let list = service.list(field).into_iter();
        return list.filter_map(Item::scalar).collect();
    }
    members.into_iter().map(|(key, _)| key.to_owned()).collect()
}

/// Returns the texts of a service that may name others.
fn mentions(service: Item) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut variable = |name: &str, text: String, item: Item| {
        found.push(Mention {
            place: format!("environment {}", shortened(name)),
            text,
            may_be_host: is_address(name),
            marks: [Some(item.mark()), None, None],
        });
    };
    for (name, value) in service.entries("environment") {
        variable(name, value.peek().unwrap_or_default(), value);
    }
    for entry in service.list("environment") {
        if let Some(text) = entry.peek() {
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            variable(name, value.to_owned(), entry);
        }
    }
    for field in ["command", "entrypoint"] {
        for item in service.list(field) {
            let words = item.peek().unwrap_or_default();
            for word in words.split_whitespace().take(1000) {
                let is_host = word
                    .split_once('=')
                    .is_some_and(|(flag, _)| is_address(flag));
                found.push(Mention {
                    place: field.to_owned(),
                    text: word.to_owned(),
                    may_be_host: is_host,
                    marks: [Some(item.mark()), None, None],
                });
            }
        }
    }
    found
}

/// True if an entry of `ports` publishes a port of the host: true for `8080:80`, false for `80` and `127.0.0.1::80`.
fn is_published(port: Item) -> bool {
    let published = match port.peek() {
        Some(text) => {
            let mut parts = text.rsplit(':').skip(1);
            parts
                .next()
                .is_some_and(|host| !host.is_empty())
                .then_some(port)
        }
        None => port.at("published"),
    };
    published.map(Item::note).is_some()
}
