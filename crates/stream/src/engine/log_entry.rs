//! Entries of the write-ahead log: the lines of a write, and everything else that parsing them again needs.

use super::parse::Lines;
use crate::line::Precision;
use hyper::body::Bytes;
use std::borrow::Cow;

/// The head of an entry of the log, which is followed by the lines.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Head<'a> {
    pub(super) database: Cow<'a, str>,
    pub(super) policy: Cow<'a, str>,
    /// Nanoseconds of a unit of timestamps.
    pub(super) unit: i64,
    /// The time of points without a timestamp, in nanoseconds since 1970.
    pub(super) now: i64,
    /// The generation of the routes with which the write was parsed.
    pub(super) generation: u64,
    packing: Packing,
    /// The number of bytes of the lines.
    length: usize,
}

/// The form of the lines in an entry.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
enum Packing {
    Plain,
    Gzip,
}

/// An entry of the log: its head, and the lines as they were received.
#[derive(Debug)]
pub(super) struct LogEntry {
    head: Vec<u8>,
    lines: Bytes,
}

/// Creates an entry.
pub(super) fn entry(
    database: &str,
    policy: &str,
    precision: Precision,
    now: i64,
    generation: u64,
    lines: Lines,
) -> LogEntry {
    let (packing, lines) = match lines {
        Lines::Plain(lines) => (Packing::Plain, lines),
        Lines::Gzip(lines) => (Packing::Gzip, lines),
    };
    let head = Head {
        database: database.into(),
        policy: policy.into(),
        unit: precision.unit(),
        now,
        generation,
        packing,
        length: lines.len(),
    };
    let head = postcard::to_allocvec(&head).expect("plain data can be written");
    LogEntry { head, lines }
}

impl LogEntry {
    /// Puts the position of a source before the entry. The position is an entry without a database, and belongs to the
    /// entry that follows it.
    pub(super) fn mark_source(&mut self, source: &str, next: i64) {
        let mark = Head {
            database: "".into(),
            policy: source.into(),
            unit: next,
            now: 0,
            generation: 0,
            packing: Packing::Plain,
            length: 0,
        };
        let mark = postcard::to_allocvec(&mark).expect("plain data can be written");
        self.head.splice(0..0, mark);
    }

    /// Appends the entry to a record.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.head);
        bytes.extend_from_slice(&self.lines);
    }
}

/// Reads the entry at the beginning of `bytes`, and removes it from there.
pub(super) fn read(bytes: &mut Bytes) -> Result<(Head<'static>, Lines), String> {
    let (head, rest): (Head<'static>, _) =
        postcard::take_from_bytes(bytes).map_err(|error| error.to_string())?;
    let begin = bytes.len() - rest.len();
    let end = begin.checked_add(head.length);
    let end = end.filter(|end| *end <= bytes.len());
    let end = end.ok_or("it is longer than its record")?;
    let lines = bytes.slice(begin..end);
    let lines = match head.packing {
        Packing::Plain => Lines::Plain(lines),
        Packing::Gzip => Lines::Gzip(lines),
    };
    let _ = bytes.split_to(end);
    Ok((head, lines))
}
