//! Spans as Zipkin writes them, versions 1 and 2.
//!
//! Version 1 is the form that spigo writes: one span with an annotation for each end of an exchange. Version 2
//! (<https://zipkin.io/zipkin-api/>) has two spans with the same id, one for each side; the server's span is marked as
//! shared.

use super::span::{Hex, NEVER, NONE, Names, Span};
use super::span_format::{Arrays, SpanFormat, Spans};
use crate::json_array::{Array, Element};
use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::value::RawValue;
use std::io::{self, Write};

/// The format of Zipkin version 1.
pub(super) struct ZipkinV1;

/// The format of Zipkin version 2.
pub(super) struct ZipkinV2;

/// Writes some spans as elements of an array.
trait Elements {
    fn elements<E: Element>(
        array: &mut Array<E>,
        spans: Spans<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()>;
}

impl Elements for ZipkinV1 {
    fn elements<E: Element>(
        array: &mut Array<E>,
        spans: Spans<'_>,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let all = spans.spans.iter().map(|span| V1::new(span, spans.names));
        array.write(spans.marshal, &all.collect::<Vec<V1<'_>>>(), &mut out)
    }
}

impl Elements for ZipkinV2 {
    fn elements<E: Element>(
        array: &mut Array<E>,
        spans: Spans<'_>,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let all = spans.spans.iter();
        let all = all.flat_map(|span| V2::sides(span, spans.names));
        array.write(spans.marshal, &all.collect::<Vec<V2<'_>>>(), &mut out)
    }
}

/// Writes some spans as an array.
fn array<F: Elements>(
    arrays: &mut Arrays,
    spans: Spans<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    arrays.inline.restart();
    out.write_all(b"[")?;
    F::elements(&mut arrays.inline, spans, out)?;
    out.write_all(b"]")
}

/// The text at the beginning and at the end of a file.
const ENDS: (&[u8], &[u8]) = (b"[\n", b"]\n");

impl SpanFormat for ZipkinV1 {
    fn name(&self) -> &'static str {
        "zipkin1"
    }

    fn file(&self) -> &'static str {
        "_flow.json"
    }

    fn ends(&self) -> (&'static [u8], &'static [u8]) {
        ENDS
    }

    fn append(&self, arrays: &mut Arrays, spans: Spans<'_>, out: &mut dyn Write) -> io::Result<()> {
        ZipkinV1::elements(&mut arrays.lines, spans, out)
    }

    fn message(
        &self,
        arrays: &mut Arrays,
        spans: Spans<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        array::<ZipkinV1>(arrays, spans, out)
    }
}

impl SpanFormat for ZipkinV2 {
    fn name(&self) -> &'static str {
        "zipkin2"
    }

    fn file(&self) -> &'static str {
        "_flow.zipkin.json"
    }

    fn ends(&self) -> (&'static [u8], &'static [u8]) {
        ENDS
    }

    fn append(&self, arrays: &mut Arrays, spans: Spans<'_>, out: &mut dyn Write) -> io::Result<()> {
        ZipkinV2::elements(&mut arrays.lines, spans, out)
    }

    fn message(
        &self,
        arrays: &mut Arrays,
        spans: Spans<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        array::<ZipkinV2>(arrays, spans, out)
    }

    #[cfg(feature = "http")]
    fn collector(&self) -> Option<super::span_format::Collector> {
        Some(super::span_format::Collector {
            what: "the Zipkin collector",
            path: "/api/v2/spans",
            example: "http://localhost:9411",
            nothing: b"[]",
        })
    }
}

/// A span of version 1.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct V1<'a> {
    trace_id: Hex,
    name: &'a str,
    id: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<Hex>,
    annotations: Annotations<'a>,
    #[serde(rename = "binaryAnnotations", skip_serializing_if = "is_empty")]
    tags: &'static [Tag],
}

fn is_empty(tags: &[Tag]) -> bool {
    tags.is_empty()
}

/// A tag in version 1.
#[derive(Debug, Serialize)]
struct Tag {
    key: &'static str,
    value: &'static str,
}

/// The tag of a failed request.
static ERROR: [Tag; 1] = [Tag {
    key: "error",
    value: "true",
}];

/// The ends of an exchange, ordered by time.
#[derive(Debug)]
struct Annotations<'a> {
    span: Span,
    client: Option<&'a RawValue>,
    server: Option<&'a RawValue>,
    names: Names<'a>,
}

#[derive(Serialize)]
struct Annotation<'a> {
    endpoint: Option<&'a RawValue>,
    timestamp: u64,
    value: &'static str,
}

impl Serialize for Annotations<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let span = &self.span;
        let mut list = to.serialize_seq(None)?;
        for (at, endpoint, value) in [
            (span.client_send, self.client, "cs"),
            (span.server_receive, self.server, "sr"),
            (span.server_send, self.server, "ss"),
            (span.client_receive, self.client, "cr"),
        ] {
            if at != NEVER {
                list.serialize_element(&Annotation {
                    endpoint,
                    timestamp: self.names.micros(at),
                    value,
                })?;
            }
        }
        list.end()
    }
}

impl<'a> V1<'a> {
    fn new(span: &Span, names: &Names<'a>) -> V1<'a> {
        let endpoint = |actor| names.placed(actor).map(|placed| &*placed.endpoint);
        V1 {
            trace_id: Hex(span.context.trace().get()),
            name: names.kind(span.kind),
            id: Hex(span.context.span().get()),
            parent_id: span.context.parent().map(|parent| Hex(parent.get())),
            annotations: Annotations {
                span: *span,
                client: endpoint(span.client),
                server: endpoint(span.server),
                names: *names,
            },
            tags: match span.failed {
                true => &ERROR,
                false => &[],
            },
        }
    }
}

/// One side of a span in version 2.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct V2<'a> {
    trace_id: Hex,
    id: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<Hex>,
    name: &'a str,
    kind: &'static str,
    timestamp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_endpoint: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_endpoint: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<ErrorTag>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ErrorTag {
    error: &'static str,
}

impl<'a> V2<'a> {
    /// Returns the recorded sides of a span.
    fn sides(span: &Span, names: &Names<'a>) -> impl Iterator<Item = V2<'a>> {
        let (span, names) = (*span, *names);
        let endpoint = move |actor| names.placed(actor).map(|placed| &*placed.endpoint);
        let side = move |kind, from: u64, to: u64, local, remote, shared| {
            // If the beginning of a side was not recorded, the side begins at its end.
            let first = from.min(to);
            (first != NEVER).then(|| V2 {
                trace_id: Hex(span.context.trace().get()),
                id: Hex(span.context.span().get()),
                parent_id: span.context.parent().map(|parent| Hex(parent.get())),
                name: names.kind(span.kind),
                kind,
                timestamp: names.micros(first),
                // Zipkin treats a duration of 0 as unknown.
                duration: (from.max(to) != NEVER).then(|| (to.saturating_sub(from) / 1_000).max(1)),
                local_endpoint: endpoint(local),
                remote_endpoint: (remote != NONE).then(|| endpoint(remote)).flatten(),
                shared,
                tags: span.failed.then_some(ErrorTag { error: "true" }),
            })
        };
        let client = side(
            "CLIENT",
            span.client_send,
            span.client_receive,
            span.client,
            span.server,
            false,
        );
        let known = client.is_some();
        let server = side(
            "SERVER",
            span.server_receive,
            span.server_send,
            span.server,
            span.client,
            known,
        );
        client.into_iter().chain(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::{Node, TraceContext};

    fn directory() -> Directory {
        let mut directory = Directory::default();
        let all = [
            ("*", "*", "www00", "www", "denominator"),
            ("us-east-1", "*", "www-elb00", "www-elb", "elb"),
        ];
        for (actor, (region, zone, instance, service, package)) in (0..).zip(all) {
            directory.add(
                actor,
                Node {
                    name: format!("netflixoss.{region}.{zone}.{instance}"),
                    container: None,
                    full_name: format!(
                        "netflixoss.{region}.{zone}..{instance}...{service}.{package}"
                    ),
                    service: service.into(),
                    package: package.into(),
                    region: region.into(),
                    zone: zone.into(),
                },
            );
        }
        directory
    }

    fn names(directory: &Directory) -> Names<'_> {
        Names {
            directory,
            kinds: &["Put", "GetRequest"],
            operations: &[],
            epoch: 1_474_344_291_408_918_000,
        }
    }

    #[test]
    fn a_message_is_written_as_spigo_writes_it_but_for_the_hexadecimal_ids() {
        let directory = directory();
        let span = Span {
            client: 0,
            server: 1,
            client_send: 0,
            server_receive: 78_000,
            kind: 0,
            one_way: true,
            ..Span::new(TraceContext::new(0x189, 0x189, 0).unwrap())
        };
        let text = serde_json::to_string(&V1::new(&span, &names(&directory))).unwrap();
        assert_eq!(
            text,
            r#"{"traceId":"0000000000000189","name":"Put","id":"0000000000000189","annotations":[{"endpoint":{"serviceName":"netflixoss.*.*..www00...www.denominator","ipv4":"54.198.0.1","port":8080},"timestamp":1474344291408918,"value":"cs"},{"endpoint":{"serviceName":"netflixoss.us-east-1.*..www-elb00...www-elb.elb","ipv4":"54.198.0.2","port":8080},"timestamp":1474344291408996,"value":"sr"}]}"#
        );
    }

    fn request() -> Span {
        Span {
            client: 0,
            server: 1,
            client_send: 1_000,
            server_receive: 2_000,
            server_send: 2_500,
            client_receive: 5_000,
            kind: 1,
            ..Span::new(TraceContext::new(1, 0x1_0000_0002, 0xff).unwrap())
        }
    }

    #[test]
    fn a_request_has_four_annotations_in_the_order_of_time() {
        let directory = directory();
        let text = serde_json::to_value(V1::new(&request(), &names(&directory))).unwrap();
        assert_eq!(text["parentId"], "00000000000000ff");
        let annotations = text["annotations"].as_array().unwrap();
        let values: Vec<_> = annotations.iter().map(|a| &a["value"]).collect();
        assert_eq!(values, ["cs", "sr", "ss", "cr"]);
        assert!(annotations.is_sorted_by_key(|a| a["timestamp"].as_u64()));
    }

    #[test]
    fn version_2_has_a_span_for_each_side_with_one_id() {
        let directory = directory();
        let failed = Span {
            failed: true,
            ..request()
        };
        let sides: Vec<_> = V2::sides(&failed, &names(&directory)).collect();
        let text = serde_json::to_string(&sides).unwrap();
        let www = r#"{"serviceName":"netflixoss.*.*..www00...www.denominator","ipv4":"54.198.0.1","port":8080}"#;
        let elb = r#"{"serviceName":"netflixoss.us-east-1.*..www-elb00...www-elb.elb","ipv4":"54.198.0.2","port":8080}"#;
        let ids = r#""traceId":"0000000000000001","id":"0000000100000002","parentId":"00000000000000ff","name":"GetRequest""#;
        let tags = r#""tags":{"error":"true"}"#;
        assert_eq!(
            text,
            format!(
                "[{{{ids},\"kind\":\"CLIENT\",\"timestamp\":1474344291408919,\"duration\":4,\
                 \"localEndpoint\":{www},\"remoteEndpoint\":{elb},{tags}}},\
                 {{{ids},\"kind\":\"SERVER\",\"timestamp\":1474344291408920,\"duration\":1,\
                 \"localEndpoint\":{elb},\"remoteEndpoint\":{www},\"shared\":true,{tags}}}]"
            )
        );
    }

    #[test]
    fn a_side_that_was_never_recorded_is_left_out() {
        let directory = directory();
        let lost = Span {
            server: NONE,
            server_receive: NEVER,
            server_send: NEVER,
            client_receive: NEVER,
            ..request()
        };
        let sides: Vec<_> = V2::sides(&lost, &names(&directory)).collect();
        assert_eq!(
            (sides.len(), sides[0].kind, sides[0].duration),
            (1, "CLIENT", None)
        );
        let orphan = Span {
            client: NONE,
            client_send: NEVER,
            client_receive: NEVER,
            ..request()
        };
        let sides: Vec<_> = V2::sides(&orphan, &names(&directory)).collect();
        assert_eq!(
            (sides.len(), sides[0].kind, sides[0].shared),
            (1, "SERVER", false)
        );
    }
}
