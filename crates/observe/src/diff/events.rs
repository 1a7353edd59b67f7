//! The events of a recorded run, one at a time.

use super::DiffError;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The events of a file: its lines without separators. The lines around the events of a graph, such as its header, are
/// skipped.
pub(super) struct Events {
    path: PathBuf,
    lines: BufReader<File>,
    line: Vec<u8>,
    /// The number of the event, from 1.
    pub(super) number: u64,
}

impl Events {
    pub(super) fn open(path: &Path) -> Result<Events, DiffError> {
        let file = File::open(path).map_err(|error| DiffError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        Ok(Events {
            path: path.to_owned(),
            lines: BufReader::with_capacity(1 << 16, file),
            line: Vec::new(),
            number: 0,
        })
    }

    /// Advances to the next event; `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, DiffError> {
        loop {
            self.line.clear();
            let read = self.lines.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| DiffError::Unreadable {
                path: self.path.clone(),
                error,
            })?;
            if read == 0 {
                return Ok(false);
            }
            if !is_frame(self.event()) {
                self.number += 1;
                return Ok(true);
            }
        }
    }

    /// Returns the event without surrounding blanks and commas.
    pub(super) fn event(&self) -> &[u8] {
        let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let line = &self.line;
        let first = line
            .iter()
            .position(|byte| !blank(byte))
            .unwrap_or(line.len());
        let last = line
            .iter()
            .rposition(|byte| !blank(byte))
            .map_or(first, |last| last + 1);
        &line[first..last]
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.event()).into_owned()
    }
}

/// Returns true if a line belongs to the text around the events.
fn is_frame(line: &[u8]) -> bool {
    const HEADER: [&[u8]; 5] = [
        b"\"arch\":",
        b"\"version\":",
        b"\"args\":",
        b"\"date\":",
        b"\"graph\":",
    ];
    let bracket = |byte: &u8| matches!(byte, b'[' | b']' | b'{' | b'}');
    line.iter().all(bracket) || HEADER.iter().any(|key| line.starts_with(key))
}

/// Returns the time of an event in nanoseconds since 1970. If the event has several times, this is the earliest.
pub(super) fn time(event: &str) -> Option<i128> {
    fn earliest(value: &Value) -> Option<i128> {
        match value {
            Value::Array(all) => all.iter().filter_map(earliest).min(),
            Value::Object(all) => all
                .iter()
                .filter_map(|(key, value)| match (key.as_str(), value) {
                    // The keys of GraphJSON, Zipkin and OTLP.
                    ("timestamp", Value::String(date)) => {
                        let date = date.parse::<jiff::Timestamp>().ok()?;
                        Some(date.as_nanosecond())
                    }
                    ("timestamp", Value::Number(micros)) => {
                        Some(i128::from(micros.as_u64()?) * 1_000)
                    }
                    ("startTimeUnixNano", Value::String(nanos)) => nanos.parse().ok(),
                    (_, value) => earliest(value),
                })
                .min(),
            _ => None,
        }
    }
    earliest(&serde_json::from_str(event).ok()?)
}
