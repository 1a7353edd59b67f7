//! The definition that follows from invocations.

use super::arrivals;
use super::cache;
use super::fit;
use super::invocation::{Invocation, Invocations};
use super::judge::RecordedKind;
use super::names::Names;
use super::policies::{self, Policies, Unseen, UnseenPolicies};
use super::processors;
use super::rate_limit;
use super::sampled;
use super::script::{self, Measured, Target};
use super::slots::{self, Visit};
use crate::definition::{
    Definition, EndpointDefinition, EntryLoad, PlacesDefinition, ServiceDefinition,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The maximum number of endpoints of a service; the rarest are combined into one.
const MOST_ENDPOINTS: usize = 200;

/// The name of an entry point that has no name in the traces.
const ENTRY: &str = "www";

/// A learned definition, before its validation.
#[derive(Debug)]
pub(super) struct LearnedDefinition {
    pub(super) definition: Definition,
    pub(super) kinds: Vec<RecordedKind>,
    pub(super) lasted: u64,
    pub(super) remarks: Vec<String>,
    /// The requests per second at each service.
    pub(super) visited: BTreeMap<String, f64>,
    pub(super) unseen: Vec<UnseenPolicies>,
}

/// Derives the definition from invocations; `sampled` is the recorded share of all requests.
pub(super) fn describe(
    known: &Names,
    invocations: &mut Invocations,
    name: &str,
    sampled: f64,
) -> LearnedDefinition {
    let names = TracedNames::new(known, &invocations.all);
    let policies = policies::learn(invocations);
    let invocations = &*invocations;
    let mut remarks = Vec::new();
    let mut services = Vec::new();
    let mut left_out = 0;
    let mut without_keys = Vec::new();
    for (number, service) in &names.services {
        let mine: Vec<u32> = (0..)
            .zip(&invocations.all)
            .filter(|(_, made)| made.service == *number)
            .map(|(place, _)| place)
            .collect();
        let (refused, served): (Vec<u32>, Vec<u32>) = mine
            .iter()
            .partition(|&&made| invocations.all[made as usize].refused);
        let mut waited = vec![0; invocations.all.len()];
        let part = recorded_part(mine.iter().map(|&made| &invocations.all[made as usize]));
        let mut concurrency = concurrency(invocations, &served, &mut waited, sampled * part);
        // Of sampled requests, too few are recorded at the same time.
        let is_complete = sampled * part >= 1.0;
        let sharing = is_complete
            .then(|| {
                processors::estimate(invocations, &served, &policies.waited_before, concurrency)
            })
            .flatten();
        if sharing.is_some() {
            concurrency = None;
            waited.fill(0);
        }
        let rate_limit = is_complete
            .then(|| rate_limit::estimate(invocations, &mine))
            .flatten();
        if rate_limit.is_none() && !refused.is_empty() {
            remarks.push(format!(
                "{service} refused {} of {} requests with status 429, and no rate limit explains which: they are \
                 simulated as random failures; set rate_limit",
                refused.len(),
                mine.len()
            ));
        }
        let mut definition = ServiceDefinition::new(service.clone(), "service");
        definition.count =
            instances(invocations, if served.is_empty() { &mine } else { &served }) as i64;
        definition.concurrency = concurrency.map(i64::from);
        definition.processors = sharing.as_ref().map(|sharing| sharing.processors);
        definition.calls = policies
            .by_pair
            .iter()
            .filter(|((by, _), _)| by == number)
            .map(|((_, to), policy)| (names.service(*to).to_owned(), policy.clone()))
            .collect();
        let mut ways = ways(invocations, &mine, &policies);
        definition.latency = latency(&mut ways);
        definition.rate_limit = rate_limit;
        let answered = if rate_limit.is_some() { &served } else { &mine };
        definition.error_rate = error_rate(invocations, answered);
        for (operation, endpoint) in &names.endpoints[number] {
            let of: Vec<u32> = mine
                .iter()
                .filter(|&&made| names.operation(&invocations.all[made as usize]) == *operation)
                .copied()
                .collect();
            let script = script::learn(
                &Measured {
                    invocations,
                    waited: &waited,
                    sharing: sharing.as_ref(),
                    waited_before: &policies.waited_before,
                },
                &of,
                &|target| names.target(target),
            );
            left_out += script.left_out;
            let mut steps = script.steps;
            for step in &mut steps {
                let place = format!("{service}.{endpoint}");
                remarks.extend(cache::find(
                    invocations,
                    &of,
                    step,
                    &place,
                    &|target| names.target(target),
                    &mut without_keys,
                ));
            }
            definition.endpoints.push(EndpointDefinition {
                name: endpoint.clone(),
                priority: None,
                latency: latency_of_endpoint(invocations, &of, &ways, &policies),
                steps,
            });
        }
        services.push(definition);
    }
    let mut load = BTreeMap::new();
    let mut kinds = Vec::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for (entry, arriving) in names.entries(invocations) {
        let mut times: Vec<u64> = arriving.iter().map(|made| made.seen().0).collect();
        times.sort_unstable();
        first = first.min(times[0]);
        last = last.max(times[times.len() - 1]);
        let part = recorded_part(arriving.iter().copied());
        let process = arrivals::process(&times, sampled * part);
        if process.distance > 0.1 {
            remarks.push(format!(
                "arrivals at {entry} are neither constant, poisson nor uniform: the nearest is off by {:.2}",
                process.distance
            ));
        }
        let mut by_kind: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for made in arriving.iter().filter(|made| !made.one_way) {
            let target = (made.service, made.operation);
            by_kind
                .entry(names.target(target))
                .or_default()
                .push(made.lasted());
        }
        let called: BTreeSet<String> = arriving
            .iter()
            .map(|made| names.service(made.service).to_owned())
            .collect();
        let mut weights: BTreeMap<String, f64> = BTreeMap::new();
        for made in &arriving {
            *weights
                .entry(names.target((made.service, made.operation)))
                .or_default() += f64::from(made.weight);
        }
        let entry_load = EntryLoad {
            rate: Some(process.rate),
            arrivals: Some(process.arrivals),
            requests: weights,
            ..EntryLoad::default()
        };
        load.insert(entry.clone(), entry_load);
        let mut definition = ServiceDefinition::new(entry.clone(), "denominator");
        definition.regions = 0;
        definition.dependencies = Some(called.into_iter().collect());
        services.push(definition);
        kinds.extend(by_kind.into_iter().map(|(kind, mut times)| {
            times.sort_unstable();
            RecordedKind {
                entry: entry.clone(),
                kind,
                times,
            }
        }));
    }
    remark(&mut remarks, invocations, left_out);
    remark_limits(&mut remarks, &services, sampled);
    if !without_keys.is_empty() {
        remarks.push(format!(
            "{}: if these are hits of caches, their share changes with the load and the size; record the keys as \
             cache.key, or name their attribute with --key",
            without_keys.join(", ")
        ));
    }
    remarks.extend(policies.remarks(&|service| names.service(service).to_owned()));
    LearnedDefinition {
        definition: Definition {
            arch: name.to_owned(),
            version: "arch-0.1".to_owned(),
            description: String::new(),
            args: String::new(),
            date: String::new(),
            victim: String::new(),
            places: PlacesDefinition::default(),
            network: None,
            load,
            faults: Vec::new(),
            links: Vec::new(),
            services,
        },
        unseen: {
            let name = |service| names.service(service).to_owned();
            let named = |one: &Unseen| one.named(name(one.pair.0), name(one.pair.1));
            policies.unseen.iter().map(named).collect()
        },
        visited: visited(&names, invocations, last.saturating_sub(first), sampled),
        kinds,
        lasted: last.saturating_sub(first),
        remarks,
    }
}

/// Returns the requests per second at each service in a recording of this length.
fn visited(
    names: &TracedNames,
    invocations: &Invocations,
    lasted: u64,
    sampled: f64,
) -> BTreeMap<String, f64> {
    let mut visited: BTreeMap<String, f64> = BTreeMap::new();
    let share = f64::from(u32::MAX).min(1e9 / lasted.max(1) as f64 / sampled);
    for made in &invocations.all {
        let name = names.service(made.service).to_owned();
        *visited.entry(name).or_default() += f64::from(made.weight) * share;
    }
    visited
}

/// Returns the part of the requests that a reservoir has kept, of those that these stand for.
fn recorded_part<'a>(made: impl Iterator<Item = &'a Invocation>) -> f64 {
    let (mut count, mut stand_for) = (0.0, 0.0);
    for made in made {
        count += 1.0;
        stand_for += f64::from(made.weight);
    }
    if stand_for > count {
        count / stand_for
    } else {
        1.0
    }
}

/// Returns the number of distinct instances in the invocations of a service.
fn instances(invocations: &Invocations, mine: &[u32]) -> usize {
    let all = mine
        .iter()
        .map(|&made| invocations.all[made as usize].instance);
    all.collect::<HashSet<u32>>().len()
}

/// Estimates the concurrency limit of a service, if there is one. The resulting waiting time of each request
/// is added to `waited`.
fn concurrency(
    invocations: &Invocations,
    mine: &[u32],
    waited: &mut [u64],
    sampled: f64,
) -> Option<u32> {
    let mut instances: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &made in mine {
        let about = &invocations.all[made as usize];
        // Leaves out messages without an answer, whose end may not be recorded, and incomplete invocations.
        if !about.one_way && !about.incomplete {
            instances.entry(about.instance).or_default().push(made);
        }
    }
    let visits: Vec<Vec<Visit>> = instances
        .values_mut()
        .map(|made| {
            made.sort_by_key(|&made| {
                let about = &invocations.all[made as usize];
                (about.begin, about.end, made)
            });
            made.iter().map(|&made| visit(invocations, made)).collect()
        })
        .collect();
    if sampled < 1.0 {
        let found = sampled::estimate(&visits, sampled)?;
        for (made, waits) in instances.values().zip(&found.waits) {
            for (&made, &wait) in made.iter().zip(waits) {
                waited[made as usize] = wait;
            }
        }
        return Some(found.slots);
    }
    let slots = slots::estimate(&visits)?;
    for (made, visits) in instances.values().zip(&visits) {
        for ((&made, visit), start) in made.iter().zip(visits).zip(slots::starts(visits, slots)) {
            waited[made as usize] = start.saturating_sub(visit.begin);
        }
    }
    Some(slots)
}

fn visit(invocations: &Invocations, made: u32) -> Visit {
    let about = &invocations.all[made as usize];
    let called = invocations.calls(made).map(|call| call.seen().0);
    let first = called.min().unwrap_or(about.end);
    Visit {
        begin: about.begin,
        end: about.end,
        first: first.saturating_sub(about.begin),
    }
}

/// An endpoint has the latency of its service if it has fewer samples than the first number, or a smaller
/// Kolmogorov–Smirnov distance than the second.
const OWN_LATENCY: (usize, f64) = (100, 0.1);

/// Returns the latency of an endpoint, if it differs from the latencies of its service, `all`, which are in ascending
/// order. For example, ring nodes are called from their own zone, and by clients from other zones.
fn latency_of_endpoint(
    invocations: &Invocations,
    of: &[u32],
    all: &[u64],
    policies: &Policies,
) -> Option<crate::Distribution> {
    let mut ways = ways(invocations, of, policies);
    let (least, far) = OWN_LATENCY;
    if ways.is_empty() && !all.is_empty() {
        // The clients of an endpoint without samples are outside, so the recorded times include the travel time.
        return latency(&mut ways);
    }
    if ways.len() < least || ways.len() == all.len() {
        return None;
    }
    ways.sort_unstable();
    let below = |nanos: f64| {
        let below = all.partition_point(|&way| way as f64 <= nanos);
        below as f64 / all.len() as f64
    };
    if fit::distance(&ways, below) < far {
        return None;
    }
    latency(&mut ways)
}

/// Returns the travel times of requests and of their answers, one sample for each invocation with a recorded client
/// span. If clocks differ too much, each invocation gives one sample, which is half of the travel time in both
/// directions.
fn ways(invocations: &Invocations, mine: &[u32], policies: &Policies) -> Vec<u64> {
    let (mut one_way, mut halves) = (Vec::new(), Vec::new());
    let mut backwards = 0;
    for &made in mine {
        let about = &invocations.all[made as usize];
        let is_other = about.incomplete || about.given_up || policies.waited_inside.contains(&made);
        let Some((sent, received)) = about.client.filter(|_| !is_other) else {
            continue;
        };
        if about.one_way {
            one_way.extend(about.begin.checked_sub(sent));
            continue;
        }
        let there = about.begin.checked_sub(sent);
        let back = received.checked_sub(about.end);
        match (there, back) {
            (Some(there), Some(back)) => one_way.extend([there, back]),
            _ => backwards += 1,
        }
        let lasted = (received - sent).saturating_sub(about.end - about.begin);
        halves.push(lasted / 2);
    }
    // If the clocks of two machines differ, only the sum of both directions is known.
    if backwards * 1_000 > mine.len() {
        halves
    } else {
        one_way
    }
}

/// Sorts these times, and returns their distribution.
fn latency(samples: &mut [u64]) -> Option<crate::Distribution> {
    samples.sort_unstable();
    if samples.iter().all(|&nanos| nanos <= 2_000) {
        // The travel time is zero or was included elsewhere: use the shortest possible one.
        return Some(crate::Distribution::Constant(fit::span(0)));
    }
    fit::fit(samples).map(|fit| fit.distribution)
}

/// Returns the fraction of requests that fail although all their calls succeed.
fn error_rate(invocations: &Invocations, mine: &[u32]) -> Option<f64> {
    let mut failed = 0;
    let mut all = 0;
    for &made in mine {
        let about = &invocations.all[made as usize];
        if about.incomplete {
            continue;
        }
        all += 1;
        if about.given_up {
            continue;
        }
        let by_itself = about.failed && !invocations.calls(made).any(|call| call.failed);
        failed += u64::from(by_itself);
    }
    let part = failed as f64 / f64::from(all.max(1));
    (failed > 0).then(|| (part * 1e5).round().max(1.0) / 1e5)
}

/// Adds remarks about properties of the recording that the definition does not express.
fn remark(remarks: &mut Vec<String>, invocations: &Invocations, left_out: u64) {
    let all = &invocations.all;
    let incomplete = all.iter().filter(|made| made.incomplete).count() as u64;
    let one_way = |made: &&Invocation| made.caller.is_none() && made.one_way;
    let one_way = all.iter().filter(one_way).count() as u64;
    let regions: HashSet<u32> = all.iter().map(|made| made.region).collect();
    for (count, what) in [
        (
            invocations.orphans,
            "spans have a parent that is not in the traces",
        ),
        (
            invocations.nameless,
            "calls go to services without a name or spans; they count as work",
        ),
        (
            invocations.cut_off,
            "requests whose callers are missing are left out: the recording began in the middle of them",
        ),
        (
            incomplete,
            "invocations have no end; their times are not used",
        ),
        (
            left_out,
            "calls are left out: their endpoints make too many different calls",
        ),
        (one_way, "messages from outside are simulated as requests"),
        (
            if regions.len() > 1 {
                regions.len() as u64
            } else {
                0
            },
            "regions become one region; their distances are in the latencies",
        ),
    ] {
        if count > 0 {
            remarks.push(format!("{count} {what}"));
        }
    }
}

/// Adds remarks about services without a limit, and about the reasons why a limit may have been missed.
fn remark_limits(remarks: &mut Vec<String>, services: &[ServiceDefinition], sampled: f64) {
    if sampled < 1.0 {
        remarks.push(format!(
            "{:.3} % of all requests were recorded: rates are scaled to all requests, and queueing is inferred \
             from how much longer requests take when several are recorded at the same time; rate limits and shared \
             processors cannot be seen",
            sampled * 100.0
        ));
    }
    let unlimited = services.iter().filter(|service| {
        let is_called = service.package != "denominator";
        let has_limit = service.processors.is_some() || service.rate_limit.is_some();
        is_called && service.concurrency.is_none() && !has_limit
    });
    let names: Vec<&str> = unlimited.map(|service| service.name.as_str()).collect();
    if !names.is_empty() {
        remarks.push(format!(
            "no request waited at {}, so their limits are unknown and they take any load; record at a higher load, or set concurrency",
            names.join(", ")
        ));
    }
}

/// The names of services and endpoints in the definition.
#[derive(Debug)]
struct TracedNames {
    services: Vec<(u32, String)>,
    by_number: HashMap<u32, usize>,
    /// The endpoints of each service, by the numbers of their operations.
    endpoints: BTreeMap<u32, BTreeMap<u32, String>>,
    /// Rare operations of services with many operations.
    rare: HashSet<Target>,
    /// The names of entry points.
    entries: BTreeMap<Option<u32>, String>,
}

/// The operation that stands for all rare operations.
const RARE: u32 = u32::MAX;

impl TracedNames {
    fn new(names: &Names, all: &[Invocation]) -> TracedNames {
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

    fn service(&self, number: u32) -> &str {
        &self.services[self.by_number[&number]].1
    }

    fn operation(&self, made: &Invocation) -> u32 {
        let is_rare = self.rare.contains(&(made.service, made.operation));
        if is_rare { RARE } else { made.operation }
    }

    /// Returns the target of a call.
    fn target(&self, (service, operation): Target) -> String {
        let is_rare = self.rare.contains(&(service, operation));
        let operation = if is_rare { RARE } else { operation };
        format!(
            "{}.{}",
            self.service(service),
            self.endpoints[&service][&operation]
        )
    }

    /// Returns the entry points, each with its requests.
    fn entries<'a>(
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
