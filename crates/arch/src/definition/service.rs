//! Endpoints, queues and call policies of a service in definitions.

use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use serde::de::{self, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An endpoint of a service and the steps of each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointDefinition {
    /// The name, unique in the service. Example: `"list"`.
    pub name: String,
    /// The priority, from 0 to 7, for queues that order by priority. Default: the priority of the calling request, or 0.
    /// Example: `5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The network latency of requests to the endpoint and of its answers. Default: the latency of its service. Example:
    /// `{"exponential": "300us"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// The steps, in this order. Default: `[]`. Example: `[{"work": "2ms"}, {"call": "db"}]`.
    #[serde(default)]
    pub steps: Vec<StepDefinition>,
}

/// A step: exactly one of work, call, send, parallel and cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepDefinition {
    /// Works for this time. Default: none. Example: `{"exponential": "2ms"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Distribution>,
    /// Calls an endpoint of a service (`cart.list`), or the first endpoint (`cart`), and waits for the answer. Default:
    /// none. Example: `"cart.list"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Targets>,
    /// Sends a message to an endpoint without waiting for an answer. Default: none. Example: `"mail"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Targets>,
    /// Runs several lists of steps concurrently. Default: none. Example: `[[{"call": "cart"}], [{"call": "search"}]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Vec<Vec<StepDefinition>>>,
    /// With parallel: the number of lists that must succeed before the next step begins; the other lists keep running.
    /// Default: all. Example: `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<i64>,
    /// Looks up a value in a cache of the instance. Default: none. Example: `{"size": 1000, "ttl": "10s"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDefinition>,
    /// With cache: the steps after a miss. Default: `[]`. Example: `[{"call": "db"}]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub miss: Vec<StepDefinition>,
    /// The probability that the step runs, from 0 to 1. Default: `1`. Example: `0.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The number of repetitions: call and send in sequence, the lists of parallel concurrently. Default: `1`. Example:
    /// `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<i64>,
    /// With call and parallel: the steps to run if the call or a required list fails; an empty list ignores the failure.
    /// Default: the request fails. Example: `[{"work": "500us"}]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<StepDefinition>>,
}

impl StepDefinition {
    /// Returns the targets of the step's calls and messages, including those of nested steps.
    pub(crate) fn targets(&self) -> Vec<&str> {
        let own = [&self.call, &self.send].into_iter().flatten();
        let own = own.flat_map(|targets| match targets {
            Targets::One(target) => vec![target.as_str()],
            Targets::Weighted(weights) => weights.keys().map(String::as_str).collect(),
        });
        let lists = self.parallel.iter().flatten().chain(&self.fallback);
        let within = lists.flatten().chain(&self.miss);
        own.chain(within.flat_map(StepDefinition::targets))
            .collect()
    }
}

/// The target of a call: one endpoint, or a weighted choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Targets {
    /// Always this endpoint.
    One(String),
    /// A random choice by weight, such as {"cart-v1": 9, "cart-v2": 1}.
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

/// A cache: either with a given hit rate, or with a time to live and a size, filled by misses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CacheDefinition {
    /// The fraction of look-ups that hit, from 0 to 1. Default: a look-up hits if the cache has the value. Example:
    /// `0.9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
    /// The number of keys. Default: look-ups use the request's key. Example: `10000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<i64>,
    /// The exponent of the keys' popularity (Zipf's law), up to 3. Default: all keys are equally likely. Example: `0.9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<f64>,
    /// The maximum number of values; the least recently used value is evicted. Default: no limit. Example: `1000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// The time to live of a value. Default: no expiry. Example: `"10s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TimeSpan>,
}

/// The queue for an instance's slots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct QueueDefinition {
    /// The order in which requests leave the queue. Default: `"fifo"`. Example: `"lifo"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The maximum number of waiting requests. Further requests are refused; if priorities order the queue, the lowest
    /// priority is refused first. Default: no limit. Example: `100`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// The longest wait; a request that has waited this long is refused. Default: no limit. Example: `"1s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<TimeSpan>,
    /// Controlled delay (RFC 8289): while all requests wait longer than the target, requests are refused at a growing
    /// rate. Default: none. Example: `{"target": "5ms", "interval": "100ms"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codel: Option<Codel>,
}

/// The order in which requests leave a queue.
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
    /// The acceptable waiting time. Example: `"5ms"`.
    pub target: TimeSpan,
    /// The time for which waits must exceed the target before the first request is refused. Example: `"100ms"`.
    pub interval: TimeSpan,
}

/// The policy for calls to a service: choice of instance, connections and handling of failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallPolicy {
    /// The choice of the instance. Default: `"random"`. Example: `"two_choices"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
    /// With hash: the maximum load of an instance, as a multiple of its even share of the requests in flight. Default:
    /// `1.25`. Example: `1.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_bound: Option<f64>,
    /// With zone: other zones are used when each instance of the caller's zone has this number of requests of the caller in
    /// flight. Default: only when the zone has no instance. Example: `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_spill: Option<i64>,
    /// The connections of an instance to the service. Default: no limit, always open. Example:
    /// `{"most": 20, "waiting": 100}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// The time-out of an attempt. Default: no limit. Example: `"200ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeSpan>,
    /// The time limit of the call with all its attempts. The deadline travels with the request: an instance that receives
    /// the request too late refuses it, and no caller waits past the deadline. Default: no limit. Example: `"1s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<TimeSpan>,
    /// Retries after failed attempts. Default: none. Example: `{"most": 2, "backoff": "50ms"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Asks a second instance when the first is slow, and takes the first answer. Default: none. Example:
    /// `{"after": "20ms"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hedge: Option<Hedge>,
    /// Stops calls temporarily when too many attempts fail. Default: none. Example: `{"failures": 0.5, "open": "5s"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerDefinition>,
    /// The maximum number of concurrent calls of an instance; further calls fail at once. Default: no limit. Example:
    /// `40`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulkhead: Option<i64>,
    /// The maximum rate of calls of an instance; further calls fail at once. Default: no limit. Example:
    /// `{"rate": 400, "burst": 20}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Excludes instances that fail repeatedly. Default: none. Example: `{"failures": 5, "for": "30s"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ejection: Option<Ejection>,
}

/// The choice of the instance for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// Any instance, with equal probability.
    #[default]
    Random,
    /// The instances in turn.
    RoundRobin,
    /// The instance with the fewest requests of this caller in flight.
    LeastRequests,
    /// Of two random instances, the one with fewer requests of this caller in flight.
    TwoChoices,
    /// The instance that the request's key hashes to, or the next one if that instance is overloaded.
    Hash,
    /// Any instance in the caller's zone; an instance of another zone if the caller's zone has none or all are busy.
    Zone,
}

/// The connections of an instance to a service that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// The maximum number of connections. Each carries one request at a time. Example: `20`.
    pub most: i64,
    /// The maximum number of calls that wait for a connection; further calls fail at once. Default: no limit. Example:
    /// `100`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<i64>,
    /// The time to open a connection. Default: `"0s"`. Example: `"2ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<TimeSpan>,
}

/// Retries after failed attempts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// The maximum number of retries. Example: `2`.
    pub most: i64,
    /// The wait before the first retry. Default: `"0s"`. Example: `"50ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<TimeSpan>,
    /// The factor by which the wait grows with each retry. Default: `2`. Example: `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest wait. Default: `"10s"`. Example: `"1s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<TimeSpan>,
    /// The random fraction of each wait, from 0 to 1. Default: `0`. Example: `0.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// The limit of retries as a fraction of calls. Default: no limit. Example: `{"share": 0.2}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<RetryBudget>,
}

/// Limits the retries of each instance to a fraction of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetryBudget {
    /// Retries allowed for each call, as a fraction of the calls. Example: `0.2`.
    pub share: f64,
    /// The maximum number of saved retries; the budget starts with this number. Default: `10`. Example: `20`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
}

/// Asks further instances when the first is slow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hedge {
    /// The wait before each further request. Example: `"20ms"`.
    pub after: TimeSpan,
    /// The maximum number of further requests, one after the other. Default: `1`. Example: `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<i64>,
}

/// Stops calls temporarily when too many attempts fail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BreakerDefinition {
    /// The fraction of failed attempts that opens the breaker, above 0 and up to 1. Example: `0.5`.
    pub failures: f64,
    /// The number of most recent attempts that count, up to 1024; the breaker stays closed until that number is reached.
    /// Default: `20`. Example: `100`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<i64>,
    /// The time that the breaker stays open. Example: `"5s"`.
    pub open: TimeSpan,
    /// The number of attempts that the breaker lets through after the open time; if all succeed, it closes. Default: `1`.
    /// Example: `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<i64>,
}

/// A rate limit with evenly spaced calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Calls per second. Example: `300`.
    pub rate: f64,
    /// The maximum number of calls at once after a time without calls. Default: `1`. Example: `50`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
}

/// Excludes instances that fail repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ejection {
    /// The number of consecutive failed attempts that excludes an instance. Example: `5`.
    pub failures: i64,
    /// The time for which the instance is excluded. Example: `"30s"`.
    #[serde(rename = "for")]
    pub lasting: TimeSpan,
    /// The maximum fraction of excluded instances. Default: `0.5`. Example: `0.25`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}
