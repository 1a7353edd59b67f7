//! Names as they are spelled in lines, compared without a call where they are short.

use crate::line::{Escaped, Role, Span};
use std::sync::Arc;

/// A name as it is spelled in the text that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// Its first eight bytes, and zeros if it has fewer.
    head: u64,
    region: &'a str,
    span: Span,
}

/// A name as it was spelled in a text, kept.
#[derive(Clone, Debug)]
pub(super) struct Spelling {
    head: u64,
    text: Arc<str>,
}

impl<'a> Piece<'a> {
    /// The name at this place.
    #[inline]
    pub fn new(region: &'a str, span: Span) -> Piece<'a> {
        let bytes = region.as_bytes();
        let length = span.to - span.from;
        let head = match bytes[span.from..].first_chunk() {
            Some(head) if length >= 8 => u64::from_le_bytes(*head),
            Some(head) => u64::from_le_bytes(*head) & !(u64::MAX << (8 * length)),
            None => {
                let mut head = [0; 8];
                head[..length].copy_from_slice(&bytes[span.from..span.to]);
                u64::from_le_bytes(head)
            }
        };
        Piece { head, region, span }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        &self.region.as_bytes()[self.span.from..self.span.to]
    }

    /// What it means.
    pub fn meaning(self, role: Role) -> std::borrow::Cow<'a, str> {
        Escaped::new(self.text(), role).unescape()
    }

    /// Kept beyond the text.
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
    /// Whether this is the same name.
    #[inline]
    pub fn is(&self, piece: Piece<'_>) -> bool {
        let (kept, bytes) = (self.text.as_bytes(), piece.bytes());
        if self.head != piece.head || kept.len() != bytes.len() {
            return false;
        }
        match (kept.last_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(kept_tail), Some(tail)) => {
                let tails = u64::from_le_bytes(*kept_tail) == u64::from_le_bytes(*tail);
                // Head and tail cover sixteen bytes.
                tails && (kept.len() <= 16 || kept == bytes)
            }
            _ => true,
        }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// What it means; the same allocation if nothing is escaped.
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
                // At the end of a text, and amid one.
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
