//! What goes wrong, and what is done about it from outside, as definitions say it.

use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use serde::{Deserialize, Serialize};

/// Something that goes wrong with a service for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// When, after the load has begun.
    pub at: TimeSpan,
    /// For how long; left out: until the end. For restart: for how long each instance is down.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<TimeSpan>,
    /// Again after so long, until the load ends. Left out: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// How likely it is each time, from 0 to 1. Left out: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Which part of the instances, above 0 and up to 1; at least one instance. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// For slow: by how much times are multiplied. Left out: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// For restart: how long after one instance the next has its turn. Left out: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<TimeSpan>,
    /// For restart: how long before it goes down an instance leaves its registries. Left out: no
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<TimeSpan>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// The instance is gone: requests to it fail, and it leaves the registry.
    Kill,
    /// The instance does nothing; what arrives waits.
    Pause,
    /// The instance takes longer.
    Slow,
    /// The instance is cut off from other zones: what it sends there, and gets from there, is
    /// lost.
    Partition,
    /// One instance after the other leaves its registries, goes down, and comes back.
    Restart,
}

// The fields of a fault again: serde cannot refuse unknown keys where one struct is flattened into another.
/// Something that goes wrong in a place: with all services there, or some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlaceFault {
    /// The region, such as us-east-1. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The zone of the region, such as zoneA. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The services. Left out: all that take requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// What goes wrong.
    pub kind: FaultKind,
    /// When, after the load has begun.
    pub at: TimeSpan,
    /// For how long; left out: until the end. For restart: for how long each instance is down.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<TimeSpan>,
    /// Again after so long, until the load ends. Left out: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// How likely it is each time, from 0 to 1. Left out: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Which part of the instances there, above 0 and up to 1; at least one. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// For slow: by how much times are multiplied. Left out: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// For restart: how long after one instance the next has its turn. Left out: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<TimeSpan>,
    /// For restart: how long before it goes down an instance leaves its registries. Left out: no
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<TimeSpan>,
}

impl PlaceFault {
    /// What goes wrong, without where.
    pub(crate) fn fault(&self) -> Fault {
        Fault {
            kind: self.kind,
            at: self.at,
            lasting: self.lasting,
            every: self.every,
            probability: self.probability,
            share: self.share,
            factor: self.factor,
            gap: self.gap,
            drain: self.drain,
        }
    }
}

/// Something that goes wrong on the way from one place to another: with requests, answers and
/// values, in this direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkFault {
    /// Where what is sent comes from. Left out: anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Side>,
    /// Where it goes. Left out: anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Side>,
    /// When, after the load has begun.
    pub at: TimeSpan,
    /// For how long; left out: until the end.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<TimeSpan>,
    /// Again after so long, until the load ends. Left out: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// How likely it is each time, from 0 to 1. Left out: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Which part is lost, from 0 to 1; 1 is a partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// How much longer it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Distribution>,
    /// Which part arrives twice, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<f64>,
}

/// One side of a link: all that is left out may be any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The region, such as us-east-1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The zone of the region, such as zoneA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

/// Adds and removes instances, in each region by itself, so that they are as busy as they should
/// be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AutoscalerDefinition {
    /// How busy, above 0 and up to 1: the part of slots, or of processors, that is in use.
    pub target: f64,
    /// How many instances there are at least in each region. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<i64>,
    /// How many there are at most in each region.
    pub most: i64,
    /// How often it looks. Left out: every 15 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// How long it takes until an instance that is added is there. Left out: 30 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<TimeSpan>,
    /// For how long there must have been too many before some are removed. Left out: 5 min.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<TimeSpan>,
}

/// Asks instances whether they are well, and takes those that do not answer out of the registries
/// until they do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HealthCheckDefinition {
    /// How often it asks; an answer must come before it asks again.
    pub every: TimeSpan,
    /// How many questions in a row must have no answer. Left out: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<i64>,
    /// How many in a row must have one until the instance is taken back. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successes: Option<i64>,
}
