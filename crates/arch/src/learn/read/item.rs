//! A JSON value of a file of traces, whose format is recognised by its keys.

use super::{SpanSet, is_refusal, key_of};
use super::{jaeger, otlp, zipkin};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use std::collections::BTreeMap;
use std::fmt;

/// Any element of a file: an OTLP request, a Zipkin span, or a Jaeger response.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Item {
    #[serde(alias = "resource_spans", alias = "batches")]
    resource_spans: Option<Vec<otlp::ResourceSpans>>,
    data: Option<Vec<jaeger::Trace>>,
    spans: Option<Vec<jaeger::Span>>,
    processes: jaeger::Processes,
    // Zipkin's spans are not wrapped, so their fields are at the top level.
    trace_id: Option<String>,
    id: String,
    parent_id: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    timestamp: Option<f64>,
    duration: Option<f64>,
    local_endpoint: Option<zipkin::Endpoint>,
    remote_endpoint: Option<zipkin::Endpoint>,
    tags: Option<BTreeMap<String, TagValue>>,
    annotations: Option<Vec<zipkin::Annotation>>,
    binary_annotations: Option<Vec<zipkin::Tag>>,
}

/// The value of a tag, which is text in Zipkin's format; other values do not matter.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TagValue {
    Text(String),
    Other(IgnoredAny),
}

impl Item {
    fn add_to(self, recorded: &mut SpanSet) -> Result<(), String> {
        if let Some(resources) = self.resource_spans {
            return resources
                .into_iter()
                .try_for_each(|resource| resource.add_to(recorded));
        }
        if let Some(traces) = self.data {
            return traces
                .into_iter()
                .try_for_each(|trace| trace.add_to(recorded));
        }
        if let Some(spans) = self.spans {
            let trace = jaeger::Trace {
                spans,
                processes: self.processes,
            };
            return trace.add_to(recorded);
        }
        let Some(trace_id) = self.trace_id else {
            return Err(
                "this has neither resourceSpans (OTLP), nor data (Jaeger), nor a traceId (Zipkin)"
                    .to_owned(),
            );
        };
        let annotations = self.binary_annotations.unwrap_or_default();
        let tags = self.tags.unwrap_or_default();
        let texts = || {
            tags.iter().filter_map(|(key, value)| match value {
                TagValue::Text(text) => Some((key.as_str(), text.as_str())),
                TagValue::Other(_) => None,
            })
        };
        let span = zipkin::Span {
            trace_id,
            id: self.id,
            parent_id: self.parent_id.unwrap_or_default(),
            name: self.name.unwrap_or_default(),
            kind: self.kind,
            timestamp: self.timestamp,
            duration: self.duration,
            local_endpoint: self.local_endpoint,
            remote_endpoint: self.remote_endpoint,
            failed: tags.contains_key("error") || annotations.iter().any(|tag| tag.key == "error"),
            refused: texts().any(|(key, value)| is_refusal(key, value)),
            request_key: key_of(recorded.key.as_deref(), texts()),
            annotations: self.annotations.unwrap_or_default(),
        };
        span.add_to(recorded)
    }
}

/// A deserializer that adds the next value of a file to a set of spans. If the value is a list, each element is added.
pub(super) struct Documents<'a>(pub(super) &'a mut SpanSet);

impl<'de> DeserializeSeed<'de> for Documents<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for Documents<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("spans: an object or a list of OTLP/JSON, Zipkin's JSON or Jaeger's JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Documents(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let item = Item::deserialize(de::value::MapAccessDeserializer::new(map))?;
        item.add_to(self.0).map_err(de::Error::custom)
    }
}
