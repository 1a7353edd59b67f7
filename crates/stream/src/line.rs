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
//! - **Lines** end at a newline outside of strings, or at the end of the text; a carriage return before the newline is
//!   part of the line end. Spaces and tabs at the beginning are ignored. Empty lines are skipped, and so are comments,
//!   which begin with `#`.
//! - **Tags** are optional and have a value; at least one **field** is required. Tags and fields are separated by one
//!   or more spaces, and so is the timestamp. A duplicate tag makes the line invalid; of a duplicate field the last
//!   value counts.
//! - **Names** (measurement, keys, values of tags) have one or more characters. A backslash escapes a comma and a
//!   space, and, except in the measurement, an equals sign. Before any other character a backslash means itself, so a
//!   name cannot end with one. Double quotes have no special meaning in a name.
//! - **Values** of fields are floats (`1`, `-1.5`, `.5`, `1e3`), integers (`1i`), unsigned integers (`1u`), booleans
//!   (`t`, `T`, `true`, `True`, `TRUE`, and likewise false), or strings in double quotes, in which double quotes and
//!   backslashes are escaped and a newline means itself. Numbers are finite and fit into 64 bits.
//! - The **timestamp** is an optional integer.
//! - **Reserved names** are the key `time`, and the tags `_field` and `_measurement`.
//! - The whole text is UTF-8.
//!
//! # What follows a bad line
//! A line is invalid at its first error, whose position is reported. The rest of it is skipped up to the first newline
//! at or after the error, even if that newline was meant to be within a string, because the structure after an error is
//! unknown. A newline in a string that was closed before the error does not count. The error of an unterminated string
//! is at its beginning, so the following line is read again. So every line gives one point or one error, and no text
//! takes more than linear time: an unterminated string is the last one of the text, because any later quote would end
//! it.
//!
//! # What differs from others on purpose
//! InfluxDB 1.x (its package `models`) defines the format. This module differs from it as follows:
//! - `\r\n` ends a line here; there, a carriage return after a timestamp is an error.
//! - A backslash before a newline does not continue the line; names cannot contain newlines.
//! - Unescaped commas in the key of a field are an error here; InfluxDB accepts some.
//! - A zero byte is an ordinary character; in InfluxDB it counts as a space where spaces are allowed.
//! - A field `time` is an error; InfluxDB drops the field, and the point if it has no other field.
//! - Text that is not UTF-8 is refused.
//! - Names may have any length; in InfluxDB up to 64 KiB.
//!
//! The crate `influxdb-line-protocol` of InfluxDB 3, with which tests compare this module, differs from it and from
//! InfluxDB 1.x as follows:
//! - Two backslashes in a name mean one backslash there and two here.
//! - Tabs end names there, and are ordinary characters here.
//! - There, the value of a tag may contain an unescaped equals sign, and keys an unescaped comma.
//! - `.5` and `5.` are not numbers there.
//! - A carriage return at the end of a line is an error there, and so is a zero byte in a measurement.
//! - It checks for duplicate tags only on request, and has no reserved keys.
//! - It reads `1e999` as infinity.
//! - It takes only UTF-8, so its caller has to handle invalid text.

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
