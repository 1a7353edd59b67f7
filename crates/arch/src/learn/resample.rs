//! Confidence intervals by resampling.
//!
//! A recording is divided into blocks of time, and the same number of blocks is drawn with replacement. Within a block
//! the requests and their queues are unchanged, so slots can be learned from a resampled recording as from the
//! original. The variation of the results estimates the variation over many recordings.

use super::invocation::Invocations;
use crate::definition::{
    CallPolicy, Definition, EndpointDefinition, Rate, ServiceDefinition, StepDefinition,
};
use crate::duration_text::TimeSpan;
use corsair::Random;
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum number of blocks of a recording, and the minimum number of traces for each.
const BLOCKS: u64 = 20;
const LEAST_IN_BLOCK: u64 = 10;

/// A learned number, with the interval that contains 95 % of its values in resampled recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedParameter {
    /// The name of the quantity, with its service or endpoint.
    pub name: String,
    /// The number; times are in seconds.
    pub value: f64,
    /// The lower and the upper end of the interval.
    pub between: (f64, f64),
}

/// A recording that is resampled: its traces by block, and the length of a block.
pub(super) struct Blocks<'a> {
    invocations: &'a Invocations,
    blocks: Vec<Vec<Range<u32>>>,
    width: u64,
}

impl Blocks<'_> {
    /// Cuts a recording into blocks; `None` if it is too short.
    pub(super) fn of(invocations: &Invocations) -> Option<Blocks<'_>> {
        let number = (invocations.traces / LEAST_IN_BLOCK).min(BLOCKS);
        let times = || invocations.by_trace().map(|(begins, _)| begins);
        let (first, last) = (times().min()?, times().max()?);
        if number < 5 || first == last {
            return None;
        }
        let width = (last - first) / number + 1;
        let mut blocks = vec![Vec::new(); number as usize];
        for (begins, range) in invocations.by_trace() {
            blocks[((begins - first) / width) as usize].push(range);
        }
        Some(Blocks {
            invocations,
            blocks,
            width,
        })
    }

    /// Returns a recording that consists of randomly drawn blocks.
    pub(super) fn draw(&self, random: &mut Random) -> Invocations {
        let number = self.blocks.len() as u32;
        let drawn: Vec<u32> = (0..number).map(|_| random.below(number)).collect();
        let traces = (0i64..).zip(&drawn).flat_map(|(place, &block)| {
            let shift = (place - i64::from(block)) * self.width as i64;
            let of = self.blocks[block as usize].iter();
            of.map(move |range| (range.clone(), shift))
        });
        self.invocations.chosen(traces)
    }
}

/// Returns the numbers of a definition, each with its interval over the resampled recordings.
pub(super) fn intervals(learned: &Definition, others: &[Definition]) -> Vec<LearnedParameter> {
    let others: Vec<BTreeMap<String, f64>> = others.iter().map(numbers).collect();
    let interval = |(name, value): (String, f64)| {
        let mut of: Vec<f64> = others
            .iter()
            .filter_map(|one| one.get(&name).copied())
            .collect();
        of.sort_by(f64::total_cmp);
        // The k-th smallest of n values has the probability k / (n + 1): with few values the ends are the extremes.
        let beyond = ((of.len() + 1) as f64 * 0.025) as usize;
        let outermost = beyond.saturating_sub(1);
        // A number has an interval only if more than half of the resampled definitions have it.
        (2 * of.len() > others.len()).then(|| LearnedParameter {
            between: (
                of[outermost].min(value),
                of[of.len() - 1 - outermost].max(value),
            ),
            name,
            value,
        })
    };
    numbers(learned).into_iter().filter_map(interval).collect()
}

/// Returns the numbers of a definition that determine its behaviour: rates, slots, pauses, work and failures.
fn numbers(definition: &Definition) -> BTreeMap<String, f64> {
    let mut numbers = BTreeMap::new();
    for (entry, load) in &definition.load {
        let rate = match &load.rate {
            Some(Rate::Constant(rate)) => *rate,
            Some(Rate::Profile(points)) if !points.is_empty() => {
                points.iter().map(|point| point.rate).sum::<f64>() / points.len() as f64
            }
            _ => continue,
        };
        numbers.insert(format!("{entry} rate"), rate);
    }
    for service in &definition.services {
        if let Some(slots) = service.concurrency {
            numbers.insert(format!("{} concurrency", service.name), slots as f64);
        }
        if let Some(processors) = service.processors {
            numbers.insert(format!("{} processors", service.name), processors);
        }
        for fault in &service.faults {
            let lasting = fault.lasting.map(|lasting| ("pause", lasting, 1.0));
            // The time between two pauses of an instance.
            let part = fault.share.unwrap_or(1.0) * fault.probability.unwrap_or(1.0);
            let every = fault.every.map(|every| ("pause every", every, part));
            for (what, time, part) in lasting.into_iter().chain(every) {
                let name = format!("{} {what}", service.name);
                numbers.insert(name, time.nanos() as f64 / 1e9 / part);
            }
        }
        if let Some(limit) = service.rate_limit {
            numbers.insert(format!("{} rate_limit", service.name), limit.rate);
        }
        if let Some(rate) = service.error_rate {
            numbers.insert(format!("{} error_rate", service.name), rate);
        }
        for (called, policy) in &service.calls {
            policy_numbers(
                &format!("{} calls {called}", service.name),
                policy,
                &mut numbers,
            );
        }
        for endpoint in &service.endpoints {
            for cache in endpoint.steps.iter().filter_map(|step| step.cache.as_ref()) {
                let name = format!("{}.{} cache", service.name, endpoint.name);
                let ttl = cache.ttl.map(|ttl| ttl.nanos() as f64 / 1e9);
                let size = cache.size.map(|size| size as f64);
                numbers.extend(size.map(|size| (format!("{name} size"), size)));
                numbers.extend(ttl.map(|ttl| (format!("{name} ttl"), ttl)));
            }
            let name = format!("{}.{} work", service.name, endpoint.name);
            numbers.insert(name, work(&endpoint.steps));
        }
    }
    numbers
}

/// Adds the numbers of a policy for calls.
fn policy_numbers(pair: &str, policy: &CallPolicy, numbers: &mut BTreeMap<String, f64>) {
    let seconds = |time: TimeSpan| time.nanos() as f64 / 1e9;
    let retries = policy.retries;
    let values = [
        ("timeout", policy.timeout.map(seconds)),
        ("retries", retries.map(|retries| retries.most as f64)),
        (
            "backoff",
            retries.and_then(|retries| retries.backoff).map(seconds),
        ),
        ("jitter", retries.and_then(|retries| retries.jitter)),
        ("hedge", policy.hedge.map(|hedge| seconds(hedge.after))),
        (
            "connections",
            policy.connections.map(|pool| pool.most as f64),
        ),
        (
            "connect",
            policy
                .connections
                .and_then(|pool| pool.connect)
                .map(seconds),
        ),
    ];
    for (what, value) in values {
        numbers.extend(value.map(|value| (format!("{pair} {what}"), value)));
    }
}

/// Returns the work of a service in seconds per second, given the requests per second at each of its endpoints.
pub(super) fn work_of(service: &ServiceDefinition, rates: &BTreeMap<String, f64>) -> f64 {
    let rate = |one: &EndpointDefinition| rates.get(&one.name).copied().unwrap_or(0.0);
    let endpoints = service.endpoints.iter();
    endpoints.map(|one| rate(one) * work(&one.steps)).sum()
}

/// Returns the mean total work of some steps in seconds, including parallel ones.
fn work(steps: &[StepDefinition]) -> f64 {
    let of_step = |step: &StepDefinition| {
        let own = step.work.as_ref().and_then(|work| work.nanoseconds().ok());
        let own = own.map_or(0.0, |work| work.mean() / 1e9);
        let inner = step
            .parallel
            .iter()
            .flatten()
            .map(|list| work(list))
            .sum::<f64>();
        (own + inner) * step.probability.unwrap_or(1.0) * step.times.unwrap_or(1) as f64
    };
    steps.iter().map(of_step).sum()
}
