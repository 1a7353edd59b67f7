//! Checks whether a definition is valid.

mod faults;
mod machines;
mod scripts;

pub(crate) use scripts::reachable;

use faults::{check_controller, check_faults, check_places};
use scripts::{are_possible, check_queue, check_scripts, check_time_slice, names_to_index};

use super::locate::Step;
use super::{Definition, PlacesDefinition, ServiceDefinition};
use crate::load::Load;
use crate::nearest::did_you_mean;
use crate::package::Package;
use crate::policy::Policy;
use crate::script::{Endpoints, Script};
use corsair_observe::{Places, PlacesError};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum number of instances of a service in one region.
const MAX_COUNT: i64 = 1_000_000;

/// The maximum length of a name in bytes; files are named by the architecture and the service.
const MAX_NAME: usize = 100;

/// The versions of the format.
const VERSIONS: [&str; 2] = ["arch-0.0", "arch-0.1"];

/// A valid definition, with the package of each service.
#[derive(Clone, Debug)]
pub struct CheckedDefinition {
    definition: Definition,
    /// The definition as written, if it has machines, which are services in `definition`.
    written: Option<Box<Definition>>,
    places: Arc<Places>,
    /// The directory of the files that the definition names.
    base: PathBuf,
    packages: Vec<Package>,
    /// The loads of entry points, by service index.
    loads: BTreeMap<usize, Load>,
    endpoints: Endpoints,
    /// The scripts of services with their policies for calls, by service index.
    scripts: BTreeMap<usize, (Arc<Script>, Vec<Policy>)>,
}

impl CheckedDefinition {
    /// Returns the definition. Its machines are services.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Returns the definition as written, with its machines.
    pub fn written(&self) -> &Definition {
        self.written.as_deref().unwrap_or(&self.definition)
    }

    /// Returns the regions and zones.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Returns the definition with the given regions, zones and addresses; lists that `places` leaves out
    /// stay as they are.
    ///
    /// # Errors
    /// If the definition is invalid with these places.
    pub fn with_places(self, places: &PlacesDefinition) -> Result<CheckedDefinition, Problem> {
        let written = self.written.map_or(self.definition, |written| *written);
        let definition = Definition {
            places: places.or(&written.places),
            ..written
        };
        check(definition, &self.base).map_err(|(problem, _)| problem)
    }

    /// Iterates over the services with their packages.
    pub fn services(&self) -> impl ExactSizeIterator<Item = (&ServiceDefinition, Package)> {
        let packages = self.packages.iter().copied();
        self.definition.services.iter().zip(packages)
    }

    /// Returns the index of the service with this name.
    pub fn index_of(&self, service: &str) -> Option<usize> {
        let mut services = self.definition.services.iter();
        services.position(|known| known.name == service)
    }

    /// Returns the load of a service, if the definition sets it.
    pub(crate) fn load(&self, service: usize) -> Option<&Load> {
        self.loads.get(&service)
    }

    /// Returns the endpoints of all services.
    pub(crate) fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Returns the script of a service, if it has one, and its policies for calls.
    pub(crate) fn script(&self, service: usize) -> Option<(&Arc<Script>, &[Policy])> {
        let (script, policies) = self.scripts.get(&service)?;
        Some((script, policies))
    }

    /// Returns the index of the service that loses an instance halfway, if there is one.
    pub fn victim(&self) -> Option<usize> {
        self.index_of(&self.definition.victim)
    }
}

/// A fault in a definition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each says what it is in its sentence")]
pub enum Problem {
    #[error("there are no services; add at least one, and a denominator that drives load to it")]
    NoServices,
    #[error("the architecture has no name; give it one under \"arch\"")]
    NoName,
    #[error(
        "'{}' is not a valid name; leave out dots, slashes, stars, spaces and line breaks", .0.escape_debug()
    )]
    Name(String),
    #[error(
        "the name '{start}…' has {length} bytes; give at most {MAX_NAME}, because files are named by it"
    )]
    LongName { start: String, length: usize },
    #[error("the version '{}' is unknown; write {}{meant}", .version.escape_debug(), VERSIONS.join(" or "))]
    Version { version: String, meant: String },
    #[error("service '{name}' is defined twice; the first is number {first} of \"services\"")]
    Duplicate { name: String, first: usize },
    #[error("'{0}' is a reserved name; call the service something else")]
    Reserved(String),
    #[error("service '{service}' has the unknown package '{package}'{meant}")]
    Package {
        service: String,
        package: String,
        meant: String,
    },
    #[error("service '{service}' depends on '{dependency}', which is not a service{meant}")]
    Dependency {
        service: String,
        dependency: String,
        meant: String,
    },
    #[error(
        "service '{service}' depends on '{dependency}', a denominator: it drives load and answers no requests"
    )]
    AsksDenominator { service: String, dependency: String },
    #[error("the load is for '{}', which is not an entry point{meant}", .entry.escape_debug())]
    NoEntryPoint { entry: String, meant: String },
    #[error("the load of '{entry}': {what}")]
    Load { entry: String, what: String },
    #[error("{what}")]
    Place { what: String },
    #[error("service '{service}': {what}")]
    Service { service: String, what: String },
    #[error("the victim '{victim}' is not a service{meant}")]
    Victim { victim: String, meant: String },
    #[error("service '{service}' has a count of {count}; give 0 to {MAX_COUNT}")]
    Count { service: String, count: i64 },
    #[error("service '{service}' is in {regions} regions; give 0 to {most}")]
    Regions {
        service: String,
        regions: i64,
        most: usize,
    },
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error("service '{service}' has a concurrency of {concurrency}; give 1 or more")]
    Concurrency { service: String, concurrency: i64 },
    #[error("service '{service}' has an error rate of {rate}; give a number from 0 to 1")]
    ErrorRate { service: String, rate: f64 },
    #[error(
        "a fault of service '{service}' hits a share of {share}; give a number above 0, up to 1"
    )]
    Share { service: String, share: f64 },
    #[error("a fault of service '{service}' makes it {factor} times as slow; give 1 or more")]
    Factor { service: String, factor: f64 },
    #[error("a fault of service '{service}' has a factor, but only slow has one; remove it")]
    NotSlow { service: String },
    #[error(
        "a fault of service '{service}' has a duration of 0s; give \"for\" a longer time, or leave it out"
    )]
    NoTime { service: String },
    #[error("'{pair}' is not a pair of regions; write one as {example}{meant}")]
    Pair {
        pair: String,
        example: String,
        meant: String,
    },
    #[error(
        "service '{service}' has useCustomGuesstimate and no {key}; give it one, such as {example}"
    )]
    Guesstimate {
        service: String,
        key: &'static str,
        example: &'static str,
    },
}

/// A problem, and the path to it in the document.
type Wrong<'a> = (Problem, Vec<Step<'a>>);

/// Checks a definition, and reads the files that it names, whose paths are relative to `base`. An error
/// contains the path to the invalid field of the document.
pub(super) fn check(
    definition: Definition,
    base: &Path,
) -> Result<CheckedDefinition, Wrong<'static>> {
    let written = definition.services.len();
    check_all(definition, base).map_err(|(problem, way)| match way[..] {
        // The services of machines are not in the document.
        [_, Step::Index(index), ..] if index >= written => (problem, vec![Step::Key("machines")]),
        _ => (problem, way),
    })
}

fn check_all(definition: Definition, base: &Path) -> Result<CheckedDefinition, Wrong<'static>> {
    if definition.arch.is_empty() {
        return Err((Problem::NoName, vec![Step::Key("arch")]));
    }
    check_arch(&definition.arch).map_err(|problem| (problem, vec![Step::Key("arch")]))?;
    check_version(&definition.version).map_err(|p| (p, vec![Step::Key("version")]))?;
    if definition.services.is_empty() {
        return Err((Problem::NoServices, vec![Step::Key("services")]));
    }
    let has_machines = !definition.machines.is_empty();
    let written = has_machines.then(|| Box::new(definition.clone()));
    let definition = machines::expand(definition)?;
    let places = definition.places.places();
    let places = places.map_err(|error| (error.into(), vec![Step::Key("places")]))?;
    for pair in definition.network.iter().flat_map(|n| n.regions.keys()) {
        check_pair(pair, &places).map_err(|problem| (problem, vec![Step::Key("network")]))?;
    }
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut packages = Vec::with_capacity(definition.services.len());
    for (index, service) in definition.services.iter().enumerate() {
        check_name(service, index, &names).map_err(|problem| at(index, "name", problem))?;
        names.insert(&service.name, index);
        packages.push(package(service).map_err(|problem| at(index, "package", problem))?);
        check_numbers(service, &places).map_err(|(key, problem)| at(index, key, problem))?;
        let checked = check_queue(service, packages[index])
            .and_then(|()| check_controller(service, packages[index]));
        checked.map_err(|(key, what)| {
            let service = service.name.clone();
            at(index, key, Problem::Service { service, what })
        })?;
        check_faults(service).map_err(|problem| at(index, "faults", problem))?;
        check_guesstimate(service).map_err(|problem| at(index, "useCustomGuesstimate", problem))?;
    }
    for (index, service) in definition.services.iter().enumerate() {
        for (number, dependency) in service.dependencies().iter().enumerate() {
            check_dependency(service, dependency, &names, &packages).map_err(|problem| {
                let (problem, mut way) = at(index, "dependencies", problem);
                way.push(Step::Index(number));
                (problem, way)
            })?;
        }
    }
    if !definition.victim.is_empty() && !names.contains_key(definition.victim.as_str()) {
        let victim = definition.victim.clone();
        let meant = did_you_mean(&victim, names.keys().copied());
        return Err((Problem::Victim { victim, meant }, vec![Step::Key("victim")]));
    }
    check_places(&definition, &places, &names, &packages)?;
    let (endpoints, scripts) = check_scripts(&definition, &packages)?;
    let loads = check_loads(&definition, base, &names, &packages, &endpoints)?;
    Ok(CheckedDefinition {
        definition,
        written,
        places: Arc::new(places),
        base: base.to_owned(),
        packages,
        loads,
        endpoints,
        scripts,
    })
}

fn at(index: usize, key: &'static str, problem: Problem) -> Wrong<'static> {
    let way = vec![Step::Key("services"), Step::Index(index), Step::Key(key)];
    (problem, way)
}

/// True if the text can be a part of a dotted name and of a file name.
fn is_name(name: &str) -> bool {
    let bad = |c: char| c == '.' || c == '/' || c == '*' || c.is_whitespace() || c.is_control();
    !name.is_empty() && !name.contains(bad)
}

fn check_name(
    service: &ServiceDefinition,
    index: usize,
    names: &HashMap<&str, usize>,
) -> Result<(), Problem> {
    let name = service.name.as_str();
    if let Some(&first) = names.get(name) {
        return Err(Problem::Duplicate {
            name: name.to_owned(),
            first: first + 1,
        });
    }
    assert!(names.len() == index);
    if ["eureka", "edda"].contains(&name) {
        return Err(Problem::Reserved(name.to_owned()));
    }
    if !is_name(name) {
        return Err(Problem::Name(name.to_owned()));
    }
    check_length(name)
}

/// Checks that a name is short enough for file names.
fn check_length(name: &str) -> Result<(), Problem> {
    if name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(Problem::LongName {
        start: name.chars().take(20).collect(),
        length: name.len(),
    })
}

/// Checks the name of the architecture. It may contain characters that are invalid in service names, because they are
/// replaced in output.
fn check_arch(arch: &str) -> Result<(), Problem> {
    if arch.contains(char::is_control) {
        return Err(Problem::Name(arch.to_owned()));
    }
    check_length(arch)
}

fn check_version(version: &str) -> Result<(), Problem> {
    if version.is_empty() || VERSIONS.contains(&version) {
        return Ok(());
    }
    Err(Problem::Version {
        version: version.to_owned(),
        meant: did_you_mean(version, VERSIONS),
    })
}

fn package(service: &ServiceDefinition) -> Result<Package, Problem> {
    let known = || {
        Package::ALL
            .into_iter()
            .filter(|package| package.is_for_services())
    };
    known()
        .find(|package| package.name() == service.package)
        .ok_or_else(|| {
            let names: Vec<&str> = known().map(Package::name).collect();
            let meant = match did_you_mean(&service.package, names.iter().copied()) {
                meant if meant.is_empty() => format!("; expected one of {}", names.join(", ")),
                meant => meant,
            };
            Problem::Package {
                service: service.name.clone(),
                package: service.package.clone(),
                meant,
            }
        })
}

fn check_numbers(
    service: &ServiceDefinition,
    places: &Places,
) -> Result<(), (&'static str, Problem)> {
    let name = || service.name.clone();
    if !(0..=MAX_COUNT).contains(&service.count) {
        let (service, count) = (name(), service.count);
        return Err(("count", Problem::Count { service, count }));
    }
    let most = places.regions().len();
    if !(0..=most as i64).contains(&service.regions) {
        let problem = Problem::Regions {
            service: name(),
            regions: service.regions,
            most,
        };
        return Err(("regions", problem));
    }
    if let Some(concurrency) = service.concurrency.filter(|&c| c < 1) {
        let problem = Problem::Concurrency {
            service: name(),
            concurrency,
        };
        return Err(("concurrency", problem));
    }
    if let Some(rate) = service.error_rate.filter(|r| !(0.0..=1.0).contains(r)) {
        let service = name();
        return Err(("error_rate", Problem::ErrorRate { service, rate }));
    }
    Ok(())
}

/// Checks that a value for Guesstimate is set if it is to replace measured times.
fn check_guesstimate(service: &ServiceDefinition) -> Result<(), Problem> {
    let keys = [
        ("guesstimateType", &service.guesstimate_type, "NORMAL"),
        ("guesstimateValue", &service.guesstimate_value, "[100,200]"),
    ];
    let empty = keys.into_iter().find(|(_, text, _)| text.is_empty());
    match empty.filter(|_| service.use_custom_guesstimate) {
        None => Ok(()),
        Some((key, _, example)) => Err(Problem::Guesstimate {
            service: service.name.clone(),
            key,
            example,
        }),
    }
}

fn check_dependency(
    service: &ServiceDefinition,
    dependency: &str,
    names: &HashMap<&str, usize>,
    packages: &[Package],
) -> Result<(), Problem> {
    if dependency.is_empty() || dependency == "eureka" {
        return Ok(());
    }
    let (from, to) = (service.name.clone(), dependency.to_owned());
    match names.get(dependency) {
        None => Err(Problem::Dependency {
            meant: did_you_mean(dependency, names.keys().copied()),
            service: from,
            dependency: to,
        }),
        Some(&index) if packages[index] == Package::Denominator => Err(Problem::AsksDenominator {
            service: from,
            dependency: to,
        }),
        Some(_) => Ok(()),
    }
}

/// Returns the loads, by the index of their entry points.
fn check_loads(
    definition: &Definition,
    base: &Path,
    names: &HashMap<&str, usize>,
    packages: &[Package],
    endpoints: &Endpoints,
) -> Result<BTreeMap<usize, Load>, Wrong<'static>> {
    let reached = |entry: usize| {
        reachable(entry, packages, |service| {
            let names = definition.services[service].dependencies().iter();
            names
                .filter_map(|name| names_to_index(definition, name))
                .collect()
        })
    };
    let mut loads = BTreeMap::new();
    for (entry, load) in &definition.load {
        let is_entry_point = |index: &usize| packages[*index] == Package::Denominator;
        let Some(&index) = names
            .get(entry.as_str())
            .filter(|index| is_entry_point(index))
        else {
            let known = names.iter().filter(|(_, index)| is_entry_point(index));
            let problem = Problem::NoEntryPoint {
                entry: entry.clone(),
                meant: did_you_mean(entry, known.map(|(name, _)| *name)),
            };
            return Err((problem, vec![Step::Key("load")]));
        };
        let load = Load::new(load, base).and_then(|load| load.resolve(endpoints, &reached(index)));
        let load = load.map_err(|what| {
            let entry = entry.clone();
            (Problem::Load { entry, what }, vec![Step::Key("load")])
        })?;
        loads.insert(index, load);
    }
    Ok(loads)
}

/// Checks that a key of the network's table names two regions.
fn check_pair(pair: &str, places: &Places) -> Result<(), Problem> {
    let is_unknown = |region: &&str| places.find_region(region).is_none();
    let unknown = match pair.split_once("..") {
        Some((a, b)) => [a, b].into_iter().find(is_unknown),
        None => Some(pair),
    };
    match unknown {
        None => Ok(()),
        Some(region) => Err(Problem::Pair {
            pair: pair.to_owned(),
            example: match places.regions() {
                [a, b, ..] => format!("{a}..{b}"),
                _ => "a..b, and give the architecture two regions".to_owned(),
            },
            meant: did_you_mean(region, places.regions().iter().map(String::as_str)),
        }),
    }
}

#[cfg(test)]
mod tests;
