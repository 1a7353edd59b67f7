//! Names and strings as they are spelled in a line, and back.

use std::borrow::Cow;
use std::fmt;

/// A name or string as it is spelled in a line. It allocates nothing; [`Escaped::unescape`] does
/// if there is a backslash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Escaped<'a> {
    spelling: &'a str,
    role: Role,
}

/// Which characters a backslash escapes. Before any other it is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// A measurement: comma and space.
    Measurement,
    /// Keys of tags and fields, values of tags: comma, equals sign and space.
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
    /// What is spelled like this in a line.
    #[inline]
    pub(crate) fn new(spelling: &'a str, role: Role) -> Escaped<'a> {
        Escaped { spelling, role }
    }

    /// As it is spelled in the line. Of one role, equal spellings are equal names; so are strings,
    /// but not the other way round: a backslash may be spelled in two ways.
    #[inline]
    pub fn spelling(self) -> &'a str {
        self.spelling
    }

    /// What it means; borrowed if nothing is escaped. O(length).
    pub fn unescape(self) -> Cow<'a, str> {
        let bytes = self.spelling.as_bytes();
        let mut copy = String::new();
        // What comes before is in the copy.
        let mut done = 0;
        let mut from = 0;
        while let Some(place) = memchr::memchr(b'\\', &bytes[from..]) {
            let at = from + place;
            from = at + 1;
            if bytes.get(from).is_some_and(|&next| self.role.escapes(next)) {
                copy.push_str(&self.spelling[done..at]);
                done = from;
                from += 1;
            }
        }
        if done == 0 {
            return Cow::Borrowed(self.spelling);
        }
        copy.push_str(&self.spelling[done..]);
        Cow::Owned(copy)
    }
}

/// Whether it means this.
impl PartialEq<str> for Escaped<'_> {
    fn eq(&self, other: &str) -> bool {
        *self.unescape() == *other
    }
}

/// Whether it means this.
impl PartialEq<&str> for Escaped<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// What it means.
impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.unescape())
    }
}

/// What it means, in quotes.
impl fmt::Debug for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.unescape(), f)
    }
}

/// Appends a name or string as it is spelled in a line; strings without quotes around them.
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
                prop_assert_eq!(same, meaning.as_str());
            }
        }
    }
}
