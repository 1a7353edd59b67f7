//! Parts of a program's text.

/// A part of the text, in bytes: from the first to before the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}
