//! Reads recorded histories: Jepsen's EDN, JSON, and logs of `jepsen.util`, such as porcupine's
//! test data.
//!
//! Events are maps with `:process`, `:type` (`:invoke`, `:ok`, `:fail`, `:info`), `:f`, `:value`
//! and, optionally, `:key`. Their order is their order in the file. JSON may have complete
//! operations instead: `{"process": 0, "f": "read", "call": 10, "return": 20, "output": 5}`. Events
//! of processes that are not numbers, such as `:nemesis`, are skipped.
//!
//! ```
//! let text = "
//!     {:process 0, :type :invoke, :f :write, :value 1}
//!     {:process 0, :type :ok,     :f :write, :value 1}";
//! let records = corsair_check::read::parse(text.as_bytes())?;
//! assert_eq!((records.len(), records[0].call, records[0].returned), (1, 0, 1));
//! # Ok::<(), corsair_check::read::ReadError>(())
//! ```

mod edn;
mod json;
mod log;
mod pairs;

use crate::{Outcome, Record, Value};
use thiserror::Error;

/// Deepest nesting of values.
pub const MOST_DEPTH: usize = 64;
/// The maximum number of values in a history, so that a short text cannot take much memory.
pub const MOST_VALUES: usize = 1 << 26;

/// An error in a history.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// A clause that names the fault.
    pub problem: String,
}

/// Reads a history and recognizes its format by its first characters.
///
/// If all operations have values of the form `[key value]`, these are split into key and value.
///
/// # Errors
/// If the text is not a history, or is larger or deeper than the bounds of this module.
pub fn parse(text: &[u8]) -> Result<Vec<Record>, ReadError> {
    let mut pairs = pairs::Pairs::default();
    match format(text) {
        Format::Edn => edn::read(text, &mut pairs)?,
        Format::Json => json::read(text, &mut pairs)?,
        Format::Log => log::read(text, &mut pairs)?,
    }
    let mut records = pairs.finish()?;
    take_keys_apart(&mut records);
    Ok(records)
}

#[derive(Debug, PartialEq, Eq)]
enum Format {
    Edn,
    Json,
    Log,
}

fn format(text: &[u8]) -> Format {
    let mut rest = text.iter().filter(|byte| !byte.is_ascii_whitespace());
    match rest.next() {
        Some(b'[') => match rest.next() {
            Some(b'{') if rest.next() == Some(&b'"') => Format::Json,
            _ => Format::Edn,
        },
        Some(b'{') if rest.next() == Some(&b'"') => Format::Json,
        Some(b'{' | b'(' | b'#' | b';') => Format::Edn,
        _ => Format::Log,
    }
}

/// Moves keys out of values, if all records have values of the form `[key value]`.
fn take_keys_apart(records: &mut [Record]) {
    let has_key = |record: &Record| {
        record.key.is_none()
            && record.value.list().is_some_and(|pair| {
                let inner_is_pair = || pair[1].list().is_some_and(|inner| inner.len() == 2);
                pair.len() == 2 && (&*record.function != "cas" || inner_is_pair())
            })
    };
    if !records.iter().all(has_key) {
        return;
    }
    for record in records {
        let (key, value) = split(std::mem::take(&mut record.value));
        record.key = key;
        record.value = value;
        if let Outcome::Ok(value) = &mut record.outcome {
            *value = split(std::mem::take(value)).1;
        }
    }
}

fn split(value: Value) -> (Option<Value>, Value) {
    match value {
        Value::List(pair) if pair.len() == 2 => {
            let mut pair = pair.into_iter();
            (pair.next(), pair.next().unwrap_or_default())
        }
        other => (None, other),
    }
}

/// Returns the number of the line that contains a byte, from 1.
fn line_of(text: &[u8], at: usize) -> usize {
    1 + text[..at.min(text.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}
