//! Names as they are written in lines. Short names are compared without a function call.

use crate::line::{Escaped, Role, Span};
use std::sync::Arc;

/// A name in the text that is being read, with escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The first eight bytes, padded with zeros.
    head: u64,
    region: &'a str,
    span: Span,
}

/// An owned name with escapes.
#[derive(Clone, Debug)]
pub(super) struct Spelling {
    head: u64,
    text: Arc<str>,
}

impl<'a> Piece<'a> {
    /// Returns the name in this range.
    #[inline]
    pub fn new(region: &'a str, span: Span) -> Piece<'a> {
        let rest = region.as_bytes().get(span.from..).unwrap_or_default();
        let length = span.to - span.from;
        let head = match rest.first_chunk() {
            // Shifted in two steps, because a shift by 64 bits would overflow.
            Some(head) if length < 8 => {
                let others = 8 * (7 - length);
                (u64::from_le_bytes(*head) << 8 << others) >> 8 >> others
            }
            Some(head) => u64::from_le_bytes(*head),
            None => {
                let mut head = [0; 8];
                head[..length].copy_from_slice(&rest[..length]);
                u64::from_le_bytes(head)
            }
        };
        Piece { head, region, span }
    }

    /// Returns the bytes of the name, with escapes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        &self.region.as_bytes()[self.span.from..self.span.to]
    }

    /// Returns the name without escapes.
    pub fn meaning(self, role: Role) -> std::borrow::Cow<'a, str> {
        Escaped::new(self.text(), role).unescape()
    }

    /// Returns an owned copy, which outlives the text.
    pub fn keep(self) -> Spelling {
        Spelling {
            head: self.head,
            text: self.text().into(),
        }
    }

    fn text(self) -> &'a str {
        &self.region[self.span.from..self.span.to]
    }
}

impl Spelling {
    /// True if this is the same name.
    #[inline]
    pub fn is(&self, piece: Piece<'_>) -> bool {
        if self.head != piece.head || self.text.len() != piece.span.to - piece.span.from {
            return false;
        }
        self.text.len() <= 8 || self.is_long(piece)
    }

    /// True if the last bytes are equal.
    #[inline]
    fn is_long(&self, piece: Piece<'_>) -> bool {
        let (kept, bytes) = (self.text.as_bytes(), piece.bytes());
        let tail = |bytes: &[u8]| bytes.last_chunk().map(|tail| u64::from_le_bytes(*tail));
        // Head and tail cover sixteen bytes.
        tail(kept) == tail(bytes) && (kept.len() <= 16 || kept == bytes)
    }

    /// Returns the bytes of the name, with escapes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Returns the name without escapes; the same allocation if there are none.
    pub fn meaning(self, role: Role) -> Arc<str> {
        match Escaped::new(&self.text, role).unescape() {
            std::borrow::Cow::Borrowed(_) => self.text,
            std::borrow::Cow::Owned(meaning) => meaning.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_are_the_same_only_if_every_byte_is() {
        let text = "abcdefghijklmnopqrstuvwxyz0123456789";
        for from in 0..text.len() {
            for to in from..=text.len() {
                let span = Span { from, to };
                let kept = Piece::new(text, span).keep();
                // A name at the end of a text, and a name within a text.
                for after in ["", "=1,the rest"] {
                    let whole = format!("{}{after}", &text[..to]);
                    assert!(kept.is(Piece::new(&whole, span)), "{from}..{to}");
                    for at in from..to {
                        let mut other = whole.clone();
                        other.replace_range(at..at + 1, "!");
                        assert!(!kept.is(Piece::new(&other, span)), "{from}..{to} at {at}");
                    }
                    if to > from {
                        let shorter = Span { from, to: to - 1 };
                        assert!(!kept.is(Piece::new(&whole, shorter)), "{from}..{to}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_zero_byte_is_part_of_a_name() {
        let name = |text| {
            Piece::new(
                text,
                Span {
                    from: 0,
                    to: text.len(),
                },
            )
        };
        assert!(!name("a\0").keep().is(name("a")));
        assert!(!name("a").keep().is(name("a\0")));
    }
}
