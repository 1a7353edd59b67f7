//! `POST /write`: lines in.

use super::refusal::Refusal;
use super::{Server, body};
use crate::engine::{Write, WriteError, WriteReport};
use crate::line::Precision;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
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
    let (lines, mut reserved) = body::read(&server, &headers, body, limit).await?;
    let large = packed || lines.len() >= LARGE;
    let engine = server.engine.clone();
    let parse = move || {
        let lines = match packed {
            true => body::unpack(&lines, &mut reserved)?,
            false => lines,
        };
        match engine.parse(&to, &lines, |bytes| reserved.try_more(bytes)) {
            Some(parsed) => Ok((parsed, reserved)),
            None => Err(reserved.refusal()),
        }
    };
    let (parsed, reserved) = match large {
        false => parse()?,
        true => tokio::task::spawn_blocking(parse).await.map_err(|_| {
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "the write failed inside the server; its log has more",
            )
        })??,
    };
    let written = server.engine.deliver(parsed).await?;
    drop(reserved);
    match written.rejected {
        0 => Ok(StatusCode::NO_CONTENT),
        _ => Err(partial(written)),
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
