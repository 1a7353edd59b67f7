//! Parts of a program's text.

/// A part of the text, as byte offsets; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}
