//! What the endpoints of a service do, how it queues, and how it calls others, as definitions say
//! it.

use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use serde::de::{self, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An endpoint of a service, and what it does for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointDefinition {
    /// Its name, unique in the service.
    pub name: String,
    /// Its priority, from 0 to 7, where a queue orders by it. Left out: that of the request that
    /// asks for it, or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// How long requests to it and their answers travel, if not as those of its service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// What it does, in this order.
    #[serde(default)]
    pub steps: Vec<StepDefinition>,
}

/// A step: one of work, call, send, parallel and cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepDefinition {
    /// Works for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Distribution>,
    /// Calls an endpoint of a service (`cart.list`), or its first (`cart`), and waits for the
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Targets>,
    /// Sends something to an endpoint, and does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Targets>,
    /// Does several lists of steps at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Vec<Vec<StepDefinition>>>,
    /// With parallel: how many of the lists must succeed before the next step begins; the other lists
    /// keep running. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<i64>,
    /// Looks into a cache of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDefinition>,
    /// With cache: what it does if the value is not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub miss: Vec<StepDefinition>,
    /// How likely the step is done at all, from 0 to 1. Left out: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// How many times: call and send one after the other, the lists of parallel at once. Left out:
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<i64>,
    /// With call and parallel: the steps to do if the call or a needed list fails, before the next step;
    /// an empty list ignores the failure. Left out: the request fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<StepDefinition>>,
}

/// What is called: an endpoint, or one of several by weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Targets {
    /// Always this one.
    One(String),
    /// Each with its weight, such as {"cart-v1": 9, "cart-v2": 1}.
    Weighted(BTreeMap<String, f64>),
}

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Targets, D::Error> {
        deserializer.deserialize_any(TargetsVisitor)
    }
}

struct TargetsVisitor;

impl<'de> de::Visitor<'de> for TargetsVisitor {
    type Value = Targets;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an endpoint such as \"cart.list\", or several with weights such as {\"cart-v1\": 9, \"cart-v2\": 1}",
        )
    }

    fn visit_str<E: de::Error>(self, target: &str) -> Result<Targets, E> {
        Ok(Targets::One(target.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Targets, A::Error> {
        let weights = BTreeMap::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Targets::Weighted(weights))
    }
}

/// A cache: of a given hit rate, or with a time to live and a size, filled by what is missed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CacheDefinition {
    /// The part of look-ups that find their value, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
    /// Among how many keys, all alike, look-ups choose. Left out: they look up the request's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<i64>,
    /// How many values it keeps; the one that was not used for longest leaves. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// How long it keeps a value. Left out: for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TimeSpan>,
}

/// How requests wait for one of the instance's slots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct QueueDefinition {
    /// Who is next. Left out: fifo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// How many requests wait at most; more are refused, and where priorities order the queue, the
    /// lowest first. Left out: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Requests that have waited this long are refused, at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<TimeSpan>,
    /// Controlled delay (RFC 8289): requests are refused, ever more often, while all wait too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codel: Option<Codel>,
}

/// Who is next in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The request that arrived first.
    #[default]
    Fifo,
    /// The request that arrived last.
    Lifo,
    /// The request with the highest priority; among equal priorities the one that arrived first.
    Priority,
}

/// Controlled delay (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// How long requests may wait.
    pub target: TimeSpan,
    /// For how long they may wait longer before the first is refused.
    pub interval: TimeSpan,
}

/// How a service calls another: which instance, over how many connections, and what it does when
/// that fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallPolicy {
    /// Which instance is called. Left out: random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
    /// With hash: an instance gets at most this multiple of its even share of the requests under way.
    /// Left out: 1.25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_bound: Option<f64>,
    /// With zone: other zones are called when each instance of the own zone has this many requests
    /// of this caller under way. Left out: only when it has no instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_spill: Option<i64>,
    /// The connections of an instance to this service. Left out: any number, always open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeSpan>,
    /// How long the call may take with all attempts. The deadline travels with the request: who
    /// gets it too late refuses it, and no caller waits longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<TimeSpan>,
    /// Tries again what has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Asks a second instance when the first takes long, and takes the answer that comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hedge: Option<Hedge>,
    /// Stops calling for a while when too many attempts fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerDefinition>,
    /// How many calls of an instance may be under way at once; more fail at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulkhead: Option<i64>,
    /// How many calls an instance may make; more fail at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Leaves out instances that fail again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ejection: Option<Ejection>,
}

/// Which instance is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// Any of them, all alike.
    #[default]
    Random,
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests of this caller under way.
    LeastRequests,
    /// Of two that are drawn, the one with fewer requests of this caller under way.
    TwoChoices,
    /// The one that the request's key is hashed to; the next one, if that has too much to do.
    Hash,
    /// Any in the caller's zone; if there is none, or each has much to do, any other.
    Zone,
}

/// The connections of an instance to a service that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// How many there are at most. Each carries one request at a time.
    pub most: i64,
    /// How many calls may wait for one; more fail at once. Left out: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<i64>,
    /// How long it takes to open one. Left out: no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<TimeSpan>,
}

/// Tries again what has failed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// How many times at most.
    pub most: i64,
    /// How long it waits before the first. Left out: no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<TimeSpan>,
    /// How many times as long it waits before each further one. Left out: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest wait. Left out: 10 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<TimeSpan>,
    /// Which part of each wait is random, from 0 to 1. Left out: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// How many of all calls of an instance may be retries. Left out: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<RetryBudget>,
}

/// How many of all calls of an instance may be retries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetryBudget {
    /// Retries allowed for each call, as a share of the calls.
    pub share: f64,
    /// How many are saved up at most, and there from the beginning. Left out: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
}

/// Asks further instances when the first takes long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hedge {
    /// After how long.
    pub after: TimeSpan,
    /// How many further ones at most, one after the other. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<i64>,
}

/// Stops calling for a while when too many attempts fail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BreakerDefinition {
    /// It opens when this part of the last attempts has failed, above 0 and up to 1.
    pub failures: f64,
    /// How many of the last attempts count, up to 1024; it stays closed before there are that many.
    /// Left out: 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<i64>,
    /// How long it stays open.
    pub open: TimeSpan,
    /// How many attempts it lets through after that, all of which must succeed to close it. Left
    /// out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<i64>,
}

/// Calls per second, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many a second.
    pub rate: f64,
    /// How many at once after a rest. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
}

/// Leaves out instances that fail again and again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ejection {
    /// How many attempts in a row must fail.
    pub failures: i64,
    /// For how long the instance is left out.
    #[serde(rename = "for")]
    pub lasting: TimeSpan,
    /// Which part of the instances is left out at most. Left out: 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}
