//! OTLP/JSON: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use super::{Side, SpanSet, ids, is_refusal, key_of};
use crate::learn::names::is_address;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceSpans {
    #[serde(deserialize_with = "or_default")]
    resource: Resource,
    #[serde(
        rename = "scopeSpans",
        alias = "scope_spans",
        alias = "instrumentationLibrarySpans",
        deserialize_with = "or_default"
    )]
    scopes: Vec<ScopeSpans>,
}

/// Reads a value. Null means the default, as in all protobuf JSON.
fn or_default<'de, D, T>(reader: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(reader).map(Option::unwrap_or_default)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resource {
    #[serde(deserialize_with = "or_default")]
    attributes: Vec<Attribute>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ScopeSpans {
    #[serde(deserialize_with = "or_default")]
    spans: Vec<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Span {
    trace_id: String,
    span_id: String,
    parent_span_id: String,
    trace_state: String,
    name: String,
    kind: Kind,
    start_time_unix_nano: Nanos,
    end_time_unix_nano: Nanos,
    #[serde(deserialize_with = "or_default")]
    status: Status,
    #[serde(deserialize_with = "or_default")]
    attributes: Vec<Attribute>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    code: Code,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attribute {
    key: String,
    #[serde(deserialize_with = "or_default")]
    value: AttributeValue,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttributeValue {
    string_value: Option<String>,
    int_value: Option<TextOrInteger>,
}

/// A whole number, written as text or as a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TextOrInteger {
    Number(i64),
    Text(String),
}

impl fmt::Display for TextOrInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextOrInteger::Number(number) => number.fmt(f),
            TextOrInteger::Text(text) => text.fmt(f),
        }
    }
}

/// An enumeration value: its number or its name.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Word {
    Number(u64),
    Name(String),
}

#[derive(Debug, Deserialize)]
#[serde(from = "Word")]
struct Kind(Side);

impl Default for Kind {
    fn default() -> Self {
        Kind(Side::Internal)
    }
}

impl From<Word> for Kind {
    fn from(word: Word) -> Kind {
        let is = |number: u64, name: &str| match &word {
            Word::Number(given) => *given == number,
            Word::Name(given) => given.strip_prefix("SPAN_KIND_") == Some(name),
        };
        let sides = [
            (2, "SERVER", Side::Server),
            (3, "CLIENT", Side::Client),
            (4, "PRODUCER", Side::Producer),
            (5, "CONSUMER", Side::Consumer),
        ];
        let side = sides
            .into_iter()
            .find(|(number, name, _)| is(*number, name));
        Kind(side.map_or(Side::Internal, |(.., side)| side))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(from = "Word")]
struct Code {
    is_error: bool,
}

impl From<Word> for Code {
    fn from(word: Word) -> Code {
        let is_error = match word {
            Word::Number(number) => number == 2,
            Word::Name(name) => name == "STATUS_CODE_ERROR",
        };
        Code { is_error }
    }
}

/// Nanoseconds since 1970, as text or as a number.
#[derive(Clone, Copy, Debug, Default)]
struct Nanos(u64);

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Nanos, D::Error> {
        struct Time;
        impl de::Visitor<'_> for Time {
            type Value = Nanos;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("nanoseconds since 1970, such as \"1700000000000000000\"")
            }

            fn visit_u64<E: de::Error>(self, nanos: u64) -> Result<Nanos, E> {
                Ok(Nanos(nanos))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Nanos, E> {
                let nanos = text.parse().map(Nanos);
                nanos.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        reader.deserialize_any(Time)
    }
}

/// The attributes that name the service at the other end, in order of preference.
const PEERS: [&str; 6] = [
    "peer.service",
    "server.address",
    "net.peer.name",
    "db.system.name",
    "db.system",
    "messaging.system",
];

fn text<'a>(attributes: &'a [Attribute], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found
        .value
        .string_value
        .as_deref()
        .filter(|t| !t.is_empty())
}

/// Returns the sampling rate from a tracestate: `ot=th:c` rejects the fraction 0xc/0x10.
/// <https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/>
fn share(state: &str) -> Option<f64> {
    let of_otel = state
        .split(',')
        .find_map(|part| part.trim().strip_prefix("ot="))?;
    let threshold = of_otel
        .split(';')
        .find_map(|part| part.strip_prefix("th:"))?;
    let is_one = (1..=14).contains(&threshold.len());
    let number = u64::from_str_radix(threshold, 16).ok().filter(|_| is_one)?;
    Some(1.0 - number as f64 / 16f64.powi(threshold.len() as i32))
}

/// Returns the name by which a span identifies the service at the other end. If there is no name, this is an address
/// with its port, because the port distinguishes the services of one machine.
fn peer(attributes: &[Attribute]) -> Option<String> {
    let mut peers = PEERS.iter().filter_map(|key| text(attributes, key));
    if let Some(name) = peers.clone().find(|peer| !is_address(peer)) {
        return Some(name.to_owned());
    }
    let address = peers.next()?;
    let port = ["server.port", "net.peer.port"].iter().find_map(|key| {
        let found = attributes.iter().find(|attribute| attribute.key == *key)?;
        found.value.int_value.as_ref()
    });
    Some(match port {
        Some(port) => format!("{address}:{port}"),
        None => address.to_owned(),
    })
}

/// Returns the key and the value of an attribute, if the value is text or a whole number.
fn as_text(attribute: &Attribute) -> Option<(&str, Cow<'_, str>)> {
    let AttributeValue {
        string_value: text,
        int_value: number,
    } = &attribute.value;
    let text = text.as_deref().map(Cow::Borrowed);
    let value = text.or(number.as_ref().map(|number| Cow::Owned(number.to_string())))?;
    Some((attribute.key.as_str(), value))
}

impl ResourceSpans {
    pub(super) fn add_to(self, recorded: &mut SpanSet) -> Result<(), String> {
        let about = &self.resource.attributes;
        let service = text(about, "service.name").unwrap_or("unknown");
        let instance = text(about, "service.instance.id").or_else(|| text(about, "host.name"));
        let instance = instance.map(|instance| format!("{service} {instance}"));
        let mut at = recorded.names.endpoint(service, instance.as_deref());
        if let Some(region) = text(about, "cloud.region") {
            at.region = recorded.names.number(region);
        }
        for span in self.scopes.into_iter().flat_map(|scope| scope.spans) {
            let (trace, id, parent) = ids(&span.trace_id, &span.span_id, &span.parent_span_id)?;
            if let Some(share) = share(&span.trace_state) {
                recorded.stands_for(share);
            }
            let peer = peer(&span.attributes);
            let peer = peer.map(|peer| recorded.names.endpoint(&peer, None).service);
            let texts: Vec<(&str, Cow<str>)> = span.attributes.iter().filter_map(as_text).collect();
            let pairs = texts.iter().map(|(key, value)| (*key, value.as_ref()));
            let key = key_of(recorded.key.as_deref(), pairs);
            let begin = span.start_time_unix_nano.0;
            let operation = recorded.names.number(&span.name);
            recorded.add(super::Span {
                trace,
                id,
                parent,
                side: span.kind.0,
                failed: span.status.code.is_error,
                refused: texts.iter().any(|(key, value)| is_refusal(key, value)),
                key,
                service: at.service,
                instance: at.instance,
                region: at.region,
                operation,
                peer,
                begin,
                end: span.end_time_unix_nano.0.max(begin),
                weight: 1.0,
            })?;
        }
        Ok(())
    }
}
