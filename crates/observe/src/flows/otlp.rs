//! Spans as OTLP/JSON: requests of the OpenTelemetry protocol
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>), with hexadecimal ids and
//! times as text.
//!
//! In this protocol, each side of an exchange is a span with a separate id. The client's id is the number of the
//! exchange. The server's id is the same number with bit 31 flipped; no [`corsair::SpanId`] has this bit set. If the
//! server starts further exchanges to answer this one, their parent is the server's span.

use super::span::{Hex, LongHex, NEVER, Names, Span};
use super::span_format::{Arrays, SpanFormat, Spans as SpansToWrite};
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// The OTLP/JSON format.
pub(super) struct Otlp;

impl SpanFormat for Otlp {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn file(&self) -> &'static str {
        "_flow.otlp.jsonl"
    }

    fn append(
        &self,
        arrays: &mut Arrays,
        spans: SpansToWrite<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.message(arrays, spans, out)?;
        out.write_all(b"\n")
    }

    fn message(
        &self,
        arrays: &mut Arrays,
        to_write: SpansToWrite<'_>,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut all = Vec::new();
        sides(to_write.spans, &mut all);
        arrays.inline.restart();
        out.write_all(b"{\"resourceSpans\":[")?;
        let resources = ResourceSpans::of(&all, to_write.names);
        arrays
            .inline
            .write(to_write.marshal, &resources, &mut out)?;
        out.write_all(b"]}")
    }

    #[cfg(feature = "http")]
    fn collector(&self) -> Option<super::span_format::Collector> {
        Some(super::span_format::Collector {
            what: "the OTLP collector",
            path: "/v1/traces",
            example: "http://localhost:4318",
            nothing: b"{\"resourceSpans\":[]}",
        })
    }
}

/// The bit that distinguishes the server's side from the client's.
const SERVER_SIDE: u64 = 1 << 31;

/// One side of an exchange.
#[derive(Clone, Copy, Debug)]
struct Side<'a> {
    actor: u32,
    server: bool,
    span: &'a Span,
}

/// Collects the sides of some spans, ordered by actor number and then by span.
fn sides<'a>(spans: &'a [Span], into: &mut Vec<Side<'a>>) {
    for span in spans {
        let is_known = |at: u64, or: u64| at.min(or) != NEVER;
        let client =
            is_known(span.client_send, span.client_receive).then_some((span.client, false));
        let server = is_known(span.server_receive, span.server_send).then_some((span.server, true));
        let known = [client, server].into_iter().flatten();
        into.extend(known.map(|(actor, server)| Side {
            actor,
            server,
            span,
        }));
    }
    into.sort_by_key(|side| side.actor);
}

/// All sides of one actor: an element of `resourceSpans`.
#[derive(Debug)]
struct ResourceSpans<'a> {
    names: Names<'a>,
    sides: &'a [Side<'a>],
}

impl<'a> ResourceSpans<'a> {
    /// Returns an element for each actor.
    fn of(sides: &'a [Side<'a>], names: &Names<'a>) -> Vec<ResourceSpans<'a>> {
        let same = |a: &Side<'_>, b: &Side<'_>| a.actor == b.actor;
        let of_actor = |sides| ResourceSpans {
            names: *names,
            sides,
        };
        sides.chunk_by(same).map(of_actor).collect()
    }
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: &'static str,
    value: Text<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Text<'a> {
    string_value: &'a str,
}

#[derive(Serialize)]
struct Resource<'a> {
    attributes: Vec<Attribute<'a>>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Spans<'a>,
}

struct Spans<'a>(&'a ResourceSpans<'a>);

impl Serialize for ResourceSpans<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let placed = self
            .sides
            .first()
            .and_then(|side| self.names.placed(side.actor));
        let text = |key, string_value| Attribute {
            key,
            value: Text { string_value },
        };
        let mut attributes = match placed {
            Some(placed) => vec![
                text("service.name", &placed.service),
                text("service.instance.id", &placed.full_name),
                text("cloud.region", &placed.region),
                text("cloud.availability_zone", &placed.zone),
            ],
            None => vec![text("service.name", "unknown")],
        };
        if let Some(container) = placed.and_then(|placed| placed.container.as_ref()) {
            let known = [
                ("host.name", &container.machine),
                ("container.image.name", &container.image),
                ("process.executable.name", &container.process),
            ];
            let known = known.into_iter().filter(|(_, value)| !value.is_empty());
            attributes.extend(known.map(|(key, value)| text(key, value)));
        }
        let mut element = to.serialize_struct("ResourceSpans", 2)?;
        element.serialize_field("resource", &Resource { attributes })?;
        let scope = Scope { name: "corsair" };
        let spans = Spans(self);
        element.serialize_field("scopeSpans", &[ScopeSpans { scope, spans }])?;
        element.end()
    }
}

impl Serialize for Spans<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.0.sides.len()))?;
        for side in self.0.sides {
            list.serialize_element(&WireSpan::new(side, &self.0.names))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireSpan<'a> {
    trace_id: LongHex,
    span_id: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<Hex>,
    name: &'a str,
    kind: u8,
    start_time_unix_nano: Decimal,
    end_time_unix_nano: Decimal,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<WireStatus>,
}

/// A number serialized as text, because JSON numbers have only 53 bits.
struct Decimal(u64);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

#[derive(Serialize)]
struct WireStatus {
    code: u8,
}

/// The code `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

impl<'a> WireSpan<'a> {
    fn new(side: &Side<'_>, names: &Names<'a>) -> WireSpan<'a> {
        let span = side.span;
        let id = span.context.span().get();
        // The kinds SPAN_KIND_SERVER and SPAN_KIND_CLIENT for requests, SPAN_KIND_CONSUMER and SPAN_KIND_PRODUCER for
        // messages.
        let (id, parent, from, to, kind) = match side.server {
            true => (
                id ^ SERVER_SIDE,
                (span.client_send != NEVER).then_some(id),
                span.server_receive,
                span.server_send,
                if span.one_way { 5 } else { 2 },
            ),
            false => (
                id,
                span.context
                    .parent()
                    .map(|parent| parent.get() ^ SERVER_SIDE),
                span.client_send,
                span.client_receive,
                if span.one_way { 4 } else { 3 },
            ),
        };
        let start = from.min(to);
        let end = match from.max(to) {
            NEVER => start,
            end => end,
        };
        WireSpan {
            trace_id: LongHex(span.context.trace().get()),
            span_id: Hex(id),
            parent_span_id: parent.map(Hex),
            name: names.kind(span.kind),
            kind,
            start_time_unix_nano: Decimal(names.nanos(start)),
            end_time_unix_nano: Decimal(names.nanos(end)),
            status: span.failed.then_some(WireStatus { code: ERROR }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::{Node, TraceContext};
    use serde_json::{Value, json};

    fn node(service: &str) -> Node {
        Node {
            name: format!("a.b.c.{service}00"),
            container: None,
            full_name: format!("a.b.c..{service}00...{service}.karyon"),
            service: service.into(),
            package: "karyon".into(),
            region: "b".into(),
            zone: "c".into(),
        }
    }

    // Guarantee: observe-6.
    #[test]
    fn each_side_is_a_span_of_its_own_below_its_service() {
        let mut directory = Directory::default();
        directory.add(4, node("login"));
        directory.add(2, node("store"));
        let names = Names {
            directory: &directory,
            kinds: &["GetRequest"],
            operations: &[],
            epoch: 1_000_000_000_000_000_000,
        };
        let span = Span {
            client: 4,
            server: 2,
            client_send: 1,
            server_receive: 2,
            server_send: 3,
            client_receive: 4,
            kind: 0,
            failed: true,
            ..Span::new(TraceContext::new(0xabc, 0x4_0000_0007, 0x3_0000_0001).unwrap())
        };
        let spans = [span, span];
        let mut all = Vec::new();
        sides(&spans, &mut all);
        let resources = ResourceSpans::of(&all, &names);
        let text: Value = serde_json::to_value(&resources).unwrap();
        assert_eq!(text.as_array().unwrap().len(), 2);
        assert_eq!(
            text[0]["scopeSpans"][0]["spans"].as_array().unwrap().len(),
            2
        );
        let server = &text[0];
        let name = json!({"key": "service.name", "value": {"stringValue": "store"}});
        assert_eq!(server["resource"]["attributes"][0], name);
        assert_eq!(
            server["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "00000000000000000000000000000abc",
                "spanId": "0000000480000007",
                "parentSpanId": "0000000400000007",
                "name": "GetRequest",
                "kind": 2,
                "startTimeUnixNano": "1000000000000000002",
                "endTimeUnixNano": "1000000000000000003",
                "status": {"code": 2},
            })
        );
        let client = &text[1]["scopeSpans"][0]["spans"][0];
        assert_eq!(client["spanId"], "0000000400000007");
        assert_eq!(client["parentSpanId"], "0000000380000001");
        assert_eq!(client["kind"], 3);
    }
}
