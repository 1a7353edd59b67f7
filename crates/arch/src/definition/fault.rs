//! Faults, autoscalers and health checks in definitions.

use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use serde::{Deserialize, Serialize};

/// A fault of a service's instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The kind of fault. Example: `"slow"`.
    pub kind: FaultKind,
    /// The time of the fault, from the start of the load. Example: `"10s"`.
    pub at: TimeSpan,
    /// The duration. Default: until the end. For restart: the downtime of each instance. Example: `"5s"`.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<TimeSpan>,
    /// The interval at which the fault repeats, until the load ends. Default: once. Example: `"1m"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// The probability of each occurrence, from 0 to 1. Default: `1`. Example: `0.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The fraction of the instances, above 0 and up to 1; at least one instance. Default: `1`. Example: `0.25`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// For slow: the factor by which times are multiplied. Default: `10`. Example: `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// For restart: the pause between two instances. Default: `"0s"`. Example: `"10s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<TimeSpan>,
    /// For restart: the time between leaving the registries and going down. Default: `"0s"`. Example: `"5s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<TimeSpan>,
}

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// The instance is gone: requests to it fail, and it leaves the registry.
    Kill,
    /// The instance does nothing; requests to it wait.
    Pause,
    /// The instance works more slowly.
    Slow,
    /// The instance is cut off from other zones: messages between it and other zones are lost.
    Partition,
    /// One instance after the other leaves its registries, goes down, and comes back.
    Restart,
}

// serde cannot refuse unknown keys if one struct is flattened into another, so `PlaceFault` repeats the
// fields of `Fault`.
/// A fault of all or some services in a region or zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlaceFault {
    /// The region, such as us-east-1. Default: all. Example: `"us-east-1"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The zone of the region, such as zoneA. Default: all. Example: `"zoneA"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The services. Default: all services that accept requests. Example: `["cart", "search"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// The kind of fault. Example: `"kill"`.
    pub kind: FaultKind,
    /// The time of the fault, from the start of the load. Example: `"10s"`.
    pub at: TimeSpan,
    /// The duration. Default: until the end. For restart: the downtime of each instance. Example: `"5s"`.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<TimeSpan>,
    /// The interval at which the fault repeats, until the load ends. Default: once. Example: `"1m"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// The probability of each occurrence, from 0 to 1. Default: `1`. Example: `0.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The fraction of the instances in the region or zone, above 0 and up to 1; at least one instance. Default: `1`.
    /// Example: `0.25`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// For slow: the factor by which times are multiplied. Default: `10`. Example: `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// For restart: the pause between two instances. Default: `"0s"`. Example: `"10s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<TimeSpan>,
    /// For restart: the time between leaving the registries and going down. Default: `"0s"`. Example: `"5s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<TimeSpan>,
}

impl PlaceFault {
    /// Returns the fault without its place.
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

/// A fault of the link from one place to another, which affects requests, answers and values in this
/// direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkFault {
    /// The sending side. Default: any. Example: `{"zone": "zoneA"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Side>,
    /// The receiving side. Default: any. Example: `{"service": "db"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Side>,
    /// The time of the fault, from the start of the load. Example: `"10s"`.
    pub at: TimeSpan,
    /// The duration. Default: until the end. Example: `"5s"`.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<TimeSpan>,
    /// The interval at which the fault repeats, until the load ends. Default: once. Example: `"1m"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// The probability of each occurrence, from 0 to 1. Default: `1`. Example: `0.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The fraction of messages that are lost, from 0 to 1; 1 is a partition. Default: `0`. Example: `0.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The additional latency. Default: `"0s"`. Example: `{"exponential": "2ms"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Distribution>,
    /// The fraction of messages that arrive twice, from 0 to 1. Default: `0`. Example: `0.05`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<f64>,
}

/// One side of a link; a field that is left out matches everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The region, such as us-east-1. Default: any. Example: `"us-east-1"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The zone of the region, such as zoneA. Default: any. Example: `"zoneA"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The service. Default: any. Example: `"db"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

/// Adds and removes instances in each region separately to keep their utilisation near a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AutoscalerDefinition {
    /// The target utilisation of slots or processors, above 0 and up to 1. Example: `0.6`.
    pub target: f64,
    /// The minimum number of instances in each region. Default: `1`. Example: `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<i64>,
    /// The maximum number of instances in each region. Example: `10`.
    pub most: i64,
    /// The interval between two decisions. Default: `"15s"`. Example: `"30s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<TimeSpan>,
    /// The start-up time of an added instance. Default: `"30s"`. Example: `"1m"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<TimeSpan>,
    /// The time for which there must be too many instances before some are removed. Default: `"5m"`. Example: `"10m"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<TimeSpan>,
}

/// Checks instances periodically. An instance that does not answer is removed from the registries until it answers
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HealthCheckDefinition {
    /// The interval between two checks; an answer must arrive before the next check. Example: `"5s"`.
    pub every: TimeSpan,
    /// The number of consecutive checks without an answer that removes an instance. Default: `3`. Example: `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<i64>,
    /// The number of consecutive checks with an answer that restores the instance. Default: `1`. Example: `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successes: Option<i64>,
}
