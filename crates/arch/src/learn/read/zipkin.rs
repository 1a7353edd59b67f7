//! Zipkin's JSON, version 2 (<https://zipkin.io/zipkin-api/>) and the version 1 that spigo writes.

use super::{Side, SpanSet, end_of, ids};
use crate::learn::names::Endpoint as At;
use serde::Deserialize;

/// A span of either version. Times are microseconds.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace_id: String,
    pub(super) id: String,
    pub(super) parent_id: String,
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) timestamp: Option<f64>,
    pub(super) duration: Option<f64>,
    pub(super) local_endpoint: Option<Endpoint>,
    pub(super) remote_endpoint: Option<Endpoint>,
    pub(super) failed: bool,
    /// True if a rate limit refused the request.
    pub(super) refused: bool,
    /// A hash of the key of the request, or 0.
    pub(super) request_key: u64,
    /// The two ends of the exchange, in version 1.
    pub(super) annotations: Vec<Annotation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Endpoint {
    service_name: Option<String>,
    ipv4: Option<String>,
    ipv6: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Annotation {
    endpoint: Option<Endpoint>,
    timestamp: f64,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tag {
    pub(super) key: String,
}

fn nanos(micros: f64) -> u64 {
    // Casts of floats saturate.
    (micros * 1e3) as u64
}

fn place(recorded: &mut SpanSet, endpoint: Option<&Endpoint>) -> At {
    let name = endpoint.and_then(|endpoint| endpoint.service_name.as_deref());
    let name = name.filter(|name| !name.is_empty()).unwrap_or("unknown");
    let address = endpoint.and_then(|e| e.ipv4.as_deref().or(e.ipv6.as_deref()));
    let instance = address.map(|address| format!("{name} {address}"));
    recorded.names.endpoint(name, instance.as_deref())
}

fn peer(recorded: &mut SpanSet, endpoint: Option<&Endpoint>) -> Option<u32> {
    let name = endpoint?.service_name.as_deref()?;
    (!name.is_empty()).then(|| recorded.names.endpoint(name, None).service)
}

impl Span {
    pub(super) fn add_to(self, recorded: &mut SpanSet) -> Result<(), String> {
        let (trace, id, parent) = ids(&self.trace_id, &self.id, &self.parent_id)?;
        let operation = recorded.names.number(&self.name);
        let ends = |value: &str| self.annotations.iter().find(|a| a.value == value);
        let of_version_1 = ["cs", "sr", "ss", "cr"].iter().any(|v| ends(v).is_some());
        let about = (
            trace,
            id,
            parent,
            operation,
            ([self.failed, self.refused], self.request_key),
        );
        if !of_version_1 {
            let Some(begin) = self.timestamp else {
                return Err("a span has no timestamp; remove it".to_owned());
            };
            // A span without a duration has no answer.
            let side = match (self.kind.as_deref(), self.duration) {
                (Some("CLIENT"), Some(_)) => Side::Client,
                (Some("SERVER"), Some(_)) => Side::Server,
                (Some("CLIENT"), None) => Side::Producer,
                (Some("SERVER"), None) => Side::Consumer,
                (Some("PRODUCER"), _) => Side::Producer,
                (Some("CONSUMER"), _) => Side::Consumer,
                _ => Side::Unknown,
            };
            let at = place(recorded, self.local_endpoint.as_ref());
            let peer = peer(recorded, self.remote_endpoint.as_ref());
            let lasted = nanos(self.duration.unwrap_or(0.0));
            let begin = nanos(begin);
            let span = (side, at, peer, begin, Some(end_of(begin, lasted)));
            return add_side(recorded, span, about);
        }
        let (sent, received) = (ends("cs"), ends("cr"));
        let (arrived, answered) = (ends("sr"), ends("ss"));
        // A request that arrived and was never answered was sent one way.
        let one_way = received.is_none() && answered.is_none() && arrived.is_some();
        for (first, last, other, sides) in [
            (sent, received, arrived, [Side::Client, Side::Producer]),
            (arrived, answered, sent, [Side::Server, Side::Consumer]),
        ] {
            let Some(any) = first.or(last) else {
                continue;
            };
            let at = place(recorded, any.endpoint.as_ref());
            let peer = peer(recorded, other.and_then(|other| other.endpoint.as_ref()));
            let begin = nanos(any.timestamp);
            let end = last.map(|last| nanos(last.timestamp));
            let span = (sides[usize::from(one_way)], at, peer, begin, end);
            add_side(recorded, span, about)?;
        }
        Ok(())
    }
}

/// The side of a span, its location, the location of its peer, its start and its end.
type Sided = (Side, At, Option<u32>, u64, Option<u64>);

/// The ids of a trace, a span and its parent, the operation, whether it failed or was refused, and the key.
type About = (u128, u64, u64, u32, ([bool; 2], u64));

fn add_side(
    recorded: &mut SpanSet,
    (side, at, peer, begin, end): Sided,
    (trace, id, parent, operation, ([failed, refused], key)): About,
) -> Result<(), String> {
    recorded.add(super::Span {
        trace,
        id,
        parent,
        side,
        failed,
        refused,
        key,
        service: at.service,
        instance: at.instance,
        region: at.region,
        operation,
        peer,
        begin,
        end: end.unwrap_or(begin).max(begin),
        weight: 1.0,
    })
}
