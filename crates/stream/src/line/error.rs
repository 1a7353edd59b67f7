//! Errors of lines.

use std::fmt;

/// The maximum number of characters of a line in a message.
const EXCERPT: usize = 40;

/// An invalid line: the position of the error, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}{}", Near(excerpt))]
pub struct LineError {
    /// The line of the text, from 1; newlines within strings also count.
    pub line: usize,
    /// The position of the character within the line, from 1.
    pub column: usize,
    /// The text at the position: at most 40 characters, with non-printing ones escaped. Empty at the end of
    /// the line.
    pub excerpt: Box<str>,
    /// The kind of error.
    pub kind: LineErrorKind,
}

/// The kind of error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LineErrorKind {
    /// `,tag=a field=1`
    #[error("there is no measurement: begin the line with its name, as in `name,tag=a field=1`")]
    MissingMeasurement,
    /// `name,=a field=1`
    #[error("a tag has no key: write key=value after each comma, without a space between tags")]
    MissingTagKey,
    /// `name,tag field=1`
    #[error("a tag has no value: write key=value, or leave the tag out if it has none")]
    MissingTagValue,
    /// `name,tag=a=b field=1`
    #[error("an equals sign in the value of a tag: write it as `\\=`")]
    UnescapedEquals,
    /// `name,tag=a,tag=b field=1`
    #[error("a tag is given twice: write each key once")]
    DuplicateTag,
    /// `name,time=a field=1`
    #[error(
        "a reserved key: choose another; `time` is none of a tag or field, and `_field` and \
         `_measurement` are none of a tag"
    )]
    ReservedKey,
    /// `name,tag=a`
    #[error("there are no fields: write a space after measurement and tags, then field=value")]
    MissingFields,
    /// `name =1`
    #[error("a field has no key: write key=value after each comma, without a space between fields")]
    MissingFieldKey,
    /// `name field`
    #[error("a field has no value: write key=value")]
    MissingFieldValue,
    /// `name field=yes`
    #[error(
        "not the value of a field: write a number such as 1.5, an integer such as 15i or 15u, true, \
         false, or a string in double quotes"
    )]
    BadFieldValue,
    /// `name field=NaN`
    #[error("numbers are finite: leave a field out if it has no value")]
    NotFinite,
    /// `name field=1e999`
    #[error("a float beyond 64 bits: write one between -1.8e308 and 1.8e308")]
    FloatOutOfRange,
    /// `name field=9223372036854775808i`
    #[error("an integer beyond 64 bits: write a float, without the `i`, or one with `u`")]
    IntegerOutOfRange,
    /// `name field=18446744073709551616u`
    #[error("an unsigned integer beyond 64 bits: write a float, without the `u`")]
    UnsignedOutOfRange,
    /// `name field="a`
    #[error("a string has no end: close it with a double quote, and write one within it as `\\\"`")]
    UnterminatedString,
    /// `name field="a"b`
    #[error(
        "text after a string: write a comma or a space, and a double quote within it as `\\\"`"
    )]
    TextAfterString,
    /// `name field=1 noon`
    #[error("not a timestamp: write an integer, or leave it out for the time of the write")]
    BadTimestamp,
    /// `name field=1 9223372036854775808`
    #[error(
        "a timestamp beyond 64 bits of nanoseconds: write one between the years 1678 and 2262, in \
         the precision of the write"
    )]
    TimestampOutOfRange,
    /// `name field=1 17 18`
    #[error("text after the timestamp: end the line there, or escape spaces within names as `\\ `")]
    TextAfterTimestamp,
    /// The line is longer than the reader's limit.
    #[error("a line longer than the limit: write its fields as several lines")]
    LineTooLong,
    /// The line is not valid UTF-8.
    #[error("not UTF-8: write the line in UTF-8")]
    InvalidUtf8,
}

impl LineErrorKind {
    /// Returns a stable short name of the kind of error, for programs.
    pub fn code(self) -> &'static str {
        match self {
            LineErrorKind::MissingMeasurement => "missing_measurement",
            LineErrorKind::MissingTagKey => "missing_tag_key",
            LineErrorKind::MissingTagValue => "missing_tag_value",
            LineErrorKind::UnescapedEquals => "unescaped_equals",
            LineErrorKind::DuplicateTag => "duplicate_tag",
            LineErrorKind::ReservedKey => "reserved_key",
            LineErrorKind::MissingFields => "missing_fields",
            LineErrorKind::MissingFieldKey => "missing_field_key",
            LineErrorKind::MissingFieldValue => "missing_field_value",
            LineErrorKind::BadFieldValue => "bad_field_value",
            LineErrorKind::NotFinite => "not_finite",
            LineErrorKind::FloatOutOfRange => "float_out_of_range",
            LineErrorKind::IntegerOutOfRange => "integer_out_of_range",
            LineErrorKind::UnsignedOutOfRange => "unsigned_out_of_range",
            LineErrorKind::UnterminatedString => "unterminated_string",
            LineErrorKind::TextAfterString => "text_after_string",
            LineErrorKind::BadTimestamp => "bad_timestamp",
            LineErrorKind::TimestampOutOfRange => "timestamp_out_of_range",
            LineErrorKind::TextAfterTimestamp => "text_after_timestamp",
            LineErrorKind::LineTooLong => "line_too_long",
            LineErrorKind::InvalidUtf8 => "invalid_utf8",
        }
    }
}

impl LineError {
    /// Returns a stable short name of the error, for programs.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }
}

/// The excerpt of a message.
struct Near<'a>(&'a str);

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("; at the end of the line"),
            excerpt => write!(f, "; at: {excerpt}"),
        }
    }
}

/// Returns the part of a line after the error that messages show.
pub(super) fn excerpt(bytes: &[u8]) -> Box<str> {
    // A UTF-8 character has at most four bytes, so these bytes are enough for the excerpt.
    let bytes = &bytes[..bytes.len().min(4 * EXCERPT)];
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let mut shown = String::new();
    let mut room = EXCERPT;
    for chunk in line.utf8_chunks() {
        let text = chunk.valid().chars();
        // Quotes and backslashes are not escaped, because they are printable and frequent in lines.
        let text = text.map(|char| match char {
            '"' | '\'' | '\\' => char.to_string(),
            _ => char.escape_debug().to_string(),
        });
        let broken = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        for piece in text.chain(broken) {
            let length = piece.chars().count();
            if length > room {
                return shown.into();
            }
            room -= length;
            shown.push_str(&piece);
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_printable_and_of_one_line() {
        assert_eq!(&*excerpt(b"a=1\r\nb=2"), "a=1");
        assert_eq!(
            &*excerpt(b"\x1b[31m\t\"\\\xff\xfe!"),
            "\\u{1b}[31m\\t\"\\\\xff\\xfe!"
        );
        assert_eq!(excerpt(&b"x".repeat(1000)).len(), 40);
        assert_eq!(excerpt("é".repeat(1000).as_bytes()).chars().count(), 40);
        assert_eq!(excerpt("😀".repeat(1000).as_bytes()).chars().count(), 40);
        assert!(excerpt(&b"\xff".repeat(1000)).chars().count() <= 40);
        assert_eq!(&*excerpt(b""), "");
    }
}
