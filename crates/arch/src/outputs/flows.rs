//! The flows of a completed run: requests between the actors of its graph.

use super::{EdgeState, OutputError};
use crate::live::Times;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// The maximum size of a file in bytes.
const MOST_BYTES: u64 = 512 << 20;

/// The maximum number of requests in one answer.
const MOST_LISTED: usize = 200;

/// Flows in the format zipkin1. Times are in microseconds.
#[derive(Debug, Default)]
pub struct Flows {
    spans: Vec<Span>,
    by_trace: HashMap<String, Vec<usize>>,
    begins: u64,
    ends: u64,
}

#[derive(Debug)]
struct Span {
    trace: String,
    span: String,
    parent: String,
    client: u32,
    server: u32,
    sent: u64,
    received: u64,
    failed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ZipkinSpan {
    trace_id: String,
    id: String,
    #[serde(default)]
    parent_id: String,
    annotations: Vec<Annotation>,
    #[serde(default)]
    binary_annotations: Vec<Value>,
}

#[derive(Deserialize)]
struct Annotation {
    endpoint: Option<Endpoint>,
    timestamp: u64,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    service_name: String,
}

impl Flows {
    /// Reads a file. `places` contains the number of each node by its name. Flows contain names of nine parts; `label`
    /// returns the short name from such a name.
    ///
    /// # Errors
    /// See [`OutputError`].
    pub fn read(
        path: &Path,
        places: &HashMap<String, u32>,
        label: fn(&str) -> &str,
    ) -> Result<Flows, OutputError> {
        let own = || path.to_owned();
        let unreadable = |error| OutputError::Unreadable { path: own(), error };
        if std::fs::metadata(path).map_err(unreadable)?.len() > MOST_BYTES {
            return Err(OutputError::TooLarge {
                path: own(),
                most: MOST_BYTES,
            });
        }
        let text = std::fs::read(path).map_err(unreadable)?;
        let written: Vec<ZipkinSpan> = serde_json::from_slice(&text)
            .map_err(|error| OutputError::Flows { path: own(), error })?;
        Ok(Flows::new(written, places, label))
    }

    fn new(
        written: Vec<ZipkinSpan>,
        places: &HashMap<String, u32>,
        label: fn(&str) -> &str,
    ) -> Flows {
        // Names in flows have all nine parts; names in graphs have fewer.
        let place = |annotation: &Annotation| {
            let name = &annotation.endpoint.as_ref()?.service_name;
            let label = label(name);
            places
                .get(name.as_str())
                .or_else(|| places.get(label))
                .copied()
        };
        let mut flows = Flows {
            begins: u64::MAX,
            ..Flows::default()
        };
        for one in written {
            let find = |values: [&str; 2]| {
                let is_it = |a: &&Annotation| values.contains(&a.value.as_str());
                one.annotations.iter().find(is_it)
            };
            let client = find(["cs", "ms"]);
            let server = find(["sr", "mr"]);
            let (Some(client_at), Some(server_at)) = (client, server) else {
                continue;
            };
            let (Some(client), Some(server)) = (place(client_at), place(server_at)) else {
                continue;
            };
            let received = find(["cr", "ss"]).unwrap_or(server_at).timestamp;
            let (sent, received) = (client_at.timestamp, received.max(client_at.timestamp));
            flows.begins = flows.begins.min(sent);
            flows.ends = flows.ends.max(received);
            flows.spans.push(Span {
                trace: one.trace_id,
                span: one.id,
                parent: one.parent_id,
                client,
                server,
                sent,
                received,
                failed: !one.binary_annotations.is_empty(),
            });
        }
        // Times in flows of real executors are Unix times.
        if flows.begins > 1_000_000_000_000 && flows.ends > 0 {
            let begins = flows.begins;
            for span in &mut flows.spans {
                (span.sent, span.received) = (span.sent - begins, span.received - begins);
            }
            (flows.begins, flows.ends) = (0, flows.ends - begins);
        }
        flows.spans.sort_by_key(|span| span.received);
        for (place, span) in flows.spans.iter().enumerate() {
            flows
                .by_trace
                .entry(span.trace.clone())
                .or_default()
                .push(place);
        }
        flows
    }

    /// Returns the time of the last answer, in seconds.
    pub fn end(&self) -> f64 {
        self.ends as f64 / 1e6
    }

    /// Returns the number of requests that a node has sent or received.
    pub fn count_of(&self, place: u32) -> usize {
        let ends = |span: &&Span| span.client == place || span.server == place;
        self.spans.iter().filter(ends).count()
    }

    /// Returns each edge with traffic once. `folded` returns the node that represents an actor.
    pub fn ends(&self, folded: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
        let spans = self.spans.iter();
        let mut ends: Vec<(u32, u32)> = spans
            .map(|span| (folded(span.client), folded(span.server)))
            .collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Returns the traffic on these edges. Requests count if they were answered after `after` and not later than
    /// `until`, in seconds.
    pub fn edges(
        &self,
        ends: &[(u32, u32)],
        (after, until): (f64, f64),
        folded: impl Fn(u32) -> u32,
    ) -> Vec<EdgeState> {
        let mut all: HashMap<(u32, u32), (u32, u32, Times)> = HashMap::new();
        let place = |time: f64| {
            self.spans
                .partition_point(|span| span.received as f64 / 1e6 <= time)
        };
        for span in &self.spans[place(after)..place(until)] {
            let edge = all
                .entry((folded(span.client), folded(span.server)))
                .or_default();
            edge.0 += 1;
            edge.1 += u32::from(span.failed);
            edge.2.record((span.received - span.sent) * 1_000);
        }
        let seconds = (until - after).max(1e-6) as f32;
        let time = |times: &Times, part| times.quantile(part).unwrap_or(0) as f32 / 1e9;
        let state = |&(from, to): &(u32, u32)| match all.get(&(from, to)) {
            None => EdgeState {
                from,
                to,
                ..EdgeState::default()
            },
            Some((count, failed, times)) => EdgeState {
                from,
                to,
                rate: *count as f32 / seconds,
                errors: *failed as f32 / *count as f32,
                p50: time(times, 0.5),
                p99: time(times, 0.99),
            },
        };
        ends.iter().map(state).collect()
    }

    /// Returns the measurements of the requests from some actors to others, in the order of their numbers.
    pub fn edge(&self, clients: &[u32], servers: &[u32], (from, to): (&str, &str)) -> Value {
        let mut times = Times::default();
        let mut errors = 0u64;
        let is_of = |all: &[u32], one| all.binary_search(&one).is_ok();
        let is_it = |span: &&Span| is_of(clients, span.client) && is_of(servers, span.server);
        for span in self.spans.iter().filter(is_it) {
            times.record((span.received - span.sent) * 1_000);
            errors += u64::from(span.failed);
        }
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let percentile = |part| times.quantile(part).map(seconds);
        let buckets = times
            .iter()
            .map(|(bounds, count)| (seconds(*bounds.start()), count));
        json!({
            "from": from, "to": to, "sent": times.len(), "answered": times.len(), "errors": errors,
            "p50": percentile(0.5), "p99": percentile(0.99), "p999": percentile(0.999),
            "histogram": buckets.collect::<Vec<_>>(),
        })
    }

    /// Returns the last requests of a node, the newest first.
    pub fn requests<'a>(&self, client: u32, name: impl Fn(u32) -> &'a str) -> Value {
        let mine = self.spans.iter().rev().filter(|span| span.client == client);
        mine.take(MOST_LISTED)
            .map(|span| shown(span, &name))
            .collect()
    }

    /// Returns the requests of a trace, in the order of time.
    pub fn trace<'a>(&self, trace: &str, name: impl Fn(u32) -> &'a str) -> Value {
        let mut spans: Vec<&Span> = (self.by_trace.get(trace).into_iter().flatten())
            .map(|&place| &self.spans[place])
            .collect();
        spans.sort_by_key(|span| (span.sent, span.received));
        spans.into_iter().map(|span| shown(span, &name)).collect()
    }
}

fn shown<'a>(span: &Span, name: impl Fn(u32) -> &'a str) -> Value {
    json!({
        "trace": span.trace, "span": span.span, "parent": span.parent,
        "client": name(span.client), "server": name(span.server),
        "sent": span.sent as f64 / 1e6, "received": span.received as f64 / 1e6,
        "answer": if span.failed { "failed" } else { "found" },
    })
}
