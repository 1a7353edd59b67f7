//! Jaeger's JSON, as exported by its UI and its HTTP API: `{"data": [{"spans": …, "processes": …}]}`.

use super::{Side, SpanSet, end_of, ids, is_refusal, key_of};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// The processes of a trace, by the names that spans use.
pub(super) type Processes = HashMap<String, Process>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Trace {
    pub(super) spans: Vec<Span>,
    pub(super) processes: Processes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Process {
    service_name: String,
    tags: Vec<Tag>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Span {
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
    #[serde(rename = "parentSpanID")]
    parent_span_id: String,
    operation_name: String,
    references: Vec<Reference>,
    /// The start in microseconds since 1970.
    start_time: u64,
    duration: u64,
    tags: Vec<Tag>,
    #[serde(rename = "processID")]
    process_id: String,
    /// The process itself, which some exports contain instead of a name.
    process: Option<Process>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reference {
    #[serde(rename = "refType")]
    kind: String,
    #[serde(rename = "spanID")]
    span_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tag {
    key: String,
    value: Value,
}

fn text<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    let tag = tags.iter().find(|tag| tag.key == key)?;
    tag.value.as_str().filter(|text| !text.is_empty())
}

/// Returns the key and the value of a tag, if the value is text or a whole number.
fn as_text(tag: &Tag) -> Option<(&str, String)> {
    let number = tag.value.as_i64().map(|number| number.to_string());
    let value = number.or_else(|| tag.value.as_str().map(str::to_owned))?;
    Some((tag.key.as_str(), value))
}

/// Returns the share of requests that were recorded. It comes from the tag of a probabilistic sampler on the root of a
/// trace.
fn share(tags: &[Tag]) -> Option<f64> {
    if text(tags, "sampler.type") != Some("probabilistic") {
        return None;
    }
    let tag = tags.iter().find(|tag| tag.key == "sampler.param")?;
    let number = || tag.value.as_str()?.parse().ok();
    tag.value.as_f64().or_else(number)
}

impl Trace {
    pub(super) fn add_to(self, recorded: &mut SpanSet) -> Result<(), String> {
        let nobody = Process::default();
        for span in &self.spans {
            let known = self.processes.get(&span.process_id);
            let process = span.process.as_ref().or(known).unwrap_or(&nobody);
            let service = match process.service_name.as_str() {
                "" => "unknown",
                name => name,
            };
            let instance = ["service.instance.id", "hostname", "ip"]
                .iter()
                .find_map(|key| text(&process.tags, key));
            let instance = instance.map(|instance| format!("{service} {instance}"));
            let mut at = recorded.names.endpoint(service, instance.as_deref());
            if let Some(region) = text(&process.tags, "cloud.region") {
                at.region = recorded.names.number(region);
            }
            // If no reference is marked as the parent, the first one is used.
            let mut references = span.references.iter();
            let parent = references.clone().find(|r| r.kind == "CHILD_OF");
            let parent = parent.or_else(|| references.next());
            let parent = parent.map_or(span.parent_span_id.as_str(), |r| r.span_id.as_str());
            let (trace, id, parent) = ids(&span.trace_id, &span.span_id, parent)?;
            let side = match text(&span.tags, "span.kind") {
                Some("client") => Side::Client,
                Some("server") => Side::Server,
                Some("producer") => Side::Producer,
                Some("consumer") => Side::Consumer,
                Some("internal") => Side::Internal,
                _ => Side::Unknown,
            };
            let is_error = |tag: &Tag| {
                tag.key == "error" && [Value::Bool(true), Value::from("true")].contains(&tag.value)
                    || tag.key == "otel.status_code" && tag.value == "ERROR"
            };
            let peer = ["peer.service", "db.system", "db.type"]
                .iter()
                .find_map(|key| text(&span.tags, key));
            let peer = peer.map(|peer| recorded.names.endpoint(peer, None).service);
            if let Some(share) = share(&span.tags) {
                recorded.stands_for(share);
            }
            let texts: Vec<(&str, String)> = span.tags.iter().filter_map(as_text).collect();
            let pairs = texts.iter().map(|(key, value)| (*key, value.as_str()));
            let key = key_of(recorded.key.as_deref(), pairs);
            let begin = span.start_time.saturating_mul(1_000);
            let operation = recorded.names.number(&span.operation_name);
            recorded.add(super::Span {
                trace,
                id,
                parent,
                side,
                failed: span.tags.iter().any(is_error),
                refused: texts.iter().any(|(key, value)| is_refusal(key, value)),
                key,
                service: at.service,
                instance: at.instance,
                region: at.region,
                operation,
                peer,
                begin,
                end: end_of(begin, span.duration.saturating_mul(1_000)),
                weight: 1.0,
            })?;
        }
        Ok(())
    }
}
