//! The JSON form of the result of a capacity search.

use crate::capacity::{Capacity, Point, Search, Sized};
use crate::topology::Topology;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of a search for the highest load that an architecture sustains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacitySummary {
    /// The name of the architecture.
    pub arch: String,
    /// The limit of the 99th percentile, if there is such an objective.
    pub limit_seconds: Option<f64>,
    /// The objectives in text form.
    pub slos: Vec<String>,
    /// True if the architecture limits the load. If not, response times are equal at any load.
    pub limited: bool,
    /// Services that take any number of requests at once.
    pub unlimited: Vec<String>,
    /// The highest load that the architecture sustains.
    pub load: Option<f64>,
    /// The highest load that the architecture certainly sustains.
    pub load_least: Option<f64>,
    /// The lowest load that the architecture certainly does not sustain.
    pub load_most: Option<f64>,
    /// True if the highest load of the search meets the objectives.
    pub beyond: bool,
    /// The highest loads that variants of the definition sustain, in ascending order, if variants were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variants: Option<Vec<f64>>,
    /// The loads that were tried, in ascending order.
    pub points: Vec<CapacityPoint>,
}

/// A load that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "see `Point`, whose fields these are")]
pub struct CapacityPoint {
    pub load: f64,
    pub throughput: f64,
    pub p50_seconds: f64,
    pub p95_seconds: f64,
    pub p99_seconds: f64,
    /// Half the width of the 95 % confidence interval of the 99th percentile.
    pub p99_within_seconds: Option<f64>,
    pub errors: f64,
    /// The measured value of each objective: seconds, or a fraction of the requests; `None` without requests.
    pub objectives: Vec<Option<f64>>,
    /// The utilisation of slots or processors of services with a limit.
    pub utilisations: BTreeMap<String, f64>,
    pub runs: u32,
    pub holds: bool,
}

impl CapacityPoint {
    fn new(topology: &Topology, point: &Point) -> CapacityPoint {
        let named = |&(service, part): &(u32, f64)| {
            let name = topology.services[service as usize].name.clone();
            (name, part)
        };
        CapacityPoint {
            load: point.load,
            throughput: point.throughput,
            p50_seconds: point.p50.as_secs_f64(),
            p95_seconds: point.p95.as_secs_f64(),
            p99_seconds: point.p99.as_secs_f64(),
            p99_within_seconds: point.p99_within.map(|within| within.as_secs_f64()),
            errors: point.errors,
            objectives: (point.objectives.iter())
                .map(|of| (!of.is_empty()).then_some(of.mean))
                .collect(),
            utilisations: point.utilisations.iter().map(named).collect(),
            runs: point.runs,
            holds: point.holds,
        }
    }
}

impl CapacitySummary {
    /// Creates the summary of a search on a topology with the name `arch`.
    pub fn new(
        arch: &str,
        search: &Search,
        topology: &Topology,
        found: &Capacity,
    ) -> CapacitySummary {
        let points = found.points.iter();
        CapacitySummary {
            arch: arch.to_owned(),
            limit_seconds: search.p99_limit().map(|limit| limit.as_secs_f64()),
            slos: search.slos.iter().map(ToString::to_string).collect(),
            limited: found.limited,
            unlimited: topology
                .unlimited()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            load: found.load,
            load_least: found.between.0,
            load_most: found.between.1,
            beyond: found.beyond,
            variants: None,
            points: points
                .map(|point| CapacityPoint::new(topology, point))
                .collect(),
        }
    }
}

/// The number of instances of a service that a load needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstancesSummary {
    /// The name of the architecture.
    pub arch: String,
    /// The name of the service.
    pub service: String,
    /// The limit of the 99th percentile, if there is such an objective.
    pub limit_seconds: Option<f64>,
    /// The objectives in text form.
    pub slos: Vec<String>,
    /// The smallest sufficient number of instances, if one was found.
    pub instances: Option<u32>,
    /// The tried numbers of instances, in ascending order.
    pub points: Vec<InstancesPoint>,
}

/// A number of instances that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstancesPoint {
    /// The number of instances.
    pub instances: u32,
    /// The measurements with this number of instances.
    #[serde(flatten)]
    pub point: CapacityPoint,
}

impl InstancesSummary {
    /// Creates the summary of a search for instances of a service, in a topology with the name `arch`.
    pub fn new(
        arch: &str,
        service: &str,
        search: &Search,
        topology: &Topology,
        found: &Sized,
    ) -> InstancesSummary {
        let points = found
            .points
            .iter()
            .map(|(instances, point)| InstancesPoint {
                instances: *instances,
                point: CapacityPoint::new(topology, point),
            });
        InstancesSummary {
            arch: arch.to_owned(),
            service: service.to_owned(),
            limit_seconds: search.p99_limit().map(|limit| limit.as_secs_f64()),
            slos: search.slos.iter().map(ToString::to_string).collect(),
            instances: found.instances,
            points: points.collect(),
        }
    }
}
