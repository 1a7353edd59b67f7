//! A service of a topology: its instances, costs and faults.

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

/// Returns the container of a service, if the definition names one.
fn container(service: &ServiceDefinition) -> Option<Container> {
    let container = Container {
        machine: service.machine.clone(),
        image: service.container.clone(),
        process: service.process.clone(),
    };
    (container != Container::default()).then_some(container)
}

/// A service with the location of its instances.
#[derive(Clone, Debug, Serialize)]
pub struct Service {
    /// The name of the service.
    pub name: String,
    /// The package of the service's instances.
    pub package: Package,
    /// The container of the service's instances, if known.
    pub container: Option<Container>,
    /// The machine and the container in the names of a graph that was read; otherwise empty, as in spigo.
    pub(crate) named_container: (String, String),
    /// The indices of the service's instances.
    pub instances: Range<u32>,
    /// The number of spare instances at the end, which are idle until a command adds them.
    pub(crate) spare: u32,
    /// The indices of the services that this service calls.
    pub dependencies: Vec<u32>,
    /// True if the service's instances know the registries of all regions.
    pub all_regions: bool,
    /// The costs of requests.
    pub costs: Costs,
    /// The faults of the service.
    pub faults: Vec<TimedFault>,
    /// The service's load, if it is an entry point with a separate load.
    pub load: Option<Load>,
    /// The script of the service's endpoints, if there is one.
    pub script: Option<Arc<Script>>,
    /// The policy for each service that the script calls.
    pub(crate) policies: Vec<Policy>,
    /// The rules of the service's autoscaler, if there is one.
    pub scaler: Option<ScalerRules>,
    /// The rules of the service's health checks, if there are any.
    pub health_check: Option<HealthRules>,
    /// The value that replaces the service's measured times in Guesstimate's models, if there is one.
    pub guess: Option<Guess>,
}

/// The costs of requests to a service.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Costs {
    /// The latency of a request, if it does not depend on the place.
    pub latency: Option<Sampler>,
    /// The service time; `None`: zero.
    pub service_time: Option<Sampler>,
    /// The concurrency limit of an instance; `None`: no limit.
    pub concurrency: Option<u32>,
    /// The probability that a request fails, as a multiple of 2^-64.
    pub error_bits: u64,
    /// The rules of the queue for the service's slots.
    pub queue: QueueRules,
    /// The processors that all work of an instance shares; `None`: one for each piece of work.
    pub processors: Option<f64>,
    /// The longest time in nanoseconds that a piece of work has a processor while others wait; `None`: the pieces share
    /// the processors evenly.
    pub time_slice: Option<u64>,
    /// The rate limit of an instance; `None`: no limit.
    pub rate_limit: Option<Rate>,
}

/// The rules of an autoscaler. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScalerRules {
    pub(crate) target: f64,
    /// The minimum number of instances in each region.
    pub(crate) least: u32,
    pub(crate) begin: u32,
    pub(crate) every: u64,
    pub(crate) delay: u64,
    pub(crate) calm: u64,
}

/// The rules of health checks.
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
    /// Returns the number of slots or shared processors of an instance, if it is limited.
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
            time_slice: service.time_slice.map(TimeSpan::nanos),
            rate_limit: (service.rate_limit.as_ref()).and_then(|limit| Rate::new(limit).ok()),
        }
    }
}
