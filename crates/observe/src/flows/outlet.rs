//! Outputs of spans: a file, a collector, a broker.

use super::otlp::{self, ResourceSpans};
use super::span::{Names, Span};
use super::zipkin::{V1, V2};
use crate::checkpoint::Output;
use crate::counted::CountingWriter;
use crate::json_array::{Array, Element, Marshal};
use crate::remote::Remote;
use crate::resumed::Begun;
use crate::{FlowFormat, Loss, ObserveError, Replacement, ResumePoint, Settings};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::PathBuf;

/// An output of spans, with its format.
#[derive(Debug)]
pub(crate) struct Outlet {
    format: FlowFormat,
    lines: Array<Line>,
    inline: Array<Inline>,
    to: To,
}

#[derive(Debug)]
enum To {
    File(CountingWriter<Replacement>),
    /// The most spans of a payload.
    #[cfg_attr(
        not(any(feature = "http", feature = "kafka")),
        allow(dead_code, reason = "used where flows are sent")
    )]
    Remote(Remote, usize),
}

/// The serialized form of a file of spans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedOutlet {
    begun: Begun,
    /// Whether its array has elements.
    elements: bool,
}

/// Elements on separate lines, as spigo writes them.
#[derive(Debug)]
struct Line;

impl Element for Line {
    const BEFORE: &'static [u8] = b",";
    const AFTER: &'static [u8] = b"\n";
}

/// An element on the line of the array.
#[derive(Debug)]
struct Inline;

impl Element for Inline {
    const BEFORE: &'static [u8] = b",";
    const AFTER: &'static [u8] = b"";
}

/// Spans of a request to a collector: a megabyte at most.
#[cfg(feature = "http")]
const REQUEST: usize = 1024;

/// Spans of a record: by default, brokers accept records of up to a megabyte.
#[cfg(feature = "kafka")]
const RECORD: usize = 256;

impl Outlet {
    /// A file below the directory of the settings.
    /// `resumed` is the state of a saved run that the outlet continues.
    pub(crate) fn file(
        settings: &Settings,
        format: FlowFormat,
        resumed: Option<(&ResumePoint, SavedOutlet)>,
    ) -> Result<Outlet, ObserveError> {
        let arch = &settings.arch;
        let name = match format {
            FlowFormat::ZipkinV1 => format!("{arch}_flow.json"),
            FlowFormat::ZipkinV2 => format!("{arch}_flow.zipkin.json"),
            FlowFormat::Otlp => format!("{arch}_flow.otlp.jsonl"),
        };
        let mut file = CountingWriter::new(settings.begin("json_metrics", &name)?);
        if let Some((resumed, SavedOutlet { begun, elements })) = resumed {
            begun.write(resumed, &mut file)?;
            let mut outlet = Outlet::new(format, To::File(file));
            if elements {
                outlet.lines.go_on();
            }
            return Ok(outlet);
        }
        if format != FlowFormat::Otlp {
            let begun = file.write_all(b"[\n");
            begun.map_err(|error| file.get().failed(error))?;
        }
        Ok(Outlet::new(format, To::File(file)))
    }

    /// The state that continues this outlet.
    pub(crate) fn save(&mut self) -> Result<(SavedOutlet, Output), ObserveError> {
        let name = match self.format {
            FlowFormat::ZipkinV1 => "flow.zipkin1",
            FlowFormat::ZipkinV2 => "flow.zipkin2",
            FlowFormat::Otlp => "flow.otlp",
        };
        let To::File(file) = &mut self.to else {
            return Err(ObserveError::NotSaved("what is sent to another system"));
        };
        let (begun, output) = Begun::of(name, file)?;
        let elements = self.lines.has_begun();
        Ok((SavedOutlet { begun, elements }, output))
    }

    /// How many bytes of its file have been written.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.to {
            To::File(file) => file.bytes(),
            To::Remote(..) => 0,
        }
    }

    fn new(format: FlowFormat, to: To) -> Outlet {
        Outlet {
            format,
            lines: Array::new(),
            inline: Array::new(),
            to,
        }
    }

    /// A collector of this format.
    #[cfg(feature = "http")]
    pub(crate) fn collector(given: &str, format: FlowFormat) -> Result<Outlet, ObserveError> {
        use crate::remote::http::{COLLECTOR, Post, url};
        let (what, path, example, nothing) = match format {
            FlowFormat::Otlp => (
                "the OTLP collector",
                "/v1/traces",
                "http://localhost:4318",
                &b"{\"resourceSpans\":[]}"[..],
            ),
            FlowFormat::ZipkinV1 | FlowFormat::ZipkinV2 => (
                "the Zipkin collector",
                "/api/v2/spans",
                "http://localhost:9411",
                &b"[]"[..],
            ),
        };
        let url = url(what, given, path, example)?;
        let post = Post::new(url.clone(), COLLECTOR);
        post.check(what, nothing)?;
        let remote = Remote::start(format!("{what} at {url}"), "spans", post)?;
        Ok(Outlet::new(format, To::Remote(remote, REQUEST)))
    }

    /// A collector of this format.
    #[cfg(not(feature = "http"))]
    pub(crate) fn collector(_: &str, _: FlowFormat) -> Result<Outlet, ObserveError> {
        Err(ObserveError::LeftOut {
            what: "a collector",
            feature: "http",
        })
    }

    /// A Kafka broker.
    #[cfg(feature = "kafka")]
    pub(crate) fn kafka(address: &str) -> Result<Outlet, ObserveError> {
        let kafka = crate::remote::kafka::Kafka::connect(address)?;
        let remote = Remote::start(format!("Kafka at {address}"), "spans", kafka)?;
        Ok(Outlet::new(
            FlowFormat::ZipkinV2,
            To::Remote(remote, RECORD),
        ))
    }

    /// A Kafka broker.
    #[cfg(not(feature = "kafka"))]
    pub(crate) fn kafka(_: &str) -> Result<Outlet, ObserveError> {
        Err(ObserveError::LeftOut {
            what: "Kafka",
            feature: "kafka",
        })
    }

    /// Writes the next spans, or queues them to be sent.
    pub(crate) fn write(
        &mut self,
        marshal: &Marshal,
        names: &Names<'_>,
        spans: &[Span],
    ) -> Result<(), ObserveError> {
        match &mut self.to {
            To::File(file) => {
                let written = match self.format {
                    FlowFormat::Otlp => request(&mut self.inline, marshal, names, spans, file)
                        .and_then(|()| file.write_all(b"\n")),
                    format => elements(format, &mut self.lines, marshal, names, spans, file),
                };
                written.map_err(|error| file.get().failed(error))?;
            }
            To::Remote(remote, most) => {
                for part in spans.chunks(*most) {
                    let mut payload = Vec::new();
                    let array = &mut self.inline;
                    let written = match self.format {
                        FlowFormat::Otlp => request(array, marshal, names, part, &mut payload),
                        format => {
                            array.restart();
                            payload.push(b'[');
                            let all = elements(format, array, marshal, names, part, &mut payload);
                            payload.push(b']');
                            all
                        }
                    };
                    written.expect("memory can be written, and spans be marshalled");
                    remote.send(payload, part.len() as u64);
                }
            }
        }
        Ok(())
    }

    /// The run is over.
    pub(crate) fn end(&mut self) -> Result<(), ObserveError> {
        match (&mut self.to, self.format) {
            (To::File(file), FlowFormat::ZipkinV1 | FlowFormat::ZipkinV2) => {
                let ended = file.write_all(b"]\n");
                Ok(ended.map_err(|error| file.get().failed(error))?)
            }
            _ => Ok(()),
        }
    }

    /// Completes the file, or waits until all of `spans` are sent.
    pub(crate) fn finish(
        self,
        spans: u64,
    ) -> Result<(Option<PathBuf>, Option<Loss>), ObserveError> {
        match self.to {
            To::File(file) => {
                let file = file.into_inner();
                let path = file.path().to_owned();
                file.finish()?;
                Ok((Some(path), None))
            }
            To::Remote(remote, _) => Ok((None, remote.finish(spans))),
        }
    }
}

/// Writes spans as elements of an array of Zipkin's.
fn elements<E: Element>(
    format: FlowFormat,
    array: &mut Array<E>,
    marshal: &Marshal,
    names: &Names<'_>,
    spans: &[Span],
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        FlowFormat::ZipkinV1 => {
            let values: Vec<V1<'_>> = spans.iter().map(|span| V1::new(span, names)).collect();
            array.write(marshal, &values, out)
        }
        _ => {
            let sides = spans.iter().flat_map(|span| V2::sides(span, names));
            array.write(marshal, &sides.collect::<Vec<V2<'_>>>(), out)
        }
    }
}

/// Writes spans as one request of OTLP's.
fn request(
    array: &mut Array<Inline>,
    marshal: &Marshal,
    names: &Names<'_>,
    spans: &[Span],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut sides = Vec::new();
    otlp::sides(spans, &mut sides);
    array.restart();
    out.write_all(b"{\"resourceSpans\":[")?;
    array.write(marshal, &ResourceSpans::of(&sides, names), out)?;
    out.write_all(b"]}")
}
