//! What a span format has to implement.

use super::span::{Names, Span};
use crate::json_array::{Array, Element, Marshal};
use std::io::{self, Write};

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
