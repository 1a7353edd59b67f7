//! `POST /write`: lines in.

use super::refusal::Refusal;
use crate::engine::{Engine, Write, WriteError, Written};
use crate::line::Precision;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::sync::Arc;

#[derive(serde::Deserialize)]
pub(super) struct Parameters {
    db: Option<String>,
    rp: Option<String>,
    precision: Option<String>,
}

pub(super) async fn write(
    State(engine): State<Engine>,
    Query(parameters): Query<Parameters>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let to = target(parameters)?;
    let limit = engine.options().max_body;
    let lines = read(&headers, body, limit).await?;
    let lines = unpack(&headers, lines, limit)?;
    // A task of its own: a client that goes away must not leave a write half-way.
    let writing = tokio::spawn(async move { engine.write(&to, &lines).await });
    match writing.await {
        Ok(Ok(written)) if written.rejected == 0 => Ok(StatusCode::NO_CONTENT),
        Ok(Ok(written)) => Err(partial(written)),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the write failed inside the server; its log has more",
        )),
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

async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    to_bytes(body, limit).await.map_err(|error| {
        let mut source: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = source {
            // What a limit that was passed is called differs between versions; its words do not.
            if error.to_string().contains("length limit") {
                return too_large(limit);
            }
            source = error.source();
        }
        let message = format!("the body ended before its end ({error}); nothing was written");
        Refusal::new(StatusCode::BAD_REQUEST, "truncated", message)
    })
}

fn unpack(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, Refusal> {
    let encoding = headers.get(CONTENT_ENCODING);
    match encoding.map_or(&b"identity"[..], |encoding| encoding.as_bytes()) {
        b"identity" => Ok(body),
        b"gzip" | b"x-gzip" => {
            let mut lines = Vec::new();
            let mut unpacked = MultiGzDecoder::new(&body[..]).take(limit as u64 + 1);
            match unpacked.read_to_end(&mut lines) {
                Ok(length) if length > limit => Err(too_large(limit)),
                Ok(_) => Ok(lines.into()),
                Err(error) => {
                    let message = format!("the body is no gzip ({error}); nothing was written");
                    Err(Refusal::new(StatusCode::BAD_REQUEST, "gzip", message))
                }
            }
        }
        other => {
            let other = String::from_utf8_lossy(other);
            let message = format!("bodies may be plain or gzip, not {other}");
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(Refusal::new(status, "encoding", message))
        }
    }
}

fn too_large(limit: usize) -> Refusal {
    let message = format!(
        "a body may have {limit} bytes after unpacking; write in smaller parts (nothing was written)"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// Some lines are none; the others have been written.
fn partial(written: Written) -> Refusal {
    let Written {
        accepted,
        rejected,
        errors,
    } = written;
    let told = errors.len();
    let message = format!(
        "{rejected} of {} lines are no points and were left out, the others were written; `errors` has the first {told}",
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
            WriteError::Busy { .. } => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            WriteError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
        };
        Refusal::new(status, code, error.to_string())
    }
}
