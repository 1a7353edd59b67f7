//! The InfluxDB line protocol.
//!
//! ```text
//! measurement,tag=value,tag=value field=value,field=value timestamp
//! ```
//!
//! ```
//! use corsair_stream::line::{self, FieldValue};
//!
//! let mut lines = line::parse(br#"disk,host=a,path=/my\ data used=0.5,free=12i 1700000000"#);
//! let line = lines.next().unwrap().unwrap();
//! assert_eq!(line.measurement(), "disk");
//! assert_eq!(line.tags().last().unwrap().1, "/my data");
//! assert_eq!(line.fields().next().unwrap().1, FieldValue::Float(0.5));
//! assert_eq!(line.time, Some(1_700_000_000));
//! assert!(lines.next().is_none());
//!
//! let error = line::parse(b"disk free=much").next().unwrap().unwrap_err();
//! assert_eq!(error.code(), "bad_field_value");
//! assert_eq!((error.line, error.column), (1, 11));
//! ```
//!
//! # What is a line
//! - **Lines** end at a newline that is in no string, or at the end of the text; a carriage return
//!   before that belongs to the end. Spaces and tabs at the beginning do not count. Lines with
//!   nothing else are skipped, and comments, which begin with `#`.
//! - **Tags** are optional and have a value; **fields** are not optional. Between tags and fields,
//!   and before the timestamp, are one or more spaces. A key of a tag is there once, or the line is
//!   bad; of a field that is there twice the last value counts.
//! - **Names** (measurement, keys, values of tags) are of one or more characters. A comma and a space
//!   are escaped by a backslash, and but in the measurement an equals sign, too. A backslash before
//!   anything else is itself, so that a name cannot end with one. Double quotes are nothing special
//!   in a name.
//! - **Values** of fields are floats (`1`, `-1.5`, `.5`, `1e3`), integers (`1i`), unsigned integers
//!   (`1u`), booleans (`t`, `T`, `true`, `True`, `TRUE`, and likewise false), or strings in double
//!   quotes, in which a double quote and a backslash are escaped and a newline is itself. Numbers are
//!   finite and fit into 64 bits.
//! - The **timestamp** is an optional integer.
//! - **Reserved** are the key `time`, and as tags `_field` and `_measurement`.
//! - All of it is UTF-8.
//!
//! # What follows a bad line
//! A line is bad at its first fault, whose place its error tells. What remains of it is skipped up to
//! the first newline at or behind the fault, even if that is meant to be within a string: past a
//! fault is unknown. A newline in a string that was closed before the fault does not count. A
//! string without end is at fault where it begins, so that the line after is read again. So every line
//! yields one point or one error, and no text takes more than linear time: a string without end is
//! the last one of the text, since any quote after it would be its end.
//!
//! # What differs from others on purpose
//! InfluxDB 1.x (its package `models`) defines the format. It differs in these:
//! - `\r\n` ends a line here; there, a carriage return after a timestamp is an error.
//! - A backslash before a newline does not continue the line; a name has no newlines.
//! - Unescaped commas in the key of a field are an error here; there, some pass.
//! - A zero byte is a character like any other; there, it is a space where spaces may be.
//! - A field `time` is an error; there, the field is dropped, and the point if it has no other.
//! - Text that is not UTF-8 is refused.
//! - Names of any length are accepted; there, up to 64 KiB.
//!
//! The crate `influxdb-line-protocol` of InfluxDB 3, with which tests compare this one, differs from
//! this module and from InfluxDB 1.x in these:
//! - Two backslashes in a name are one backslash there, two here.
//! - Tabs end names there, and are characters like any other here.
//! - An unescaped equals sign may be in the value of a tag there; an unescaped comma may be in keys.
//! - `.5` and `5.` are no numbers there.
//! - A carriage return at the end of a line is a fault there, and so is a zero byte in a measurement.
//! - It finds duplicate tags only when asked to, and knows no reserved keys.
//! - It reads `1e999` as infinity.
//! - It takes UTF-8 only, so that a broken character is a matter of its caller.

mod complete;
mod cursor;
mod error;
mod escape;
mod lines;
mod number;
mod precision;
mod raw;
mod reader;
mod scan;

pub use complete::complete;
pub use error::{LineError, LineErrorKind};
pub use escape::Escaped;
pub use lines::{FieldValue, Fields, Line, Lines, Tags, parse};
pub use precision::{Precision, PrecisionError};

pub(crate) use escape::{Role, escape};
pub(crate) use raw::{RawValue, Span};
pub(crate) use reader::Reader;
pub(crate) use scan::Tokens;
