//! The names of services and endpoints, from the names in traces.

use super::invocation::{Invocation, Invocations};
use super::names::Names;
use super::script::Target;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The maximum number of endpoints of a service; the rarest are combined into one.
const MOST_ENDPOINTS: usize = 200;

/// The name of an entry point that has no name in the traces.
const ENTRY: &str = "www";

/// The names of services and endpoints in the definition.
#[derive(Debug)]
pub(super) struct TracedNames {
    /// The services by their numbers, in the order of their names.
    pub(super) services: Vec<(u32, String)>,
    by_number: HashMap<u32, usize>,
    /// The endpoints of each service, by the numbers of their operations.
    pub(super) endpoints: BTreeMap<u32, BTreeMap<u32, String>>,
    /// Rare operations of services with many operations.
    rare: HashSet<Target>,
    /// The names of entry points.
    entries: BTreeMap<Option<u32>, String>,
}

/// The operation that stands for all rare operations.
const RARE: u32 = u32::MAX;

impl TracedNames {
    pub(super) fn new(names: &Names, all: &[Invocation]) -> TracedNames {
        let mut counts: BTreeMap<u32, HashMap<u32, u64>> = BTreeMap::new();
        for made in all {
            let of = counts.entry(made.service).or_default();
            *of.entry(made.operation).or_default() += 1;
        }
        let mut numbers: Vec<u32> = counts.keys().copied().collect();
        numbers.sort_by_key(|&number| names.name(number));
        let mut taken: HashSet<String> = ["eureka", "edda"].map(str::to_owned).into();
        let services: Vec<(u32, String)> = numbers
            .iter()
            .map(|&number| (number, unique(&clean(names.name(number)), &mut taken)))
            .collect();
        let mut rare = HashSet::new();
        let mut endpoints = BTreeMap::new();
        for (&service, operations) in &counts {
            let mut operations: Vec<(u32, u64)> = operations
                .iter()
                .map(|(&name, &count)| (name, count))
                .collect();
            operations.sort_by_key(|&(name, count)| (u64::MAX - count, names.name(name)));
            let kept = if operations.len() > MOST_ENDPOINTS {
                let beyond = operations.drain(MOST_ENDPOINTS - 1..);
                rare.extend(beyond.map(|(name, _)| (service, name)));
                Some((RARE, "others".to_owned()))
            } else {
                None
            };
            let mut taken: HashSet<String> = ["common", "read", "write", "others"]
                .map(str::to_owned)
                .into();
            let named = operations
                .iter()
                .map(|&(name, _)| (name, unique(&clean(names.name(name)), &mut taken)));
            endpoints.insert(service, named.chain(kept).collect());
        }
        let mut entries = BTreeMap::new();
        for made in all.iter().filter(|made| made.caller.is_none()) {
            entries.entry(made.from).or_insert_with(|| {
                let name = made.from.map_or(ENTRY, |from| names.name(from));
                unique(&clean(name), &mut taken)
            });
        }
        TracedNames {
            by_number: (0..)
                .zip(&services)
                .map(|(place, (n, _))| (*n, place))
                .collect(),
            services,
            endpoints,
            rare,
            entries,
        }
    }

    pub(super) fn service(&self, number: u32) -> &str {
        &self.services[self.by_number[&number]].1
    }

    pub(super) fn operation(&self, made: &Invocation) -> u32 {
        let is_rare = self.rare.contains(&(made.service, made.operation));
        if is_rare { RARE } else { made.operation }
    }

    /// Returns the target of a call.
    pub(super) fn target(&self, (service, operation): Target) -> String {
        let is_rare = self.rare.contains(&(service, operation));
        let operation = if is_rare { RARE } else { operation };
        format!(
            "{}.{}",
            self.service(service),
            self.endpoints[&service][&operation]
        )
    }

    /// Returns the entry points, each with its requests.
    pub(super) fn entries<'a>(
        &self,
        invocations: &'a Invocations,
    ) -> impl Iterator<Item = (String, Vec<&'a Invocation>)> {
        self.entries.iter().map(|(&from, name)| {
            let all = invocations.all.iter();
            let mine = all.filter(move |made| made.caller.is_none() && made.from == from);
            (name.clone(), mine.collect())
        })
    }
}

/// Converts a name to one that definitions allow.
fn clean(name: &str) -> String {
    let bad = |c: char| matches!(c, '.' | '/' | '*') || c.is_control() || c.is_whitespace();
    let cleaned = name.replace(bad, "-");
    let cleaned: String = cleaned.chars().take(80).collect();
    let mut end = cleaned.len().min(90);
    while !cleaned.is_char_boundary(end) {
        end -= 1;
    }
    match &cleaned[..end] {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns a name that is not in `taken`, and adds it.
fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let others = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(others);
    let free = free.into_iter().find(|name| !taken.contains(name));
    let free = free.unwrap_or_default();
    taken.insert(free.clone());
    free
}
