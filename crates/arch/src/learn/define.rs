//! The definition that follows from invocations.

use super::arrivals;
use super::cache;
use super::invocation::{Invocation, Invocations};
use super::judge::RecordedKind;
use super::latency;
use super::names::Names;
use super::pauses::Pauses;
use super::policies::{self, Unseen, UnseenPolicies};
use super::processors;
use super::rate_limit;
use super::sampled;
use super::script::{self, Measured};
use super::slots::{self, Visit};
use super::traced_names::TracedNames;
use super::waits;
use crate::definition::{Definition, EndpointDefinition, EntryLoad, ServiceDefinition};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The requests per second at each endpoint of each service.
pub(super) type Visits = BTreeMap<String, BTreeMap<String, f64>>;

/// A learned definition, before its validation.
#[derive(Debug)]
pub(super) struct LearnedDefinition {
    pub(super) definition: Definition,
    pub(super) kinds: Vec<RecordedKind>,
    pub(super) lasted: u64,
    pub(super) remarks: Vec<String>,
    pub(super) visited: Visits,
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
    let waits = waits::find(invocations, sampled);
    let mut policies = policies::learn(invocations);
    policies.waited_inside.extend(&waits.waited);
    let invocations = &*invocations;
    let mut remarks = Vec::new();
    let mut services = Vec::new();
    let mut left_out = 0;
    let mut without_keys = Vec::new();
    let mut waited = vec![0; invocations.all.len()];
    let limits = names.services.iter().map(|&(number, _)| {
        let of = Requests::of(invocations, number, sampled);
        let none = Pauses::default();
        let limit = concurrency(invocations, &of.served, &mut waited, of.recorded, &none);
        (of, limit)
    });
    let limits: Vec<(Requests, Option<u32>)> = limits.collect();
    let pauses = Pauses::find(invocations, &waited, &policies);
    for ((number, service), (requests, mut concurrency)) in names.services.iter().zip(limits) {
        let Requests {
            mine,
            refused,
            served,
            recorded,
        } = requests;
        // Of sampled requests, too few are recorded at the same time.
        let is_complete = recorded >= 1.0;
        if pauses.has(*number) {
            mine.iter().for_each(|&made| waited[made as usize] = 0);
            concurrency = self::concurrency(invocations, &served, &mut waited, recorded, &pauses);
        }
        let waited_before = &policies.waited_before;
        let sharing = is_complete
            .then(|| {
                processors::estimate(invocations, &served, waited_before, concurrency, &pauses)
            })
            .flatten();
        if sharing.is_some() {
            concurrency = None;
            mine.iter().for_each(|&made| waited[made as usize] = 0);
        }
        remarks.extend(pauses.remark(*number, service));
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
        let mut travel_times = latency::travel_times(invocations, &mine, &policies, &pauses);
        definition.latency = latency::fitted(&mut travel_times);
        definition.rate_limit = rate_limit;
        definition.faults = pauses.fault(*number).into_iter().collect();
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
                    pauses: &pauses,
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
                latency: latency::of_endpoint(invocations, &of, &travel_times, &policies, &pauses),
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
    let service = |service: u32| names.service(service).to_owned();
    remarks.extend(waits.remarks(&service));
    remarks.extend(policies.remarks(&service));
    LearnedDefinition {
        definition: Definition {
            arch: name.to_owned(),
            version: "arch-0.1".to_owned(),
            load,
            services,
            ..Definition::default()
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

/// The requests to a service: all, the refused ones and the others.
struct Requests {
    mine: Vec<u32>,
    refused: Vec<u32>,
    served: Vec<u32>,
    /// The recorded share.
    recorded: f64,
}

impl Requests {
    fn of(invocations: &Invocations, service: u32, sampled: f64) -> Requests {
        let mine: Vec<u32> = (0..)
            .zip(&invocations.all)
            .filter(|(_, made)| made.service == service)
            .map(|(place, _)| place)
            .collect();
        let (refused, served): (Vec<u32>, Vec<u32>) = mine
            .iter()
            .partition(|&&made| invocations.all[made as usize].refused);
        let part = recorded_part(mine.iter().map(|&made| &invocations.all[made as usize]));
        Requests {
            mine,
            refused,
            served,
            recorded: sampled * part,
        }
    }
}

/// Returns the requests per second at each endpoint in a recording of this length.
fn visited(names: &TracedNames, invocations: &Invocations, lasted: u64, sampled: f64) -> Visits {
    let share = f64::from(u32::MAX).min(1e9 / lasted.max(1) as f64 / sampled);
    let mut counts: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for made in &invocations.all {
        let endpoint = (made.service, names.operation(made));
        *counts.entry(endpoint).or_default() += f64::from(made.weight);
    }
    let mut visited = Visits::new();
    for ((service, operation), count) in counts {
        let of = visited.entry(names.service(service).to_owned());
        let endpoint = names.endpoints[&service][&operation].clone();
        of.or_default().insert(endpoint, count * share);
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
    pauses: &Pauses,
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
            let visits = made.iter().map(|&made| visit(invocations, made, pauses));
            visits.collect()
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

/// Returns the times of a request by the clock that stands still in pauses.
fn visit(invocations: &Invocations, made: u32, pauses: &Pauses) -> Visit {
    let about = &invocations.all[made as usize];
    let called = invocations.calls(made).map(|call| call.seen().0);
    let first = called.min().unwrap_or(about.end);
    let clock = pauses.clock(about.service, about.instance);
    let at = |time: u64| clock.map_or(time, |clock| clock.at(time));
    let begin = at(about.begin);
    Visit {
        begin,
        end: at(about.end),
        first: at(first).saturating_sub(begin),
    }
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
