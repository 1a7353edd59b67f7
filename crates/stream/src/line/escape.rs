//! Names and strings in the escaped form of a line, and their conversion.

use std::borrow::Cow;
use std::fmt;

/// A name or string with escapes, as in a line. Creating it allocates nothing; [`Escaped::unescape`] allocates if
/// there is a backslash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Escaped<'a> {
    spelling: &'a str,
    role: Role,
}

/// The role of a text in a line, which determines the characters that a backslash escapes. Before any other character a
/// backslash means itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// A measurement: comma and space.
    Measurement,
    /// A key of a tag or field, or the value of a tag: comma, equals sign and space.
    Name,
    /// A string, without the quotes around it: double quote and backslash.
    Text,
}

impl Role {
    fn escapes(self, byte: u8) -> bool {
        match self {
            Role::Measurement => matches!(byte, b',' | b' '),
            Role::Name => matches!(byte, b',' | b'=' | b' '),
            Role::Text => matches!(byte, b'"' | b'\\'),
        }
    }
}

impl<'a> Escaped<'a> {
    /// Creates a value from the text of a line.
    #[inline]
    pub(crate) fn new(spelling: &'a str, role: Role) -> Escaped<'a> {
        Escaped { spelling, role }
    }

    /// Returns the text as it is in the line. Names of one role are equal exactly if their texts are equal. Equal
    /// strings may have different texts, because a backslash can be written in two ways.
    #[inline]
    pub fn spelling(self) -> &'a str {
        self.spelling
    }

    /// Returns the text without escapes; borrowed if there are none. O(length).
    pub fn unescape(self) -> Cow<'a, str> {
        let mut pieces = self.pieces();
        let first = pieces.next().unwrap_or_default();
        if first.len() == self.spelling.len() {
            return Cow::Borrowed(first);
        }
        let mut meaning = String::with_capacity(self.spelling.len());
        meaning.push_str(first);
        meaning.extend(pieces);
        Cow::Owned(meaning)
    }

    /// Iterates over the parts between escaping backslashes.
    fn pieces(self) -> impl Iterator<Item = &'a str> {
        let mut rest = Some(self.spelling);
        std::iter::from_fn(move || {
            let piece = rest?;
            let bytes = piece.as_bytes();
            let escapes = |&at: &usize| {
                bytes
                    .get(at + 1)
                    .is_some_and(|&next| self.role.escapes(next))
            };
            // The first character of the rest is escaped by the backslash before it.
            let mut from = usize::from(piece.len() < self.spelling.len());
            let at = loop {
                let Some(place) = memchr::memchr(b'\\', bytes.get(from..).unwrap_or_default())
                else {
                    break None;
                };
                let at = from + place;
                if escapes(&at) {
                    break Some(at);
                }
                from = at + 1;
            };
            rest = at.map(|at| &piece[at + 1..]);
            Some(&piece[..at.unwrap_or(piece.len())])
        })
    }
}

/// Compares with an unescaped text. O(length), without an allocation.
impl PartialEq<str> for Escaped<'_> {
    fn eq(&self, other: &str) -> bool {
        let mut rest = Some(other);
        for piece in self.pieces() {
            rest = rest.and_then(|rest| rest.strip_prefix(piece));
        }
        rest == Some("")
    }
}

/// True if the unescaped text equals this one.
impl PartialEq<&str> for Escaped<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// Writes the text without escapes.
impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

/// Writes the text without escapes, in quotes.
impl fmt::Debug for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.unescape(), f)
    }
}

/// Appends a name or string with escapes; strings without quotes.
pub(crate) fn escape(meaning: &str, role: Role, line: &mut String) {
    let mut done = 0;
    for (at, byte) in meaning.bytes().enumerate() {
        if role.escapes(byte) {
            line.push_str(&meaning[done..at]);
            line.push('\\');
            done = at;
        }
    }
    line.push_str(&meaning[done..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_backslash_escapes_what_it_must_and_is_itself_before_anything_else() {
        let meaning = |spelling, role| Escaped::new(spelling, role).unescape().into_owned();
        assert_eq!(meaning(r"a\ b\,c\=d", Role::Measurement), r"a b,c\=d");
        assert_eq!(meaning(r"a\ b\,c\=d", Role::Name), "a b,c=d");
        assert_eq!(meaning(r"\n\\\ \é\", Role::Name), r"\n\\ \é\");
        assert_eq!(meaning(r#"a\"b\\"c\n\ "#, Role::Text), r#"a"b\"c\n\ "#);
    }

    #[test]
    fn what_has_nothing_escaped_is_borrowed() {
        for spelling in ["", "plain", r"c:\dir", r"\\"] {
            let meaning = Escaped::new(spelling, Role::Name).unescape();
            assert!(matches!(meaning, Cow::Borrowed(same) if same == spelling));
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_means_the_same(meaning in r#"[a\\,= "é]{0,20}"#) {
            for role in [Role::Measurement, Role::Name, Role::Text] {
                let mut spelling = String::new();
                escape(&meaning, role, &mut spelling);
                let same = Escaped::new(&spelling, role);
                prop_assert_eq!(&*same.unescape(), meaning.as_str());
                prop_assert_eq!(same, meaning.as_str());
                prop_assert_eq!(same.to_string(), meaning.as_str());
                let shorter: String = meaning.chars().skip(1).collect();
                for other in [format!("{meaning}x"), format!("x{meaning}"), shorter] {
                    prop_assert_eq!(same == other.as_str(), meaning == other);
                }
            }
        }
    }
}
