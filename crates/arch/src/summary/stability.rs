//! A stability map as JSON.

use crate::stability::{Stability, StabilityMap};
use serde::Serialize;

/// A stability map, for JSON.
#[derive(Clone, Debug, Serialize)]
pub struct MapSummary {
    /// The loads, in requests per second at each entry point.
    pub loads: Vec<f64>,
    /// The name of the second axis.
    pub axis: String,
    /// The points, by load and then by the second axis.
    pub points: Vec<MapRow>,
}

/// A point of a map.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "see `MapPoint`, whose fields these are")]
pub struct MapRow {
    pub load: f64,
    pub value: String,
    pub class: Stability,
    pub stable: f64,
    pub degraded: f64,
    pub metastable: f64,
    pub recovery_seconds: Option<f64>,
    pub recovery_within: Option<f64>,
}

impl MapSummary {
    /// Creates the summary of a map.
    pub fn new(map: &StabilityMap) -> MapSummary {
        let rows = map.points.iter().map(|point| MapRow {
            load: point.load,
            value: map.axis.value(point.place),
            class: point.class,
            stable: point.shares[0],
            degraded: point.shares[1],
            metastable: point.shares[2],
            recovery_seconds: (!point.recovery.is_empty()).then_some(point.recovery.mean),
            recovery_within: point.recovery.within,
        });
        MapSummary {
            loads: map.loads.clone(),
            axis: map.axis.name().to_owned(),
            points: rows.collect(),
        }
    }
}
