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

use super::{ComposeService, read_service, texts_of};
use crate::definition::{Definition, DefinitionError, ServiceDefinition, read_text};
use crate::image::package;
use crate::import::document::{Documents, parse, variables};
use crate::import::item::{Item, Log};
use crate::import::system::definition_name;
use crate::import::{ImportError, shortened};
use crate::nearest::did_you_mean;
use crate::package::Package;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads a compose file and converts it to a definition, which records the command and the date.
///
/// # Errors
/// See [`ImportError`].
pub fn compose(file: &Path, args: &str, date: &str) -> Result<Definition, ImportError> {
    let text = Documents::text(file)?;
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let arch = definition_name(stem.unwrap_or("compose"));
    let mut definition = compose_text(&text, file, &arch)?;
    (definition.args, definition.date) = (args.to_owned(), date.to_owned());
    Ok(definition)
}

/// Converts the text of a compose file to a definition.
fn compose_text(text: &str, file: &Path, arch: &str) -> Result<Definition, ImportError> {
    let broken = |what: String| ImportError::Broken {
        file: file.to_owned(),
        what,
    };
    let document = parse(text, false).map_err(broken)?.into_iter().next();
    let document = super::with_variables(document.unwrap_or_default(), &mut variables(file))
        .map_err(ImportError::TooMuch)?;
    let services = convert(&document).map_err(|what| broken(format!("is not usable: {what}")))?;
    let definition = Definition {
        arch: arch.to_owned(),
        version: "arch-0.1".to_owned(),
        description: format!("Made from {}", file.display()),
        services,
        ..Definition::default()
    };
    // The generated definition passes the same checks as one that is read from a file, so a run accepts it.
    let written = definition.to_text();
    read_text(&written, &file.display().to_string()).map_err(DefinitionError::without_line)?;
    Ok(definition)
}

/// A service of a compose file with what its architecture needs.
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
    if !document.is_object() {
        return Err("expected an object with services by name".to_owned());
    }
    let log = Log::default();
    let document = Item::new(document, &log);
    let mut composed = BTreeMap::new();
    for (key, service) in services_of(document)? {
        let shown = shortened(key);
        if !service.is_map() {
            return Err(format!(
                "service '{shown}' has no fields; give it an image or a build"
            ));
        }
        let read = Composed::read(key, service);
        let read = read.map_err(|what| format!("service '{shown}': {what}"))?;
        composed.insert(definition_name(key), read);
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
fn services_of(document: Item<'_>) -> Result<Vec<(&str, Item<'_>)>, String> {
    // In version 1 every key is a service, even one that is called `version`.
    let version = document.at("version").filter(|version| !version.is_map());
    let version = match version.map(Item::scalar) {
        None => None,
        Some(Some(version)) => Some(version),
        Some(None) => return Err("the version is a list; write \"3\"".to_owned()),
    };
    let major = version.as_deref().map(|v| v.split('.').next().unwrap_or(v));
    let services = document.at("services");
    match (major, services) {
        (None | Some("2" | "3"), Some(services)) if services.is_map() => Ok(services.members()),
        (None | Some("1"), None) => Ok(document.members()),
        (Some("2" | "3"), _) => Err("there are no services".to_owned()),
        (None | Some("1"), Some(_)) => {
            Err("\"services\" is not an object; expected services by name".to_owned())
        }
        (Some(other), _) => Err(format!(
            "compose version '{}' is unknown; there are 1, 2 and 3",
            shortened(other)
        )),
    }
}

/// Returns the name of a volume, if an entry of `volumes` has one: for `data:/var/lib`, but not for `./data:/data`.
fn volume(entry: Item) -> Option<String> {
    let source = match entry.scalar() {
        Some(text) => text.split_once(':')?.0.to_owned(),
        None if entry.text("type").as_deref() == Some("volume") => entry.text("source")?,
        None => return None,
    };
    let is_path = source.starts_with(['.', '/', '~', '$']) || source.is_empty();
    (!is_path).then(|| definition_name(&source))
}

/// The services of a compose file, and those of the definition so far.
struct Builder<'a> {
    composed: &'a BTreeMap<String, Composed>,
    services: Vec<ServiceDefinition>,
    taken: BTreeSet<String>,
}

/// Builds the services of the definition: volumes, the file's services, networks, entry points.
fn build(composed: &BTreeMap<String, Composed>) -> Vec<ServiceDefinition> {
    let mut builder = Builder {
        composed,
        services: Vec::new(),
        taken: composed.keys().cloned().collect(),
    };
    let volumes = builder.volumes();
    builder.services(&volumes);
    let balancers = builder.networks();
    builder.entry_points(&balancers);
    builder.services
}

impl<'a> Builder<'a> {
    /// Returns an unused name: a suffix is added if the wanted name is taken.
    fn free(&mut self, wanted: &str, ending: &str) -> String {
        let mut name = wanted.to_owned();
        while !self.taken.insert(name.clone()) {
            name = format!("{name}-{ending}");
        }
        name
    }

    /// Adds the volumes that requests reach. Returns their names.
    fn volumes(&mut self) -> BTreeMap<&'a str, String> {
        let mut volumes: BTreeMap<&str, String> = BTreeMap::new();
        let asking = self.composed.values().filter(|one| one.asks_volumes());
        for volume in asking.flat_map(|one| &one.volumes) {
            if !volumes.contains_key(volume.as_str()) {
                let named = self.free(volume, "vol");
                let mut service = ServiceDefinition::new(&named, Package::Volume.name());
                service.machine = "volume".to_owned();
                service.count = 1;
                self.services.push(service);
                volumes.insert(volume, named);
            }
        }
        volumes
    }

    /// Adds the services of the file.
    fn services(&mut self, volumes: &BTreeMap<&str, String>) {
        for (key, composed) in self.composed {
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
                dependencies
                    .extend(asked.filter_map(|volume| volumes.get(volume.as_str()).cloned()));
            }
            service.dependencies = Some(dependencies);
            self.services.push(service);
        }
    }

    /// Adds the load balancers of networks. Returns the one in front of a published service, by network and service.
    fn networks(&mut self) -> BTreeMap<(&'a str, &'a str), String> {
        let composed = self.composed;
        let mut networks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, one) in composed {
            for network in &one.networks {
                networks.entry(network).or_default().push(key);
            }
        }
        let mut balancers = BTreeMap::new();
        let says_who_calls = composed.values().any(|one| !one.dependencies.is_empty());
        for (network, members) in networks {
            let is_published = |key: &&str| composed[*key].published;
            let published: Vec<&str> = members.iter().copied().filter(is_published).collect();
            if published.is_empty() {
                self.balancer(network, members.clone());
            }
            for &key in &published {
                let is_behind =
                    |other: &&str| *other == key || !says_who_calls && !composed[*other].published;
                let behind = members.iter().copied().filter(is_behind).collect();
                let named = match published.len() {
                    1 => self.balancer(network, behind),
                    _ => self.balancer(&format!("{network}-{key}"), behind),
                };
                balancers.insert((network, key), named);
            }
        }
        balancers
    }

    fn balancer(&mut self, wanted: &str, behind: Vec<&str>) -> String {
        let named = self.free(wanted, "net");
        let mut service = ServiceDefinition::new(&named, Package::Elb.name());
        service.machine = "network".to_owned();
        service.dependencies = Some(behind.into_iter().map(str::to_owned).collect());
        self.services.push(service);
        named
    }

    /// Adds an entry point for each published service, or for those on which no other depends.
    fn entry_points(&mut self, balancers: &BTreeMap<(&str, &str), String>) {
        let composed = self.composed;
        let depended: BTreeSet<&String> = composed
            .values()
            .flat_map(|one| &one.dependencies)
            .collect();
        let any_published = composed.values().any(|one| one.published);
        for (key, one) in composed {
            let enters = match any_published {
                true => one.published,
                false => !depended.contains(key),
            };
            if !enters {
                continue;
            }
            let named = self.free(&format!("www-{key}"), "in");
            let mut service = ServiceDefinition::new(named, Package::Denominator.name());
            service.machine = "external".to_owned();
            service.regions = 0;
            let network = one.networks.first();
            let balancer =
                network.and_then(|network| balancers.get(&(network.as_str(), key.as_str())));
            service.dependencies = Some(vec![balancer.unwrap_or(key).clone()]);
            self.services.push(service);
        }
    }
}

impl Composed {
    fn read(key: &str, service: Item) -> Result<Composed, String> {
        let ComposeService {
            image,
            build,
            count,
            links,
            is_published,
        } = read_service(service)?;
        let package = package(image.as_deref().unwrap_or_default());
        let count = match count {
            None if package.is_storage() && !package.is_ring() => 1,
            None => 3,
            Some(0) => return Err("it has 0 replicas; give 1 or more".to_owned()),
            Some(count) => count,
        };
        let mut dependencies: Vec<String> = Vec::new();
        let others = texts_of(service, "volumes_from");
        // A volume may have a mode behind a colon.
        let others = others.iter().filter_map(|other| other.split(':').next());
        for host in links.iter().map(|link| link.host.as_str()).chain(others) {
            let dependency = definition_name(host);
            if !dependencies.contains(&dependency) && dependency != definition_name(key) {
                dependencies.push(dependency);
            }
        }
        let networks = texts_of(service, "networks");
        let volumes = service.list("volumes").into_iter().filter_map(volume);
        Ok(Composed {
            package,
            container: image.or(build).unwrap_or_default(),
            count,
            dependencies,
            networks: networks.iter().map(|name| definition_name(name)).collect(),
            volumes: volumes.collect(),
            published: is_published,
        })
    }

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
#[path = "architecture_tests.rs"]
mod tests;
