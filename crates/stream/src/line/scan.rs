//! Checks one line and splits it into tokens.
//!
//! Tokens are positions in the escaped text. A name has exactly one escaped form, because every character that may be
//! escaped must be escaped. So two names with the same [`Role`](super::escape::Role) are equal if and only if their
//! escaped forms are equal.

use super::cursor::Cursor;
use super::error::LineErrorKind;
use super::number;
use super::raw::{RawValue, Span};

/// The tokens of a line. The memory is reused for the next line.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub measurement: Span,
    /// The keys and values of tags.
    pub tags: Vec<(Span, Span)>,
    /// The keys and values of fields; empty for lines whose fields are not stored.
    pub fields: Vec<(Span, RawValue)>,
    /// The start of the fields.
    pub fields_at: usize,
    /// The timestamp in the precision of the write.
    pub time: Option<i64>,
    /// The position of the timestamp, if there is one.
    pub time_at: usize,
    /// Tags sorted by key, to find duplicates.
    order: Vec<u32>,
}

/// An error and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub at: usize,
    pub kind: LineErrorKind,
}

impl Fault {
    #[cold]
    fn new<T>(at: usize, kind: LineErrorKind) -> Result<T, Fault> {
        Err(Fault { at, kind })
    }
}

/// Reads lines token by token. Every returned end is the position of a comma, space or newline (the
/// end of the text counts as a newline), and the next token begins right after it.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Scanner<'a> {
    /// Reads from `at` on.
    pub fn new(bytes: &'a [u8], at: usize) -> Scanner<'a> {
        let cursor = Cursor::new(bytes, at);
        Scanner { cursor }
    }

    /// Returns the byte at this position; a newline at and after the end.
    #[inline(always)]
    pub fn byte(&self, at: usize) -> u8 {
        self.cursor.byte(at)
    }

    /// Moves to `at`.
    pub fn seek(&mut self, at: usize) {
        self.cursor.seek(at);
    }

    /// Skips spaces and tabs at `at`, and returns their end.
    #[inline(always)]
    pub fn blanks(&mut self, mut at: usize) -> usize {
        loop {
            match self.byte(at) {
                b' ' => {
                    self.cursor.next();
                    at += 1;
                }
                b'\t' => at += 1,
                _ => return at,
            }
        }
    }

    /// Returns true if a line ends at `at`, and moves past its end.
    #[inline(always)]
    pub fn end_of_line(&mut self, at: usize) -> Option<usize> {
        let newline = match self.byte(at) {
            b'\n' => at,
            b'\r' if self.byte(at + 1) == b'\n' => at + 1,
            _ => return None,
        };
        self.cursor.next();
        Some(newline)
    }

    /// Reads the line at `from`, which is neither blank nor a comment, and returns its end. `keep`
    /// decides for a measurement whether its fields are stored.
    #[inline(always)]
    pub fn line(
        &mut self,
        from: usize,
        tokens: &mut Tokens,
        keep: impl FnOnce(Span) -> bool,
    ) -> Result<usize, Fault> {
        // A local copy of the scanner stays in registers.
        let mut scanner = self.clone();
        let end = scanner.pieces(from, tokens, keep);
        *self = scanner;
        end
    }

    /// Reads the line at `from`.
    #[inline(always)]
    fn pieces(
        &mut self,
        from: usize,
        tokens: &mut Tokens,
        keep: impl FnOnce(Span) -> bool,
    ) -> Result<usize, Fault> {
        tokens.tags.clear();
        tokens.fields.clear();
        let mut end;
        (tokens.measurement, end) = self.measurement(from)?;
        let keep = keep(tokens.measurement);
        let mut seen = 0_u64;
        let mut again = false;
        while self.byte(end) == b',' {
            let (key, value);
            (key, value, end) = self.tag(end + 1)?;
            let bit = 1_u64 << self.signature(key);
            again |= seen & bit != 0;
            seen |= bit;
            tokens.tags.push((key, value));
        }
        if again && let Some(at) = duplicate(self.cursor.bytes(), tokens) {
            return Fault::new(at, LineErrorKind::DuplicateTag);
        }
        // There is a space at `end`, because a line that ends after a tag or the measurement has
        // been refused.
        tokens.fields_at = self.blanks(end + 1);
        let mut next = tokens.fields_at;
        if let Some(newline) = self.end_of_line(next) {
            return Fault::new(newline, LineErrorKind::MissingFields);
        }
        loop {
            let (key, value);
            (key, value, end) = self.field(next)?;
            if keep {
                tokens.fields.push((key, value));
            }
            if self.byte(end) != b',' {
                break;
            }
            next = end + 1;
        }
        tokens.time = None;
        if self.byte(end) == b' ' {
            tokens.time_at = self.blanks(end + 1);
            (tokens.time, end) = self.time(tokens.time_at)?;
        }
        Ok(end)
    }

    /// Reads the measurement, up to an unescaped comma or space.
    #[inline(always)]
    fn measurement(&mut self, from: usize) -> Result<(Span, usize), Fault> {
        loop {
            let to = self.cursor.next();
            match self.byte(to) {
                b',' | b' ' => {
                    if to == from {
                        return Fault::new(to, LineErrorKind::MissingMeasurement);
                    }
                    return Ok((Span { from, to }, to));
                }
                b'\n' => return Fault::new(to, LineErrorKind::MissingFields),
                b'\\' if matches!(self.byte(to + 1), b',' | b' ') => {
                    self.cursor.next();
                }
                _ => {}
            }
        }
    }

    /// Reads up to an unescaped equals sign, which must come before a comma, a space and the end.
    #[inline(always)]
    fn key(
        &mut self,
        from: usize,
        no_key: LineErrorKind,
        no_value: LineErrorKind,
    ) -> Result<Span, Fault> {
        loop {
            let to = self.cursor.next();
            match self.byte(to) {
                b'=' if to > from => return Ok(Span { from, to }),
                b'\\' if matches!(self.byte(to + 1), b',' | b'=' | b' ') => {
                    self.cursor.next();
                }
                b'\\' | b'"' => {}
                _ if self.trim(from, to) == from => return Fault::new(from, no_key),
                _ => return Fault::new(to, no_value),
            }
        }
    }

    /// Reads a key and its value, which ends at an unescaped comma or space.
    #[inline(always)]
    pub fn tag(&mut self, from: usize) -> Result<(Span, Span, usize), Fault> {
        let no_key = LineErrorKind::MissingTagKey;
        let no_value = LineErrorKind::MissingTagValue;
        let key = self.key(from, no_key, no_value)?;
        if self.is(key, b"time") || self.is(key, b"_field") || self.is(key, b"_measurement") {
            return Fault::new(key.from, LineErrorKind::ReservedKey);
        }
        let from = key.to + 1;
        loop {
            let to = self.cursor.next();
            match self.byte(to) {
                b',' | b' ' if to > from => return Ok((key, Span { from, to }, to)),
                b',' | b' ' => return Fault::new(to, no_value),
                b'=' => return Fault::new(to, LineErrorKind::UnescapedEquals),
                b'\n' if self.trim(from, to) == from => return Fault::new(to, no_value),
                b'\n' => return Fault::new(to, LineErrorKind::MissingFields),
                b'\\' if matches!(self.byte(to + 1), b',' | b'=' | b' ') => {
                    self.cursor.next();
                }
                _ => {}
            }
        }
    }

    /// Reads a key and its value.
    #[inline(always)]
    pub fn field(&mut self, from: usize) -> Result<(Span, RawValue, usize), Fault> {
        let no_value = LineErrorKind::MissingFieldValue;
        let key = self.key(from, LineErrorKind::MissingFieldKey, no_value)?;
        if self.is(key, b"time") {
            return Fault::new(key.from, LineErrorKind::ReservedKey);
        }
        let from = key.to + 1;
        if self.byte(from) == b'"' {
            let (text, end) = self.string(from)?;
            return Ok((key, RawValue::Text(text), end));
        }
        let end = self.cursor.next();
        let to = self.trim(from, end);
        if !matches!(self.byte(end), b',' | b' ' | b'\n') {
            return Fault::new(from, LineErrorKind::BadFieldValue);
        }
        match number::unquoted(self.cursor.bytes(), from, to) {
            Ok(value) => Ok((key, value, end)),
            Err(kind) => Fault::new(from, kind),
        }
    }

    /// Reads a string whose first quote is at `quote`.
    #[inline(always)]
    fn string(&mut self, quote: usize) -> Result<(Span, usize), Fault> {
        self.cursor.next();
        let to = loop {
            let at = self.cursor.next();
            match self.byte(at) {
                b'"' => break at,
                b'\\' if matches!(self.byte(at + 1), b'"' | b'\\') => {
                    self.cursor.next();
                }
                b'\n' if at == self.cursor.bytes().len() => {
                    return Fault::new(quote, LineErrorKind::UnterminatedString);
                }
                _ => {}
            }
        };
        let text = Span {
            from: quote + 1,
            to,
        };
        let after = to + 1;
        if matches!(self.byte(after), b',' | b' ') {
            self.cursor.next();
            return Ok((text, after));
        }
        match self.end_of_line(after) {
            Some(newline) => Ok((text, newline)),
            None => Fault::new(after, LineErrorKind::TextAfterString),
        }
    }

    /// Reads the rest after the fields: an optional timestamp, then the end of the line.
    #[inline(always)]
    fn time(&mut self, from: usize) -> Result<(Option<i64>, usize), Fault> {
        if let Some(newline) = self.end_of_line(from) {
            return Ok((None, newline));
        }
        let end = self.cursor.next();
        if !matches!(self.byte(end), b' ' | b'\n') {
            return Fault::new(from, LineErrorKind::BadTimestamp);
        }
        let time = match number::time(self.cursor.bytes(), from, self.trim(from, end)) {
            Ok(time) => time,
            Err(kind) => return Fault::new(from, kind),
        };
        if self.byte(end) == b'\n' {
            return Ok((Some(time), end));
        }
        let after = self.blanks(end + 1);
        match self.end_of_line(after) {
            Some(newline) => Ok((Some(time), newline)),
            None => Fault::new(after, LineErrorKind::TextAfterTimestamp),
        }
    }

    /// Returns the end of the token before `end`, without a carriage return before a newline.
    #[inline(always)]
    fn trim(&self, from: usize, end: usize) -> usize {
        let before = self.byte(end) == b'\n' && end > from && self.byte(end - 1) == b'\r';
        end - usize::from(before)
    }

    /// True if the span has this text.
    #[inline(always)]
    fn is(&self, span: Span, word: &[u8]) -> bool {
        span.to - span.from == word.len() && span.of(self.cursor.bytes()) == word
    }

    /// Returns a number below 64 that differs for most pairs of keys.
    #[inline(always)]
    fn signature(&self, key: Span) -> u32 {
        let first = u32::from(self.byte(key.from));
        let last = u32::from(self.byte(key.to - 1));
        let length = (key.to - key.from) as u32;
        (first ^ last.wrapping_mul(11) ^ length.wrapping_mul(37)) & 63
    }
}

/// Returns the second of two tags with the same key. O(n log n).
#[cold]
fn duplicate(bytes: &[u8], tokens: &mut Tokens) -> Option<usize> {
    let Tokens { tags, order, .. } = tokens;
    let key = |place: &u32| tags[*place as usize].0.of(bytes);
    order.clear();
    order.extend(0..tags.len() as u32);
    order.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(a.cmp(b)));
    let twice = order
        .windows(2)
        .filter(|pair| key(&pair[0]) == key(&pair[1]));
    let second = twice.map(|pair| pair[1]).min();
    second.map(|place| tags[place as usize].0.from)
}
