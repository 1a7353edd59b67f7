//! A service of a topology: where its instances are, what requests cost, what goes wrong.

use super::fault::TimedFault;
use super::scale::Scale;
use crate::definition::{CheckedDefinition, ServiceDefinition};
use crate::distribution::Sampler;
use crate::duration_text::TimeSpan;
use crate::load::Load;
use crate::node::queue::QueueRules;
use crate::package::Package;
use crate::policy::{Policy, Rate};
use crate::script::Script;
use corsair_observe::{Container, Guess};
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// What a definition says of containers.
fn container(service: &ServiceDefinition) -> Option<Container> {
    let container = Container {
        machine: service.machine.clone(),
        image: service.container.clone(),
        process: service.process.clone(),
    };
    (container != Container::default()).then_some(container)
}

/// A service and where its instances are.
#[derive(Clone, Debug, Serialize)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// What implements it.
    pub package: Package,
    /// What its instances run in, if that is known.
    pub container: Option<Container>,
    /// Machine and container in the names of a graph that was read; empty in all others, as in spigo's.
    pub(crate) named_container: (String, String),
    /// The indices of its instances.
    pub instances: Range<u32>,
    /// How many of them, the last ones, are idle until a command adds them.
    pub(crate) spare: u32,
    /// The indices of the services that it calls.
    pub dependencies: Vec<u32>,
    /// Whether its instances know the registries of all regions.
    pub all_regions: bool,
    /// What requests to it cost.
    pub costs: Costs,
    /// What goes wrong, and when.
    pub faults: Vec<TimedFault>,
    /// What comes in there, if it is an entry point with a load of its own.
    pub load: Option<Load>,
    /// What its endpoints do, if it has a script.
    pub script: Option<Arc<Script>>,
    /// How it calls each of the services that its script calls.
    pub(crate) policies: Vec<Policy>,
    /// How instances are added and removed, if they are.
    pub scaler: Option<ScalerRules>,
    /// How instances are asked whether they are well, if they are.
    pub health_check: Option<HealthRules>,
    /// What stands for its measured times in Guesstimate's models, if something does.
    pub guess: Option<Guess>,
}

/// What requests to a service cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Costs {
    /// How long a request to it travels, if that does not depend on the place.
    pub latency: Option<Sampler>,
    /// How long it works on a request; none: no time at all.
    pub service_time: Option<Sampler>,
    /// How many requests an instance handles at once; none: any number.
    pub concurrency: Option<u32>,
    /// The part of requests that fail, in 2^64ths.
    pub error_bits: u64,
    /// How requests wait for one of these.
    pub queue: QueueRules,
    /// How many processors all work of an instance shares; none: each piece has its own.
    pub processors: Option<f64>,
    /// How many requests an instance takes; none: any number.
    pub rate_limit: Option<Rate>,
}

/// How instances are added and removed, times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScalerRules {
    pub(crate) target: f64,
    /// In each region.
    pub(crate) least: u32,
    pub(crate) begin: u32,
    pub(crate) every: u64,
    pub(crate) delay: u64,
    pub(crate) calm: u64,
}

/// How instances are asked whether they are well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HealthRules {
    pub(crate) every: u64,
    pub(crate) failures: u32,
    pub(crate) successes: u32,
}

impl Service {
    pub(super) fn new(
        service: &ServiceDefinition,
        package: Package,
        instances: Range<u32>,
        checked: &CheckedDefinition,
        scale: Scale,
    ) -> Service {
        let index = |name: &String| checked.index_of(name).map(|index| index as u32);
        let mut dependencies: Vec<u32> = service.dependencies().iter().filter_map(index).collect();
        let compiled = (checked.index_of(&service.name)).and_then(|index| checked.script(index));
        let (script, policies) = match compiled {
            Some((script, policies)) => (Some(Arc::clone(script)), policies.to_vec()),
            None => (None, Vec::new()),
        };
        for &called in script.iter().flat_map(|script| &script.routes) {
            if !dependencies.contains(&called) {
                dependencies.push(called);
            }
        }
        Service {
            name: service.name.clone(),
            package,
            container: container(service),
            named_container: Default::default(),
            instances,
            spare: 0,
            dependencies,
            all_regions: service.dependencies().iter().any(|name| name == "eureka"),
            costs: Costs::new(service),
            faults: service.faults.iter().map(TimedFault::new).collect(),
            load: checked
                .index_of(&service.name)
                .and_then(|index| checked.load(index).cloned()),
            script,
            policies,
            scaler: service.autoscaler.as_ref().map(|scaler| {
                let nanos = |time: Option<TimeSpan>, default: u64| {
                    time.map_or(default * 1_000_000_000, |time| time.nanos())
                };
                ScalerRules {
                    target: scaler.target,
                    least: scale.count(scaler.least.unwrap_or(1)).max(1),
                    begin: scale.count(service.count).max(1),
                    every: nanos(scaler.every, 15),
                    delay: nanos(scaler.delay, 30),
                    calm: nanos(scaler.calm, 300),
                }
            }),
            health_check: service.health_check.as_ref().map(|check| HealthRules {
                every: check.every.nanos(),
                failures: check.failures.map_or(3, |failures| failures as u32),
                successes: check.successes.map_or(1, |successes| successes as u32),
            }),
            guess: service.use_custom_guesstimate.then(|| Guess {
                kind: service.guesstimate_type.clone(),
                expression: service.guesstimate_value.clone(),
            }),
        }
    }
}

impl Costs {
    /// How many slots or shared processors an instance has, if their number is limited.
    pub(crate) fn at_once(&self) -> Option<f64> {
        self.concurrency.map(f64::from).or(self.processors)
    }

    fn new(service: &ServiceDefinition) -> Costs {
        let rate = service.error_rate.unwrap_or(0.0);
        Costs {
            latency: service.latency.as_ref().map(|d| d.sampler()),
            service_time: service
                .service_time
                .as_ref()
                .map(|d| d.sampler())
                .filter(|sampler| !sampler.is_zero()),
            concurrency: service
                .concurrency
                .map(|most| most.clamp(1, i64::from(u32::MAX)) as u32),
            // Casts of floats saturate, so that a rate of 1 is all bits.
            error_bits: (rate * 2f64.powi(64)) as u64,
            queue: service
                .queue
                .as_ref()
                .map(QueueRules::new)
                .unwrap_or_default(),
            processors: service.processors,
            rate_limit: (service.rate_limit.as_ref()).and_then(|limit| Rate::new(limit).ok()),
        }
    }
}
