//! Compiled scripts of endpoints: a list of operations for each service, run by the tasks of its instances.

mod certain;
mod compile;
mod endpoints;

pub(crate) use certain::CertainCalls;
pub(crate) use compile::compile;
pub use endpoints::Endpoints;
use serde::{Deserialize, Serialize};

use crate::distribution::Sampler;
use crate::message::Key;

/// An operation number that stands for no operation.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The script of a service, with the operations of each endpoint. The first endpoint is the default.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Script {
    /// The number of the service's first endpoint among all endpoints.
    pub(crate) first: u16,
    /// The first operation of each endpoint, and its priority, if it has one.
    pub(crate) endpoints: Vec<(u32, Option<u8>)>,
    /// The latency of each endpoint, if it has its own. The list is empty if no endpoint has its own latency.
    pub(crate) latencies: Vec<Option<Sampler>>,
    pub(crate) operations: Vec<Operation>,
    /// The operation that follows a sent message: the end of the script.
    pub(crate) sent: u32,
    /// The first operations of parallel branches.
    pub(crate) branches: Vec<u32>,
    /// The caches of an instance.
    pub(crate) caches: Vec<CacheKind>,
    /// The services that are called; a [`Target`] refers to them by index.
    pub(crate) routes: Vec<u32>,
}

impl Script {
    /// Returns the latency of requests for this endpoint, if it has one.
    #[inline]
    pub(crate) fn latency(&self, key: Key) -> Option<&Sampler> {
        if self.latencies.is_empty() {
            return None;
        }
        let number = match key.as_endpoint() {
            Some((endpoint, ..)) => endpoint.wrapping_sub(self.first),
            None => 0,
        };
        self.latencies.get(usize::from(number))?.as_ref()
    }
}

/// An operation. Unless stated otherwise, the next operation in the list follows.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum Operation {
    Work(Sampler),
    /// Draws a random number of 64 bits, and jumps to an operation if the number is too high.
    Chance {
        done: u64,
        skip: u32,
    },
    /// Calls a service a number of times, and jumps to the fallback if a call fails.
    Call {
        targets: Targets,
        times: u32,
        fallback: u32,
    },
    Send {
        targets: Targets,
        times: u32,
    },
    /// Starts the branches that begin at index `first`, and waits until enough of them have succeeded.
    Fork {
        first: u32,
        branches: u32,
        needed: u32,
        fallback: u32,
    },
    /// Looks up a value in the cache `number`, and jumps to operation `found` if the cache has the value.
    Cache {
        number: u16,
        found: u32,
    },
    Jump(u32),
    End,
}

/// The targets of a call, each with the upper end of its share of the range of `u64`, in ascending order.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Targets(Box<[(u64, Target)]>);

/// The target of a call: a service, by its index among the routes, and the key of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) route: u16,
    pub(crate) key: Key,
}

impl Targets {
    /// Returns the target, if there is only one.
    pub(crate) fn only(&self) -> Option<Target> {
        match *self.0 {
            [(_, only)] => Some(only),
            _ => None,
        }
    }

    /// Draws a target. If there is only one, no random bits are used.
    #[inline]
    pub(crate) fn draw(&self, bits: impl FnOnce() -> u64) -> Target {
        if let Some(only) = self.only() {
            return only;
        }
        let bits = bits();
        let place = self.0.partition_point(|&(end, _)| end < bits);
        self.0[place.min(self.0.len() - 1)].1
    }
}

/// A cache with a limited size or time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CacheKind {
    /// The number of keys among which look-ups choose; `None` if they use the request's key.
    pub(crate) keys: Option<u32>,
    /// The exponent of the keys' popularity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skew: Option<f64>,
    pub(crate) size: u32,
    /// The time to live in nanoseconds.
    pub(crate) ttl: u64,
}
