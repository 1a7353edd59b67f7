//! Files of traces in several formats, read as a list of spans.
//!
//! A file contains one JSON value, or several, usually one per line. The format of each value is recognised by its
//! keys, so a file may mix formats.

mod item;
mod jaeger;
mod lines;
mod otlp;
mod zipkin;

use super::names::Names;
use crate::input_file::read_maybe_gzip;
use item::Documents;
use serde::de::{DeserializeSeed, IgnoredAny};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// The maximum size in bytes of a file that is not divided into lines, and of a line.
const MOST_BYTES: u64 = 1 << 28;

/// The maximum number of spans of all files together: about 1 GB.
const MOST_SPANS: usize = 12_000_000;

/// The reasons why traces could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The path of the unreadable file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file contains a value that is not part of a trace.
    #[error("{}:{line}: {what}", file.display())]
    Wrong {
        /// The path of the invalid file.
        file: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The fault and its remedy.
        what: String,
    },
    /// The file has no spans.
    #[error(
        "{} has no spans; give traces as OTLP/JSON, Zipkin's JSON or Jaeger's JSON", file.display()
    )]
    Empty {
        /// The path of the file without spans.
        file: PathBuf,
    },
}

/// The side of an exchange that a span belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The client of a request.
    Client,
    /// The server of a request.
    Server,
    /// The sender of a message that has no answer.
    Producer,
    /// The receiver of a message that has no answer.
    Consumer,
    /// Neither: internal work of a service.
    Internal,
    /// Unknown; it is inferred from the services of its parent and children.
    Unknown,
}

impl Side {
    pub(super) fn is_client(self) -> bool {
        matches!(self, Side::Client | Side::Producer)
    }

    pub(super) fn is_server(self) -> bool {
        matches!(self, Side::Server | Side::Consumer)
    }
}

/// A span, independent of the format. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) trace: u128,
    pub(super) id: u64,
    /// The parent's id; 0 if there is none.
    pub(super) parent: u64,
    pub(super) side: Side,
    pub(super) failed: bool,
    /// True if a rate limit refused the request: status 429, or RESOURCE_EXHAUSTED of gRPC.
    pub(super) refused: bool,
    /// A hash of the key that the request names, for example of a cached value; 0 if it names none.
    pub(super) key: u64,
    /// The interned names of its service, its instance and region, and the requested operation.
    pub(super) service: u32,
    pub(super) instance: u32,
    pub(super) region: u32,
    pub(super) operation: u32,
    /// The service at the other end, if the span names it.
    pub(super) peer: Option<u32>,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The number of recorded traces of the same kind that this span stands for. It is more than 1 if a reservoir
    /// dropped traces.
    pub(super) weight: f32,
}

/// All spans of some files.
#[derive(Debug, Default)]
pub(super) struct SpanSet {
    pub(super) spans: Vec<Span>,
    pub(super) names: Names,
    /// The attribute with the key of a request; if it is absent, the usual ones are tried.
    key: Option<String>,
    /// The number of spans with a known sampling rate, and the number of requests that they stand for.
    known: u64,
    stand_for: f64,
}

impl SpanSet {
    /// Returns the share of all requests that have spans, if the spans state it.
    pub(super) fn sampled(&self) -> Option<f64> {
        (self.known > 0).then(|| self.known as f64 / self.stand_for)
    }

    /// Records that a span stands for requests of which this share was recorded.
    fn stands_for(&mut self, share: f64) {
        if share > 0.0 && share <= 1.0 {
            self.known += 1;
            self.stand_for += 1.0 / share;
        }
    }

    /// Creates a set of spans with the number of spans with a known sampling rate, and of the requests that they
    /// stand for.
    pub(super) fn from_parts(spans: Vec<Span>, names: Names, shares: (u64, f64)) -> SpanSet {
        let (known, stand_for) = shares;
        SpanSet {
            spans,
            names,
            key: None,
            known,
            stand_for,
        }
    }

    /// Returns the number of spans with a known sampling rate, and of the requests that they stand for.
    pub(super) fn shares(&self) -> (u64, f64) {
        (self.known, self.stand_for)
    }

    /// Returns no spans; `key` is the attribute with the key of a request.
    pub(super) fn with_key(key: Option<&str>) -> SpanSet {
        SpanSet {
            key: key.map(str::to_owned),
            ..SpanSet::default()
        }
    }

    /// Reads files; `key` is the attribute with the key of a request.
    pub(super) fn read(files: &[PathBuf], key: Option<&str>) -> Result<SpanSet, TraceError> {
        let mut recorded = SpanSet::with_key(key);
        for file in files {
            let before = recorded.spans.len();
            recorded.read_file(file)?;
            if recorded.spans.len() == before {
                return Err(TraceError::Empty { file: file.clone() });
            }
        }
        Ok(recorded)
    }

    fn read_file(&mut self, file: &Path) -> Result<(), TraceError> {
        let unreadable = |source| TraceError::Unreadable {
            file: file.to_owned(),
            source,
        };
        let wrong = |at: WrongText| TraceError::Wrong {
            file: file.to_owned(),
            line: at.line.max(1),
            what: at.what,
        };
        if let Some(mut chunks) = lines::Chunks::open(file).map_err(unreadable)? {
            let before = (self.spans.len(), self.known, self.stand_for);
            match self.read_chunks(&mut chunks) {
                Ok(()) => return Ok(()),
                Err(lines::ChunkError::Unreadable(source)) => return Err(unreadable(source)),
                Err(lines::ChunkError::Wrong(at)) if chunks.file_bytes > MOST_BYTES => {
                    return Err(wrong(at));
                }
                // Not every value is on a line of its own.
                Err(lines::ChunkError::Wrong(_)) => {
                    self.spans.truncate(before.0);
                    (self.known, self.stand_for) = (before.1, before.2);
                }
            }
        }
        let bytes = read_maybe_gzip(file, MOST_BYTES).map_err(unreadable)?;
        self.read_bytes(&bytes).map_err(wrong)
    }

    /// Reads the values of a text.
    pub(super) fn read_bytes(&mut self, bytes: &[u8]) -> Result<(), WrongText> {
        // Some editors begin a file with a byte-order mark.
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut start = 0;
        while text[start..].iter().any(|byte| !b" \t\r\n".contains(byte)) {
            // A reader per document: the position of an error is counted from the start of its text.
            let mut reader = serde_json::Deserializer::from_slice(&text[start..]);
            let read = Documents(self).deserialize(&mut reader);
            read.map_err(|error| WrongText::new(&error).after(&text[..start]))?;
            start += reader.into_iter::<IgnoredAny>().byte_offset();
        }
        Ok(())
    }

    /// Adds all spans of another set.
    pub(super) fn append(&mut self, other: SpanSet) -> Result<(), String> {
        let numbers = self.names.merge(&other.names);
        let number = |name: u32| numbers[name as usize];
        self.known += other.known;
        self.stand_for += other.stand_for;
        for span in other.spans {
            self.add(Span {
                service: number(span.service),
                instance: number(span.instance),
                region: number(span.region),
                operation: number(span.operation),
                peer: span.peer.map(number),
                ..span
            })?;
        }
        Ok(())
    }

    /// Adds a span.
    fn add(&mut self, span: Span) -> Result<(), String> {
        if self.spans.len() == MOST_SPANS {
            return Err(format!(
                "there are more than {MOST_SPANS} spans; give a part of them"
            ));
        }
        self.spans.push(span);
        Ok(())
    }
}

/// A fault in a text, with its line from 1.
#[derive(Debug)]
pub(super) struct WrongText {
    pub(super) line: usize,
    pub(super) what: String,
}

impl WrongText {
    fn new(error: &serde_json::Error) -> WrongText {
        let said = error.to_string();
        let said = &said[..said.rfind(" at line ").unwrap_or(said.len())];
        let what = match error.classify() {
            serde_json::error::Category::Eof => {
                "the text is incomplete; the file is cut off".to_owned()
            }
            serde_json::error::Category::Syntax => format!("this is not valid JSON: {said}"),
            _ => said.to_owned(),
        };
        WrongText {
            line: error.line(),
            what,
        }
    }

    /// The fault, with the lines of the text before the one that was read.
    fn after(mut self, before: &[u8]) -> WrongText {
        self.line += before.iter().filter(|&&byte| byte == b'\n').count();
        self
    }
}

/// Parses an identifier of up to 16 hexadecimal digits; zero or an empty text means none.
fn id(text: &str, what: &str) -> Result<u64, String> {
    hexadecimal(text, what, 16).map(|number| number as u64)
}

/// Reads a number of at most `digits` hexadecimal digits.
fn hexadecimal(text: &str, what: &str, digits: usize) -> Result<u128, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let is_one = text.len() <= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_one
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten();
    number.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        format!(
            "the {what} '{}' is not an identifier; expected up to {digits} hexadecimal digits",
            shown.escape_debug()
        )
    })
}

/// Parses the ids of a trace, a span and the span's parent.
fn ids(trace: &str, span: &str, parent: &str) -> Result<(u128, u64, u64), String> {
    let trace = hexadecimal(trace, "trace id", 32)?;
    let span = id(span, "span id")?;
    if trace == 0 || span == 0 {
        return Err("a span has no trace id, or no span id; remove it".to_owned());
    }
    Ok((trace, span, id(parent, "parent id")?))
}

/// The attributes with the key of a request; each of the names that begin with the second one has a parameter.
const CACHE_KEY: &str = "cache.key";
const PARAMETERS: &str = "db.query.parameter.";

/// Returns the hash of the key that attributes name, given as pairs; 0 if they name none. `named` is the attribute with
/// the key.
fn key_of<'a>(named: Option<&str>, attributes: impl Iterator<Item = (&'a str, &'a str)>) -> u64 {
    let is_key = |key: &str| match named {
        Some(named) => key == named,
        None => key == CACHE_KEY || key.starts_with(PARAMETERS),
    };
    // All parameters of a query are its key.
    let mut hash = 0;
    for (_, value) in attributes.filter(|(key, _)| is_key(key)) {
        let mut hasher = rustc_hash::FxHasher::default();
        (hash, value).hash(&mut hasher);
        hash = hasher.finish() | 1;
    }
    hash
}

/// True if an attribute states that a rate limit refused a request.
fn is_refusal(key: &str, value: &str) -> bool {
    match key {
        "http.response.status_code" | "http.status_code" => value == "429",
        "rpc.grpc.status_code" => value == "8",
        "rpc.response.status_code" => value == "RESOURCE_EXHAUSTED",
        _ => false,
    }
}

/// Returns the time `lasted` after `begin`.
fn end_of(begin: u64, lasted: u64) -> u64 {
    begin.saturating_add(lasted)
}
