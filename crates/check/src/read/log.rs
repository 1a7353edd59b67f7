//! Logs of `jepsen.util`: `INFO jepsen.util - 3 :invoke :write 4`, and Jepsen's `history.txt`,
//! whose lines begin with the process.
//!
//! A failed `:cas` in a log means that it saw another value than it expected, as in the etcd logs
//! that porcupine is tested with.

use super::pairs::{Event, Pairs};
use super::{ReadError, edn};
use crate::Value;

pub(super) fn read(text: &[u8], pairs: &mut Pairs) -> Result<(), ReadError> {
    let mut values = 0;
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line_number = index + 1;
        let Ok(line) = std::str::from_utf8(line) else {
            let problem = "the line is not UTF-8".to_owned();
            return Err(ReadError {
                line: line_number,
                problem,
            });
        };
        let event = line
            .split_once("jepsen.util - ")
            .map_or(line, |(_, event)| event);
        let Some((process, kind, function, value)) = fields(event) else {
            continue;
        };
        let value = edn::value(value, &mut values).map_err(|mut error| {
            error.line = line_number;
            error
        })?;
        let mismatch = kind == "fail" && function == "cas" && value.list().is_some();
        let (kind, value) = match mismatch {
            true => ("ok", Value::Bool(false)),
            false => (kind, value),
        };
        pairs.event(Event {
            process,
            kind,
            function,
            key: None,
            value,
            line: line_number,
        })?;
    }
    Ok(())
}

/// Returns process, type, function and value; `None` if the line is not an event.
fn fields(event: &str) -> Option<(u64, &str, &str, &str)> {
    let (process, rest) = event.trim().split_once(char::is_whitespace)?;
    let (kind, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (function, value) = rest
        .split_once(char::is_whitespace)
        .unwrap_or((rest, "nil"));
    let name = |field: &str| field.starts_with(':');
    if !name(kind) || !name(function) {
        return None;
    }
    Some((process.parse().ok()?, &kind[1..], &function[1..], value))
}
