//! `POST /write`: lines in.

use super::memory::Reserved;
use super::refusal::{Refusal, internal};
use super::{Server, body};
use crate::block::Builder;
use crate::engine::{Engine, Lines, ParseError, ParsedWrite, Write, WriteError, WriteReport};
use crate::line::Precision;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use hyper::body::Bytes;
use std::sync::Arc;

#[derive(serde::Deserialize)]
pub(super) struct Parameters {
    db: Option<String>,
    rp: Option<String>,
    precision: Option<String>,
}

/// The size from which on bodies are parsed on a separate thread.
const LARGE: usize = 64 << 10;

/// Handles a write. No task gets points before all waits are over, so a client that disconnects leaves no partial
/// write.
pub(super) async fn write(
    State(server): State<Server>,
    parameters: Result<Query<Parameters>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let Query(parameters) = parameters
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "query", error.body_text()))?;
    take(server, target(parameters)?, headers, body).await
}

#[derive(serde::Deserialize)]
pub(super) struct ParametersV2 {
    bucket: Option<String>,
    precision: Option<String>,
}

/// Handles the write of InfluxDB 2, whose organisation is ignored.
pub(super) async fn write_v2(
    State(server): State<Server>,
    parameters: Result<Query<ParametersV2>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let Query(parameters) = parameters
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "query", error.body_text()))?;
    let bucket = parameters.bucket.filter(|bucket| !bucket.is_empty());
    let Some(bucket) = bucket else {
        let message = "name the bucket: POST /api/v2/write?bucket=NAME";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "bucket", message));
    };
    let (db, rp) = match bucket.split_once('/') {
        Some((database, policy)) => (database.to_owned(), Some(policy.to_owned())),
        None => (bucket, None),
    };
    let to = target(Parameters {
        db: Some(db),
        rp,
        precision: parameters.precision,
    })?;
    take(server, to, headers, body).await
}

async fn take(
    server: Server,
    to: Write,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let packed = body::is_packed(&headers)?;
    let limit = server.engine.options().max_body;
    let estimate = if packed {
        memory_of_packed
    } else {
        memory_of_plain
    };
    let sizes = body::Sizes { limit, estimate };
    let (lines, mut reserved) = body::read_sized(&server, &headers, body, sizes).await?;
    let length = lines.len();
    let estimate = match packed {
        true => length + points_of(unpacked_length(&lines, limit)),
        false => memory_of_plain(length),
    };
    reserved.received(estimate).await?;
    let mut work = Work {
        engine: server.engine.clone(),
        to,
        lines,
        packed,
        used: length,
        reserved,
    };
    let parsed = match packed || length >= LARGE {
        true => None,
        // If too little memory is free, the body is parsed on a thread that can wait.
        false => work.parse(Reserved::try_grow)?,
    };
    let (parsed, reserved) = match parsed {
        Some(parsed) => (parsed, work.reserved),
        None => {
            let parse = move || {
                let parsed =
                    work.parse(|reserved, bytes| reserved.grow_blocking(bytes).map(|()| true))?;
                Ok::<_, Refusal>((parsed.ok_or_else(internal)?, work.reserved))
            };
            let parsed = tokio::task::spawn_blocking(parse);
            parsed.await.map_err(|_| internal())??
        }
    };
    let written = server.engine.deliver(parsed).await?;
    drop(reserved);
    match written.rejected {
        0 => Ok(StatusCode::NO_CONTENT),
        _ => Err(partial(written)),
    }
}

/// Returns the memory that the points of lines are likely to need. The builder of blocks reserves its first step even for
/// a single line.
fn points_of(length: usize) -> usize {
    length.saturating_mul(3) / 2 + Builder::STEP
}

/// Returns the memory that plain lines and their points are likely to need.
fn memory_of_plain(length: usize) -> usize {
    length.saturating_add(points_of(length))
}

/// Returns the memory that packed lines and their points are likely to need, before the lines are known.
fn memory_of_packed(length: usize) -> usize {
    length.saturating_add(points_of(length.saturating_mul(LIKELY_RATIO)))
}

/// The unpacked bytes of a packed byte of lines that are much alike.
const LIKELY_RATIO: usize = 10;
/// The unpacked bytes that a packed byte has at least in most bodies, and at most in any body.
const RATIOS: [usize; 2] = [4, 1032];

/// Estimates the length of unpacked lines. The end of a body has the length of its last member, but a body may have
/// several members, and a client may send a wrong length.
fn unpacked_length(packed: &[u8], limit: usize) -> usize {
    let last = packed.last_chunk().copied().map_or(0, u32::from_le_bytes) as usize;
    let [least, most] = RATIOS.map(|ratio| packed.len().saturating_mul(ratio));
    last.clamp(least, most).min(limit)
}

/// Lines to be parsed.
struct Work {
    engine: Engine,
    to: Write,
    lines: Bytes,
    /// True if the lines are compressed.
    packed: bool,
    /// The memory in use, in bytes.
    used: usize,
    reserved: Reserved,
}

impl Work {
    /// Parses the lines. `grow` raises the reservation if necessary. Returns `None` if `grow` returns false.
    fn parse(
        &mut self,
        grow: impl Fn(&mut Reserved, usize) -> Result<bool, Refusal>,
    ) -> Result<Option<ParsedWrite>, Refusal> {
        let (mut used, mut refusal) = (self.used, None);
        let lines = match self.packed {
            true => Lines::Gzip(&self.lines),
            false => Lines::Plain(&self.lines),
        };
        let parsed = self.engine.parse(&self.to, lines, |more| {
            used = used.saturating_add(more);
            grow(&mut self.reserved, used).unwrap_or_else(|refused| {
                refusal = Some(refused);
                false
            })
        });
        match (parsed, refusal) {
            (Ok(parsed), _) => Ok(Some(parsed)),
            (Err(_), Some(refusal)) => Err(refusal),
            (Err(ParseError::Memory), None) => Ok(None),
            (Err(ParseError::TooLarge(limit)), None) => Err(body::too_large(limit)),
            (Err(ParseError::Gzip(error)), None) => {
                let message = format!("the body is not valid gzip ({error}); nothing was written");
                Err(Refusal::new(StatusCode::BAD_REQUEST, "gzip", message))
            }
        }
    }
}

fn target(parameters: Parameters) -> Result<Write, Refusal> {
    let bad = |code, message: String| Refusal::new(StatusCode::BAD_REQUEST, code, message);
    let Some(database) = parameters.db.filter(|database| !database.is_empty()) else {
        let message = "name the database: POST /write?db=NAME";
        return Err(bad("database", message.into()));
    };
    let precision = match parameters.precision.as_deref() {
        None | Some("") => Precision::Nanoseconds,
        Some(given) => given
            .parse()
            .map_err(|error| bad("precision", format!("{error}")))?,
    };
    let policy = parameters.rp.filter(|policy| !policy.is_empty());
    Ok(Write {
        database: database.into(),
        policy: policy.map(Arc::from),
        precision,
    })
}

/// Some lines are invalid; the others have been written.
fn partial(written: WriteReport) -> Refusal {
    let WriteReport {
        accepted,
        rejected,
        errors,
    } = written;
    let listed = errors.len();
    let message = format!(
        "{rejected} of {} lines are not points and were left out; the others were written; `errors` lists the first {listed}",
        accepted + rejected
    );
    let errors = serde_json::to_value(errors).expect("numbers and strings are always written");
    Refusal::new(StatusCode::BAD_REQUEST, "partial_write", message)
        .with("accepted", accepted)
        .with("rejected", rejected)
        .with("errors", errors)
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Refusal {
        let (status, code) = match error {
            WriteError::Busy { .. } => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            WriteError::Full { .. } => (StatusCode::SERVICE_UNAVAILABLE, "full"),
            WriteError::Log(_) => (StatusCode::SERVICE_UNAVAILABLE, "log"),
            WriteError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
        };
        Refusal::new(status, code, error.to_string())
    }
}
