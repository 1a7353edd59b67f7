//! Parts of a line, still in escaped form.

/// A piece of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub from: usize,
    pub to: usize,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RawValue {
    Float(f64),
    Integer(i64),
    Unsigned(u64),
    Boolean(bool),
    /// A string without its quotes.
    Text(Span),
}

impl Span {
    #[inline(always)]
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.from..self.to]
    }
}
