//! Queries: about an instance, an edge, the last requests, or a request's trace.

use super::Services;
use crate::command::Action;
use corsair_arch::live::{SpanSeen, Times};
use serde::Deserialize;
use serde_json::{Value, json};

/// The largest number of traces and names in an answer.
const MOST_LISTED: usize = 50;

impl Services {
    pub(super) fn answer(&mut self, query: &Value) -> Result<Value, String> {
        let text = |key: &str| query.get(key).and_then(Value::as_str);
        if let Some(name) = text("actor") {
            let instance = self.instance(name)?;
            let gone = || format!("{name} has not begun, or has ended");
            let details = self.live.details(instance).ok_or_else(gone)?;
            let mut shown = serde_json::to_value(details).map_err(|e| e.to_string())?;
            shown["all"] = self.live.fields(instance).unwrap_or_default();
            return Ok(shown);
        }
        if let Some(what) = query.get("preview") {
            let what =
                Action::deserialize(what).map_err(|error| format!("not a command: {error}"))?;
            let names = self.preview(&what)?;
            return Ok(
                json!({ "count": names.len(), "names": &names[..names.len().min(MOST_LISTED)] }),
            );
        }
        if let (Some(from), Some(to)) = (text("from"), text("to")) {
            let (from, to) = (from.to_owned(), to.to_owned());
            return self.edge(&from, &to);
        }
        if let Some(name) = text("requests") {
            let instance = self.instance(name)?;
            let spans = self.live.spans(instance);
            let last = spans.iter().rev().take(MOST_LISTED);
            return Ok(last.map(|span| self.span(instance, span)).collect());
        }
        if let Some(trace) = text("trace") {
            let trace = u64::from_str_radix(trace, 16);
            let trace = trace.map_err(|_| "a trace is 16 hexadecimal digits".to_owned())?;
            return Ok(self.trace(trace));
        }
        if let Some(part) = text("find") {
            let mut found: Vec<&String> = self
                .labels
                .keys()
                .filter(|label| label.contains(part))
                .collect();
            found.sort_unstable();
            found.truncate(MOST_LISTED);
            return Ok(json!(found));
        }
        Err("unknown query; expected actor, from and to, requests, trace or find".to_owned())
    }

    /// Returns the instances that a name at an end of an edge stands for: one instance, or all instances that are
    /// folded into one node.
    fn ends(&self, name: &str) -> Result<Vec<u32>, String> {
        if let Ok(instance) = self.instance(name) {
            return Ok(vec![instance]);
        }
        // A folded node has the name `service@zone`.
        let (service, zone) = name.split_once('@').unwrap_or((name, ""));
        let topology = self.live.topology();
        let found: Vec<u32> = (0..topology.len())
            .filter(|&i| {
                let at = topology.instances[i as usize].at;
                let here = super::targets::place(topology, at);
                topology.service_of(i).name == service && (zone.is_empty() || here == zone)
            })
            .collect();
        if found.is_empty() {
            return self.instance(name).map(|instance| vec![instance]);
        }
        Ok(found)
    }

    fn edge(&mut self, from: &str, to: &str) -> Result<Value, String> {
        let (callers, called) = (self.ends(from)?, self.ends(to)?);
        let (mut sent, mut answered, mut errors) = (0, 0, 0);
        let mut times = Times::default();
        for caller in callers {
            self.live.calls(caller, |calls| {
                if called.binary_search(&calls.to).is_ok() {
                    sent += calls.sent;
                    answered += calls.answered;
                    errors += calls.errors;
                    calls.add_times(&mut times);
                }
            });
        }
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let percentile = |part| times.quantile(part).map(seconds);
        Ok(json!({
            "from": from, "to": to, "sent": sent, "answered": answered, "errors": errors,
            "p50": percentile(0.5), "p99": percentile(0.99), "p999": percentile(0.999),
            "histogram": times.iter().map(|(bounds, count)| (seconds(*bounds.start()), count)).collect::<Vec<_>>(),
        }))
    }

    fn span(&self, client: u32, span: &SpanSeen) -> Value {
        let topology = self.live.topology();
        json!({
            "trace": format!("{:016x}", span.trace),
            "span": format!("{:016x}", span.span),
            "parent": format!("{:016x}", span.parent),
            "client": topology.label(client),
            "server": topology.label(span.server),
            "sent": span.sent as f64 / 1e9,
            "received": span.received as f64 / 1e9,
            "answer": format!("{:?}", span.answer).to_lowercase(),
        })
    }

    /// Returns the spans of a trace that are still in memory, in the order of time.
    fn trace(&mut self, trace: u64) -> Value {
        let instances = self.live.topology().len();
        let mut spans = Vec::new();
        for client in 0..instances {
            let seen = self.live.spans(client).into_iter();
            spans.extend(
                seen.filter(|span| span.trace == trace)
                    .map(|span| (client, span)),
            );
        }
        spans.sort_by_key(|(client, span)| (span.sent, span.received, *client));
        spans
            .iter()
            .map(|(client, span)| self.span(*client, span))
            .collect()
    }
}
