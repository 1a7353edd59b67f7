//! Span formats. Each has a file with its [`SpanFormat`], and a line in each list of this one.

use super::otlp::Otlp;
use super::span::{Names, Span};
use super::zipkin::{ZipkinV1, ZipkinV2};
use crate::json_array::{Array, Element, Marshal};
use std::io::{self, Write};

/// What flows look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowFormat {
    /// Zipkin v1, an array, as spigo writes it: `json_metrics/<arch>_flow.json`.
    ZipkinV1,
    /// Zipkin v2, an array: `json_metrics/<arch>_flow.zipkin.json`.
    ZipkinV2,
    /// OTLP/JSON, a request per line: `json_metrics/<arch>_flow.otlp.jsonl`.
    Otlp,
}

impl FlowFormat {
    /// All formats.
    pub const ALL: [FlowFormat; 3] = [FlowFormat::ZipkinV1, FlowFormat::ZipkinV2, FlowFormat::Otlp];

    pub(super) fn format(self) -> &'static dyn SpanFormat {
        match self {
            FlowFormat::ZipkinV1 => &ZipkinV1,
            FlowFormat::ZipkinV2 => &ZipkinV2,
            FlowFormat::Otlp => &Otlp,
        }
    }

    /// The name of the format in flags and in Python: `zipkin1`, `zipkin2` or `otlp`.
    pub fn name(self) -> &'static str {
        self.format().name()
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<FlowFormat> {
        FlowFormat::ALL
            .into_iter()
            .find(|format| format.name() == name)
    }
}

/// How spans are written.
pub(super) trait SpanFormat: Sync {
    /// Its name in flags, in Python and in checkpoints.
    fn name(&self) -> &'static str;

    /// What the name of its file has after that of the architecture.
    fn file(&self) -> &'static str;

    /// What its file begins and ends with.
    fn ends(&self) -> (&'static [u8], &'static [u8]) {
        (b"", b"")
    }

    /// Appends spans to its file.
    fn append(&self, arrays: &mut Arrays, spans: Spans<'_>, out: &mut dyn Write) -> io::Result<()>;

    /// Writes spans as one message to another system.
    fn message(&self, arrays: &mut Arrays, spans: Spans<'_>, out: &mut dyn Write)
    -> io::Result<()>;

    /// The collectors that take its messages, if there are any.
    #[cfg(feature = "http")]
    fn collector(&self) -> Option<Collector> {
        None
    }
}

/// A server that takes spans by HTTP.
#[cfg(feature = "http")]
pub(super) struct Collector {
    pub(super) what: &'static str,
    /// The path, where the given address has none.
    pub(super) path: &'static str,
    pub(super) example: &'static str,
    /// A message without spans.
    pub(super) nothing: &'static [u8],
}

/// Spans to write.
#[derive(Clone, Copy)]
pub(super) struct Spans<'a> {
    pub(super) marshal: &'a Marshal,
    pub(super) names: &'a Names<'a>,
    pub(super) spans: &'a [Span],
}

/// The arrays of an outlet: that of its file, and the one within a message.
#[derive(Debug)]
pub(super) struct Arrays {
    pub(super) lines: Array<Line>,
    pub(super) inline: Array<Inline>,
}

/// An element on a line of its own, as spigo has them.
#[derive(Debug)]
pub(super) struct Line;

impl Element for Line {
    const BEFORE: &'static [u8] = b",";
    const AFTER: &'static [u8] = b"\n";
}

/// An element on the line of the array.
#[derive(Debug)]
pub(super) struct Inline;

impl Element for Inline {
    const BEFORE: &'static [u8] = b",";
    const AFTER: &'static [u8] = b"";
}

impl Arrays {
    pub(super) fn new() -> Arrays {
        Arrays {
            lines: Array::new(),
            inline: Array::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_found_by_its_name() {
        for format in FlowFormat::ALL {
            assert_eq!(FlowFormat::named(format.name()), Some(format));
        }
        assert_eq!(FlowFormat::named("avro"), None);
    }
}
