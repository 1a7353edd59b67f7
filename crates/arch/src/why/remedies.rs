//! Single changes that may shorten a percentile: twice the capacity for which requests wait, half of the work on the
//! critical path, or the removal of a fault.

use super::Contribution;
use super::path::Part;
use crate::definition::{Balance, CallPolicy, Definition, ServiceDefinition, StepDefinition};
use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use crate::topology::Topology;
use crate::variant::DefinitionText;
use std::collections::BTreeSet;

/// The smallest share of a part for which changes are suggested.
const LEAST_SHARE: f64 = 0.02;

/// Returns the changes, in the order of the parts they shorten, the largest part first. Each change has a description
/// and the changed definition.
pub(super) fn candidates(
    text: &DefinitionText,
    topology: &Topology,
    contributions: &[Contribution],
) -> Vec<(String, DefinitionText)> {
    let Ok(checked) = text.with(&[]) else {
        return Vec::new();
    };
    let definition = checked.definition();
    let mut made = Candidates {
        text,
        definition,
        known: BTreeSet::new(),
        list: Vec::new(),
    };
    made.faults();
    for part in contributions
        .iter()
        .filter(|part| part.share >= LEAST_SHARE)
    {
        if topology
            .services
            .iter()
            .any(|service| service.name == part.service)
        {
            made.of(part);
        }
    }
    made.list
}

struct Candidates<'a> {
    text: &'a DefinitionText,
    definition: &'a Definition,
    known: BTreeSet<String>,
    list: Vec<(String, DefinitionText)>,
}

impl Candidates<'_> {
    fn add(&mut self, what: String, change: impl FnOnce(&mut Definition)) {
        let mut changed = self.definition.clone();
        change(&mut changed);
        if changed != *self.definition && self.known.insert(what.clone()) {
            let text = DefinitionText::new(changed.to_text(), self.text.file());
            self.list.push((what, text));
        }
    }

    fn service(&mut self, name: &str, what: &str, change: impl FnOnce(&mut ServiceDefinition)) {
        self.add(format!("{name}: {what}"), |definition| {
            let service = definition.services.iter_mut().find(|one| one.name == name);
            if let Some(service) = service {
                change(service);
            }
        });
    }

    /// Adds a change for each fault: the same definition without it.
    fn faults(&mut self) {
        for service in &self.definition.services {
            for number in 0..service.faults.len() {
                let what = format!(
                    "no {:?} fault (number {})",
                    service.faults[number].kind,
                    number + 1
                );
                self.service(&service.name, &what.to_lowercase(), |one| {
                    one.faults.remove(number);
                });
            }
        }
        for number in 0..self.definition.faults.len() {
            self.add(
                format!("no fault {} of a place", number + 1),
                |definition| {
                    definition.faults.remove(number);
                },
            );
        }
        for number in 0..self.definition.links.len() {
            self.add(format!("no fault {} of a link", number + 1), |definition| {
                definition.links.remove(number);
            });
        }
    }

    /// Adds the changes that shorten a part.
    fn of(&mut self, part: &Contribution) {
        let name = part.service.as_str();
        match part.part {
            Part::Queue => {
                self.service(name, "twice the slots", |one| {
                    one.concurrency = one.concurrency.map(|slots| slots * 2);
                });
                self.replicas(name);
            }
            Part::Processors => {
                self.service(name, "twice the processors", |one| {
                    one.processors = one.processors.map(|count| count * 2.0);
                });
                self.replicas(name);
            }
            Part::Work | Part::Slowdown => self.service(name, "half the work", halve_work),
            Part::Network => self.service(name, "half the latency", |one| {
                for latency in one.latency.iter_mut() {
                    *latency = half(latency);
                }
                for latency in one
                    .endpoints
                    .iter_mut()
                    .filter_map(|one| one.latency.as_mut())
                {
                    *latency = half(latency);
                }
            }),
            Part::BeforeCall | Part::TimeOut => self.calls(part),
            Part::NoAnswer | Part::Other => {}
        }
    }

    fn replicas(&mut self, name: &str) {
        self.service(name, "twice the instances", |one| one.count *= 2);
        self.service(name, "half the work", halve_work);
        let callers = self.definition.services.iter();
        let callers =
            callers.filter(|one| !one.endpoints.is_empty() && one.called().contains(name));
        let callers: Vec<String> = callers.map(|one| one.name.clone()).collect();
        for caller in callers {
            let what = format!("calls of {name} go to the least busy instance");
            self.service(&caller, &what, |one| {
                policy(one, name).balance = Some(Balance::LeastRequests);
            });
        }
    }

    /// Adds changes of the policy by which a service calls another.
    fn calls(&mut self, part: &Contribution) {
        let (name, Some(called)) = (part.service.as_str(), part.called.as_deref()) else {
            return;
        };
        self.service(name, &format!("twice the connections to {called}"), |one| {
            if let Some(connections) = &mut policy(one, called).connections {
                connections.most *= 2;
            }
        });
        self.service(
            name,
            &format!("half the time-out of calls of {called}"),
            |one| {
                let policy = policy(one, called);
                policy.timeout = policy.timeout.map(|time| TimeSpan(time.0 / 2));
            },
        );
        self.service(
            name,
            &format!("twice the time-out of calls of {called}"),
            |one| {
                let policy = policy(one, called);
                policy.timeout = policy.timeout.map(|time| TimeSpan(time.0 * 2));
            },
        );
        self.service(
            name,
            &format!("half the back-off of calls of {called}"),
            |one| {
                if let Some(retries) = &mut policy(one, called).retries {
                    retries.backoff = retries.backoff.map(|time| TimeSpan(time.0 / 2));
                }
            },
        );
        self.service(name, &format!("no retries of calls of {called}"), |one| {
            policy(one, called).retries = None;
        });
    }
}

/// Returns the policy for calls to `called`: its own policy, or a copy of the service's policy for all calls.
fn policy<'a>(service: &'a mut ServiceDefinition, called: &str) -> &'a mut CallPolicy {
    let of_all = service.calls.get("*").cloned().unwrap_or_default();
    service.calls.entry(called.to_owned()).or_insert(of_all)
}

fn halve_work(service: &mut ServiceDefinition) {
    if let Some(time) = &mut service.service_time {
        *time = half(time);
    }
    let steps = service.endpoints.iter_mut().flat_map(|one| &mut one.steps);
    steps.for_each(halve_step);
}

fn halve_step(step: &mut StepDefinition) {
    if let Some(work) = &mut step.work {
        *work = half(work);
    }
    let lists = step.parallel.iter_mut().flatten().chain(&mut step.fallback);
    lists.flatten().chain(&mut step.miss).for_each(halve_step);
}

/// Returns the distribution with all times halved.
fn half(of: &Distribution) -> Distribution {
    let half = |time: TimeSpan| TimeSpan(time.0 / 2);
    match of.clone() {
        Distribution::Uniform(from, to) => Distribution::Uniform(half(from), half(to)),
        Distribution::Exponential(mean) => Distribution::Exponential(half(mean)),
        Distribution::Normal { mean, deviation } => Distribution::Normal {
            mean: half(mean),
            deviation: half(deviation),
        },
        Distribution::Lognormal { median, sigma } => Distribution::Lognormal {
            median: half(median),
            sigma,
        },
        Distribution::Pareto { least, shape } => Distribution::Pareto {
            least: half(least),
            shape,
        },
        Distribution::Weibull { scale, shape } => Distribution::Weibull {
            scale: half(scale),
            shape,
        },
        Distribution::Gamma { scale, shape } => Distribution::Gamma {
            scale: half(scale),
            shape,
        },
        Distribution::Empirical(times) => {
            Distribution::Empirical(times.into_iter().map(half).collect())
        }
        Distribution::Percentiles(points) => Distribution::Percentiles(
            points
                .into_iter()
                .map(|(key, time)| (key, half(time)))
                .collect(),
        ),
        Distribution::Constant(time) => Distribution::Constant(half(time)),
    }
}
