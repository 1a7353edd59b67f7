//! Reads lines from bytes that may not be valid text.
//!
//! The text up to the first character that is not valid UTF-8 is checked in one step. A line that reaches this
//! character is invalid; the next region begins after it.

use super::error::{LineError, LineErrorKind, excerpt};
use super::raw::Span;
use super::scan::{Fault, Scanner, Tokens};

/// Reads the lines of a text one by one.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// The start of the current region.
    base: usize,
    /// The region: valid UTF-8 from `base` up to the end or the first invalid character.
    region: &'a str,
    scanner: Scanner<'a>,
    /// The start of the next line in the region; beyond the end of the region once it is read.
    next: usize,
    /// The number of newlines before `counted`, a position in `bytes`.
    newlines: usize,
    counted: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        let mut reader = Reader {
            bytes,
            base: 0,
            region: "",
            scanner: Scanner::new(b"", 0),
            next: 0,
            newlines: 0,
            counted: 0,
        };
        reader.begin(0);
        reader
    }

    /// Returns the text to which the tokens of the last line refer.
    #[inline]
    pub fn region(&self) -> &'a str {
        self.region
    }

    /// Returns the start of the next line, in all bytes.
    #[inline]
    pub fn position(&self) -> usize {
        (self.base + self.next).min(self.bytes.len())
    }

    /// Reads the next line that is neither blank nor a comment: stores the tokens in `tokens`, and returns the end of
    /// the line, or an error if the line is invalid. `keep` decides for a measurement whether its fields are stored,
    /// and may be called for invalid lines.
    #[inline]
    pub fn line(
        &mut self,
        tokens: &mut Tokens,
        mut keep: impl FnMut(&'a str, Span) -> bool,
    ) -> Option<Result<usize, LineError>> {
        loop {
            if self.next > self.region.len() {
                return None;
            }
            let from = self.scanner.blanks(self.next);
            let read = match self.scanner.byte(from) {
                b'\n' | b'\r' if let Some(newline) = self.scanner.end_of_line(from) => {
                    if self.cut(newline) {
                        return Some(Err(self.broken()));
                    }
                    self.next = newline + 1;
                    continue;
                }
                b'#' => {
                    self.skip(from);
                    continue;
                }
                _ => {
                    let region = self.region;
                    self.scanner.line(from, tokens, |name| keep(region, name))
                }
            };
            return Some(match read {
                Ok(end) if !self.cut(end) => {
                    self.next = end + 1;
                    Ok(end)
                }
                Ok(_) => Err(self.broken()),
                Err(fault) => Err(self.fault(fault)),
            });
        }
    }

    /// Returns an error of the line that was read last, and skips the rest of the line.
    #[cold]
    pub fn error(&mut self, at: usize, kind: LineErrorKind) -> LineError {
        let at = self.base + at;
        self.newlines += memchr::memchr_iter(b'\n', &self.bytes[self.counted..at]).count();
        self.counted = at;
        let begin = memchr::memrchr(b'\n', &self.bytes[..at]).map_or(0, |newline| newline + 1);
        // Every byte that does not continue a character begins one.
        let continues = |byte: &&u8| (**byte as i8) < -0x40;
        let before = &self.bytes[begin..at];
        LineError {
            line: 1 + self.newlines,
            column: 1 + before.len() - before.iter().filter(continues).count(),
            excerpt: excerpt(&self.bytes[at..]),
            kind,
        }
    }

    /// Starts the region at `from`.
    fn begin(&mut self, from: usize) {
        let bytes = &self.bytes[from..];
        self.region = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        self.base = from;
        self.next = 0;
        self.scanner = Scanner::new(self.region.as_bytes(), 0);
    }

    /// True if a line that ends at this position ends only because the region ends.
    #[inline]
    fn cut(&self, end: usize) -> bool {
        end == self.region.len() && self.base + end < self.bytes.len()
    }

    /// Returns the error of a line, and skips its rest.
    #[cold]
    fn fault(&mut self, fault: Fault) -> LineError {
        let rest = &self.region.as_bytes()[fault.at.min(self.region.len())..];
        if memchr::memchr(b'\n', rest).is_none() && self.cut(self.region.len()) {
            return self.broken();
        }
        let error = self.error(fault.at, fault.kind);
        self.skip(fault.at);
        error
    }

    /// Returns the error of a line that reaches the end of the region.
    #[cold]
    fn broken(&mut self) -> LineError {
        let at = self.region.len();
        let error = self.error(at, LineErrorKind::InvalidUtf8);
        self.skip(at);
        error
    }

    /// Continues after the first newline at or after `at`.
    fn skip(&mut self, at: usize) {
        let rest = &self.bytes[self.base + at..];
        let next = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len()) + 1;
        if self.base + next > self.bytes.len() {
            self.next = self.region.len() + 1;
        } else if next > self.region.len() {
            self.begin(self.base + next);
        } else {
            self.next = next;
            self.scanner.seek(next);
        }
    }
}
