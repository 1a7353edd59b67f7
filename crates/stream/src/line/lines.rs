//! An iterator over the lines of a text.

use super::error::LineError;
use super::escape::{Escaped, Role};
use super::raw::{RawValue, Span};
use super::reader::Reader;
use super::scan::{Scanner, Tokens};
use std::fmt;

/// The lines of a text, valid and invalid. See [`parse`].
#[derive(Debug)]
pub struct Lines<'a> {
    reader: Reader<'a>,
    tokens: Tokens,
}

/// A valid line: one point, which borrows the text.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// The text up to the end of the line.
    text: &'a str,
    measurement: Span,
    fields_at: usize,
    /// The timestamp in the unit of the write's precision, which the line does not state.
    pub time: Option<i64>,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// `1`, `-1.5e3`: finite.
    Float(f64),
    /// `42i`
    Integer(i64),
    /// `42u`
    Unsigned(u64),
    /// `"text"`
    Text(Escaped<'a>),
    /// `t`, `T`, `true`, `True`, `TRUE`, `f`, `F`, `false`, `False`, `FALSE`
    Boolean(bool),
}

/// The tags of a line, in its order: key and value.
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    /// The position before the next tag, at its comma; at the space after the last one.
    at: usize,
}

/// The fields of a line, in its order: key and value.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    /// The position of the next field, if there is one.
    next: Option<usize>,
}

/// Parses a text line by line: returns its points, and the errors of invalid lines.
///
/// Nothing is copied, and no line costs an allocation, except errors and possibly the first line with more
/// tags than any before it. Each byte is read a bounded number of times, whatever the text; only the keys of
/// a line's tags may have to be sorted, to find duplicates.
pub fn parse(text: &[u8]) -> Lines<'_> {
    Lines {
        reader: Reader::new(text),
        tokens: Tokens::default(),
    }
}

impl Lines<'_> {
    /// Returns the number of bytes read, which is the start of the next line.
    pub fn offset(&self) -> usize {
        self.reader.position()
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<Line<'a>, LineError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let read = self.reader.line(&mut self.tokens, |_, _| false)?;
        Some(read.map(|end| Line {
            text: &self.reader.region()[..end],
            measurement: self.tokens.measurement,
            fields_at: self.tokens.fields_at,
            time: self.tokens.time,
        }))
    }
}

impl<'a> Line<'a> {
    /// Returns the measurement.
    #[inline]
    pub fn measurement(&self) -> Escaped<'a> {
        piece(self.text, self.measurement, Role::Measurement)
    }

    /// Returns the tags, whose keys are unique.
    #[inline]
    pub fn tags(&self) -> Tags<'a> {
        Tags {
            text: self.text,
            scanner: Scanner::new(self.text.as_bytes(), self.measurement.to + 1),
            at: self.measurement.to,
        }
    }

    /// Returns the fields, at least one. If a key occurs twice, the last one counts.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        Fields {
            text: self.text,
            scanner: Scanner::new(self.text.as_bytes(), self.fields_at),
            next: Some(self.fields_at),
        }
    }

    /// Returns the text of the line, without the newline.
    pub fn as_str(&self) -> &'a str {
        let line = &self.text[self.measurement.from..];
        line.strip_suffix('\r').unwrap_or(line)
    }
}

impl fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Line").field(&self.as_str()).finish()
    }
}

/// Returns a token as a name or string.
#[inline]
fn piece(text: &str, span: Span, role: Role) -> Escaped<'_> {
    Escaped::new(&text[span.from..span.to], role)
}

// The line has been checked, so its tags can be scanned again without errors.

impl<'a> Iterator for Tags<'a> {
    type Item = (Escaped<'a>, Escaped<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.scanner.byte(self.at) != b',' {
            return None;
        }
        let (key, value, end) = self.scanner.tag(self.at + 1).ok()?;
        self.at = end;
        let name = |span| piece(self.text, span, Role::Name);
        Some((name(key), name(value)))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Escaped<'a>, FieldValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value, end) = self.scanner.field(self.next?).ok()?;
        self.next = (self.scanner.byte(end) == b',').then_some(end + 1);
        let value = match value {
            RawValue::Float(value) => FieldValue::Float(value),
            RawValue::Integer(value) => FieldValue::Integer(value),
            RawValue::Unsigned(value) => FieldValue::Unsigned(value),
            RawValue::Boolean(value) => FieldValue::Boolean(value),
            RawValue::Text(span) => FieldValue::Text(piece(self.text, span, Role::Text)),
        };
        Some((piece(self.text, key, Role::Name), value))
    }
}
