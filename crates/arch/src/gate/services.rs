//! Where requests spend their time, before and after a change.

use super::Measured;
use crate::plan::Plan;
use crate::topology::Topology;
use crate::totals::Totals;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The mean contribution of a service to a request from outside. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServiceUse {
    /// The time spent waiting for a slot or for shared processors.
    pub queue: f64,
    /// The time spent working.
    pub work: f64,
    /// The travel time of requests and answers.
    pub network: f64,
    /// The number of requests that the service failed or refused, plus its own calls and attempts that a policy made
    /// fail.
    pub failures: f64,
    /// The utilisation of the service's slots or processors, from 0 to 1, if they are limited.
    pub utilisation: Option<f64>,
}

impl ServiceUse {
    /// Returns the sum of all times.
    pub fn seconds(&self) -> f64 {
        self.queue + self.work + self.network
    }

    fn add(&mut self, other: &ServiceUse, share: f64) {
        self.queue += other.queue * share;
        self.work += other.work * share;
        self.network += other.network * share;
        self.failures += other.failures * share;
        self.utilisation = match (self.utilisation, other.utilisation) {
            (None, None) => None,
            (sum, next) => Some(sum.unwrap_or(0.0) + next.unwrap_or(0.0) * share),
        };
    }
}

/// A service before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceChange {
    /// The name of the service.
    pub name: String,
    /// The mean contribution after the change; `None` if the service was removed.
    pub now: Option<ServiceUse>,
    /// The mean contribution before the change; `None` if the service is new, or nothing is compared.
    pub base: Option<ServiceUse>,
    /// The services that the service calls after the change.
    pub calls: Vec<String>,
}

impl ServiceChange {
    /// Returns the increase of a quantity.
    pub fn increase(&self, of: impl Fn(&ServiceUse) -> f64) -> f64 {
        let value = |side: &Option<ServiceUse>| side.as_ref().map_or(0.0, &of);
        value(&self.now) - value(&self.base)
    }
}

/// Returns the use of each service in a run.
pub(super) fn used(
    topology: &Topology,
    totals: &Totals,
    plan: &Plan,
) -> BTreeMap<String, ServiceUse> {
    let measured = plan.duration.saturating_sub(plan.warm_up);
    let utilisations = topology.utilisations(totals, measured);
    let requests = totals.entries.values();
    let requests: u64 = requests.map(|entry| entry.requests + entry.puts).sum();
    let each = |nanos: u64| nanos as f64 / 1e9 / requests.max(1) as f64;
    // Travel times are counted from the beginning, all other times after the warm-up.
    let share = measured.as_secs_f64() / plan.duration.as_secs_f64().max(1e-9);
    let services = totals.services.iter().map(|(&index, done)| {
        let failures = done.errors + done.refused + done.rejected + done.timeouts;
        let utilisation = utilisations.iter().find(|(known, _)| *known == index);
        let used = ServiceUse {
            queue: each(done.queued),
            work: each(done.worked),
            network: each(done.travelled + done.returned) * share,
            failures: failures as f64 * share / requests.max(1) as f64,
            utilisation: utilisation.map(|(_, part)| *part),
        };
        (topology.services[index as usize].name.clone(), used)
    });
    services.collect()
}

/// Returns the means of all runs, the largest increase of time first.
pub(super) fn changes(runs: &[Vec<Measured>], changed: &Topology) -> Vec<ServiceChange> {
    let called = |name: &String| -> Vec<String> {
        let services = changed.services.iter();
        let of = services.filter(|service| service.name == *name);
        let of = of.flat_map(|service| {
            let routes = service.script.iter().flat_map(|script| &script.routes);
            service.dependencies.iter().chain(routes)
        });
        let of: BTreeSet<&u32> = of.collect();
        of.into_iter()
            .map(|index| changed.services[*index as usize].name.clone())
            .collect()
    };
    let means = |side: &[Measured]| {
        let mut means: BTreeMap<String, ServiceUse> = BTreeMap::new();
        for (name, used) in side.iter().flat_map(|run| &run.services) {
            let mean = means.entry(name.clone()).or_default();
            mean.add(used, 1.0 / side.len() as f64);
        }
        means
    };
    let now = means(&runs[0]);
    let base = runs.get(1).map(|base| means(base)).unwrap_or_default();
    let names: BTreeSet<&String> = now.keys().chain(base.keys()).collect();
    let change = |name: &String| ServiceChange {
        name: name.clone(),
        now: now.get(name).copied(),
        base: base.get(name).copied(),
        calls: called(name),
    };
    let mut changes: Vec<ServiceChange> = names.into_iter().map(change).collect();
    changes.sort_by(|a, b| {
        let increase = |one: &ServiceChange| one.increase(ServiceUse::seconds);
        increase(b).total_cmp(&increase(a))
    });
    changes
}
