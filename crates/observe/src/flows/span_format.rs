//! The interface that a span format implements.

use super::span::{Names, Span};
use crate::json_array::{Array, Element, Marshal};
use std::io::{self, Write};

/// A format for spans.
pub(super) trait SpanFormat: Sync {
    /// Returns the name of the format in flags, in Python and in checkpoints.
    fn name(&self) -> &'static str;

    /// Returns the part of the file name after the name of the architecture.
    fn file(&self) -> &'static str;

    /// Returns the text at the beginning and at the end of the file.
    fn ends(&self) -> (&'static [u8], &'static [u8]) {
        (b"", b"")
    }

    /// Appends spans to the file.
    fn append(&self, arrays: &mut Arrays, spans: Spans<'_>, out: &mut dyn Write) -> io::Result<()>;

    /// Writes spans as one message to another system.
    fn message(&self, arrays: &mut Arrays, spans: Spans<'_>, out: &mut dyn Write)
    -> io::Result<()>;

    /// Returns the collector that accepts these messages, if there is one.
    #[cfg(feature = "http")]
    fn collector(&self) -> Option<Collector> {
        None
    }
}

/// A server that accepts spans by HTTP.
#[cfg(feature = "http")]
pub(super) struct Collector {
    pub(super) what: &'static str,
    /// The path that is used if the address has no path.
    pub(super) path: &'static str,
    pub(super) example: &'static str,
    /// A message without spans.
    pub(super) nothing: &'static [u8],
}

/// Spans to be written, with the names that they need.
#[derive(Clone, Copy)]
pub(super) struct Spans<'a> {
    pub(super) marshal: &'a Marshal,
    pub(super) names: &'a Names<'a>,
    pub(super) spans: &'a [Span],
}

/// The arrays of an outlet: the array of its file, and the array within a message.
#[derive(Debug)]
pub(super) struct Arrays {
    pub(super) lines: Array<Line>,
    pub(super) inline: Array<Inline>,
}

/// Puts each element on a separate line, as spigo does.
#[derive(Debug)]
pub(super) struct Line;

impl Element for Line {
    const BEFORE: &'static [u8] = b",";
    const AFTER: &'static [u8] = b"\n";
}

/// Puts all elements on the line of the array.
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
