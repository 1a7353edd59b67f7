//! Converts a docker-compose file to a definition.
//!
//! | in the file | in the definition |
//! |---|---|
//! | a service | a service; its image determines the package, its replicas the count |
//! | `links`, `depends_on`, `volumes_from` | dependencies |
//! | a network (version 2 and 3) | an elb before each of its published services; also before the other services, if the file has no dependencies that show how they are reached |
//! | `ports` with a port of the host | a denominator `www-<service>` before that elb, or before the service |
//! | a named volume of a database, or of a service that depends on nothing | a volume that it depends on; the database becomes data access |
//!
//! Stateless services have three instances and storage one, unless the file sets the number. If no port of the host is
//! published, services without dependents are the entry points. Directories of the host are left out, because they do
//! not show which service calls which.

use crate::definition::{
    Definition, DefinitionError, PlacesDefinition, ServiceDefinition, read_text,
};
use crate::image::package;
use crate::input_file::read_file_text;
use crate::nearest::did_you_mean;
use crate::package::Package;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An error that prevents the conversion of a compose file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The path of the unreadable file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not valid YAML.
    #[error("{} is not valid YAML: {what}", file.display())]
    Broken {
        /// The path of the invalid file.
        file: PathBuf,
        /// The fault and its position.
        what: String,
    },
    /// The file is valid YAML, but does not have the structure of a compose file.
    #[error("{}: {what}", file.display())]
    Shape {
        /// The path of the invalid file.
        file: PathBuf,
        /// The part that has the wrong structure.
        what: String,
    },
    /// The resulting definition is invalid.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
}

/// Reads a compose file and converts it to a definition, which records the command and the date.
///
/// # Errors
/// See [`ComposeError`].
pub fn compose(file: &Path, args: &str, date: &str) -> Result<Definition, ComposeError> {
    let text = read_file_text(file).map_err(|source| ComposeError::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let arch = name(stem.filter(|stem| !stem.is_empty()).unwrap_or("compose"));
    let mut definition = compose_text(&text, file, &arch)?;
    (definition.args, definition.date) = (args.to_owned(), date.to_owned());
    Ok(definition)
}

/// Converts the text of a compose file to a definition.
fn compose_text(text: &str, file: &Path, arch: &str) -> Result<Definition, ComposeError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document: Value = serde_saphyr::from_str(text).map_err(|error| {
        let what = error.to_string();
        ComposeError::Broken {
            file: file.to_owned(),
            what: what.lines().next().unwrap_or_default().to_owned(),
        }
    })?;
    let services = convert(&document).map_err(|what| ComposeError::Shape {
        file: file.to_owned(),
        what,
    })?;
    let definition = Definition {
        faults: Vec::new(),
        links: Vec::new(),
        arch: arch.to_owned(),
        version: "arch-0.1".to_owned(),
        description: format!("Made from {}", file.display()),
        args: String::new(),
        date: String::new(),
        victim: String::new(),
        places: PlacesDefinition::default(),
        network: None,
        load: BTreeMap::new(),
        services,
    };
    // The generated definition passes the same checks as one that is read from a file, so a run accepts it.
    let written = serde_json::to_string(&definition).unwrap_or_default();
    read_text(&written, &file.display().to_string()).map_err(DefinitionError::without_line)?;
    Ok(definition)
}

/// A service of a compose file.
#[derive(Debug)]
struct Composed {
    package: Package,
    container: String,
    count: i64,
    dependencies: Vec<String>,
    networks: Vec<String>,
    /// The names of the volumes.
    volumes: Vec<String>,
    /// True if the service publishes a port of the host.
    published: bool,
}

fn convert(document: &Value) -> Result<Vec<ServiceDefinition>, String> {
    let document = document
        .as_object()
        .ok_or("this is not a compose file; expected an object with services by name")?;
    let mut composed = BTreeMap::new();
    for (key, service) in services_of(document)? {
        let service = service
            .as_object()
            .ok_or_else(|| format!("service '{key}' has no fields; give it an image or a build"))?;
        composed.insert(name(key), read_service(key, service)?);
    }
    if composed.is_empty() {
        return Err("there are no services".to_owned());
    }
    for (key, service) in &composed {
        for dependency in &service.dependencies {
            if !composed.contains_key(dependency) {
                let meant = did_you_mean(dependency, composed.keys().map(String::as_str));
                return Err(format!(
                    "service '{key}' depends on '{dependency}', which is not a service{meant}"
                ));
            }
        }
    }
    Ok(build(&composed))
}

/// Returns the services, by the rules of the file's version.
fn services_of(document: &Map<String, Value>) -> Result<&Map<String, Value>, String> {
    let version = match document.get("version") {
        // In version 1 every key is a service, even one that is called `version`.
        None | Some(Value::Object(_)) => None,
        Some(Value::String(version)) => Some(version.clone()),
        Some(Value::Number(version)) => Some(version.to_string()),
        Some(other) => return Err(format!("{other} is not a version; write \"3\"")),
    };
    let major = version.as_deref().map(|v| v.split('.').next().unwrap_or(v));
    match (major, document.get("services")) {
        (None | Some("2" | "3"), Some(Value::Object(services))) => Ok(services),
        (None | Some("1"), None) => Ok(document),
        (Some("2" | "3"), _) => Err("there are no services".to_owned()),
        (None | Some("1"), Some(_)) => {
            Err("\"services\" is not an object; expected services by name".to_owned())
        }
        (Some(other), _) => Err(format!(
            "compose version '{other}' is unknown; the versions are 1, 2 and 3"
        )),
    }
}

fn read_service(key: &str, service: &Map<String, Value>) -> Result<Composed, String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let image = service.get("image").and_then(text);
    let build = service.get("build").and_then(|build| {
        let context = build.get("context").and_then(text);
        text(build).or(context)
    });
    let package = package(image.as_deref().unwrap_or_default());
    let replicas = service
        .get("deploy")
        .and_then(|deploy| deploy.get("replicas"));
    let count = match replicas.or_else(|| service.get("scale")) {
        None if package.is_storage() && !package.is_ring() => 1,
        None => 3,
        Some(count) => count
            .as_i64()
            .filter(|count| *count >= 1)
            .ok_or_else(|| format!("service '{key}' has {count} replicas; give 1 or more"))?,
    };
    let mut dependencies = Vec::new();
    for field in ["links", "depends_on", "volumes_from"] {
        for dependency in names_in(service.get(field)) {
            // A link may have an alias, and a volume a mode, behind a colon.
            let dependency = name(dependency.split(':').next().unwrap_or_default());
            if !dependencies.contains(&dependency) && dependency != name(key) {
                dependencies.push(dependency);
            }
        }
    }
    let entries = |field: &str| {
        let list = service.get(field).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    };
    Ok(Composed {
        package,
        container: image.or(build).unwrap_or_default(),
        count,
        dependencies,
        networks: names_in(service.get("networks"))
            .into_iter()
            .map(name)
            .collect(),
        volumes: entries("volumes").iter().filter_map(volume).collect(),
        published: entries("ports").iter().any(is_published),
    })
}

/// True if an entry of `ports` publishes a port of the host: true for `8080:80`, false for `80` and `127.0.0.1::80`.
fn is_published(port: &Value) -> bool {
    match port {
        Value::String(text) => {
            let mut parts = text.rsplit(':').skip(1);
            parts.next().is_some_and(|host| !host.is_empty())
        }
        Value::Object(port) => port.contains_key("published"),
        _ => false,
    }
}

/// Returns the name of a volume, if an entry of `volumes` has one: for `data:/var/lib`, but not for `./data:/data`.
fn volume(entry: &Value) -> Option<String> {
    let source = match entry {
        Value::String(text) => text.split_once(':')?.0,
        Value::Object(entry) if entry.get("type") == Some(&Value::from("volume")) => {
            entry.get("source")?.as_str()?
        }
        _ => return None,
    };
    let is_path = source.starts_with(['.', '/', '~', '$']) || source.is_empty();
    (!is_path).then(|| name(source))
}

/// Returns the strings of a list, or the keys of a map.
fn names_in(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(Value::Object(map)) => map.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Converts a text to a name that definitions allow.
fn name(text: &str) -> String {
    let bad = |c: char| matches!(c, '.' | '/' | '*') || c.is_whitespace() || c.is_control();
    text.replace(bad, "_")
}

/// Builds the services of the definition: volumes, the file's services, networks, entry points.
fn build(composed: &BTreeMap<String, Composed>) -> Vec<ServiceDefinition> {
    let mut services = Vec::new();
    // A name that is taken gets a suffix.
    let mut taken: BTreeSet<String> = composed.keys().cloned().collect();
    let mut free = |wanted: &str, ending: &str| {
        let mut name = wanted.to_owned();
        while !taken.insert(name.clone()) {
            name = format!("{name}-{ending}");
        }
        name
    };
    let mut volumes: BTreeMap<&str, String> = BTreeMap::new();
    for composed in composed.values().filter(|composed| composed.asks_volumes()) {
        for volume in &composed.volumes {
            if !volumes.contains_key(volume.as_str()) {
                let named = free(volume, "vol");
                let mut service = ServiceDefinition::new(&named, Package::Volume.name());
                service.machine = "volume".to_owned();
                service.count = 1;
                services.push(service);
                volumes.insert(volume, named);
            }
        }
    }
    let mut networks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, composed) in composed {
        let mut service = ServiceDefinition::new(key, composed.package_name());
        service.machine = "machine".to_owned();
        service.instance = "instance".to_owned();
        service.container.clone_from(&composed.container);
        service.process = "process".to_owned();
        service.count = composed.count;
        let mut dependencies = composed.dependencies.clone();
        if composed.package.is_ring() {
            dependencies.push(key.clone());
        }
        if composed.asks_volumes() {
            let asked = composed.volumes.iter();
            dependencies.extend(asked.filter_map(|volume| volumes.get(volume.as_str()).cloned()));
        }
        service.dependencies = Some(dependencies);
        services.push(service);
        for network in &composed.networks {
            networks.entry(network).or_default().push(key);
        }
    }
    // The load balancer in front of a published service, by network and service.
    let mut balancers: BTreeMap<(&str, &str), String> = BTreeMap::new();
    let says_who_calls = composed.values().any(|one| !one.dependencies.is_empty());
    for (network, members) in &networks {
        let mut balancer = |wanted: &str, behind: Vec<&str>| {
            let named = free(wanted, "net");
            let mut service = ServiceDefinition::new(&named, Package::Elb.name());
            service.machine = "network".to_owned();
            service.dependencies = Some(behind.into_iter().map(str::to_owned).collect());
            services.push(service);
            named
        };
        let is_published = |key: &&str| composed[*key].published;
        let published: Vec<&str> = members.iter().copied().filter(is_published).collect();
        if published.is_empty() {
            balancer(network, members.clone());
        }
        for &key in &published {
            let is_behind =
                |other: &&str| *other == key || !says_who_calls && !composed[*other].published;
            let behind = members.iter().copied().filter(is_behind).collect();
            let named = if published.len() == 1 {
                balancer(network, behind)
            } else {
                balancer(&format!("{network}-{key}"), behind)
            };
            balancers.insert((network, key), named);
        }
    }
    let depended: BTreeSet<&String> = composed
        .values()
        .flat_map(|service| &service.dependencies)
        .collect();
    let any_published = composed.values().any(|service| service.published);
    for (key, composed) in composed {
        let enters = if any_published {
            composed.published
        } else {
            !depended.contains(key)
        };
        if !enters {
            continue;
        }
        let named = free(&format!("www-{key}"), "in");
        let mut service = ServiceDefinition::new(named, Package::Denominator.name());
        service.machine = "external".to_owned();
        service.regions = 0;
        let network = composed.networks.first();
        let balancer = network.and_then(|network| balancers.get(&(network.as_str(), key.as_str())));
        service.dependencies = Some(vec![balancer.unwrap_or(key).clone()]);
        services.push(service);
    }
    services
}

impl Composed {
    /// True if requests reach the service's volumes. A database stores its values there, and a service without
    /// dependencies serves files from them. Rings and caches answer from memory.
    fn asks_volumes(&self) -> bool {
        let serves_files = self.dependencies.is_empty() && !self.package.is_storage();
        !self.volumes.is_empty() && (self.package == Package::Store || serves_files)
    }

    /// Returns the package; a database that stores its values on a volume is data access.
    fn package_name(&self) -> &'static str {
        if self.package == Package::Store && self.asks_volumes() {
            Package::Staash.name()
        } else {
            self.package.name()
        }
    }
}

#[cfg(test)]
mod tests;
