//! Requests that InfluxDB clients send before they write.

use super::Server;
use super::refusal::Refusal;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

/// The version of InfluxDB whose writes are supported. Clients check the major version.
const VERSION: &str = "1.8.10";

pub(super) async fn ping() -> StatusCode {
    StatusCode::NO_CONTENT
}

pub(super) async fn health() -> Json<Value> {
    Json(json!({
        "name": "corsair-stream",
        "message": "ready for points",
        "status": "pass",
        "checks": [],
        "version": VERSION,
    }))
}

/// Adds the version to the headers of an answer.
pub(super) async fn version(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert("x-influxdb-version", HeaderValue::from_static(VERSION));
    headers.insert("x-influxdb-build", HeaderValue::from_static("OSS"));
    headers.insert("x-kapacitor-version", HeaderValue::from_static(VERSION));
    response
}

#[derive(serde::Deserialize)]
pub(super) struct InfluxQuery {
    q: Option<String>,
}

/// The largest form that is read.
const MOST: usize = 64 << 10;

/// Answers statements that create or list databases and policies as if they were executed, because databases and
/// policies need not be created. Other queries are refused.
pub(super) async fn query(
    State(server): State<Server>,
    asked: Result<Query<InfluxQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let bad = |code: &str, message: String| Refusal::new(StatusCode::BAD_REQUEST, code, message);
    let Query(asked) = asked.map_err(|error| bad("query", error.body_text()))?;
    let (form, _reserved) = super::body::read(&server, &headers, body, MOST).await?;
    // A form has the same encoding as the query of a URL.
    let form = String::from_utf8_lossy(&form);
    let form = format!("/?{}", form.trim()).parse::<Uri>().ok();
    let form = form.and_then(|uri| Query::<InfluxQuery>::try_from_uri(&uri).ok());
    let Some(text) = asked.q.or(form.and_then(|Query(form)| form.q)) else {
        return Err(bad("query", "missing required parameter \"q\"".into()));
    };
    let statements = text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let mut results = Vec::new();
    for (number, statement) in statements.enumerate() {
        let mut words = statement.split_whitespace().map(str::to_ascii_uppercase);
        let known = matches!(
            (words.next().as_deref(), words.next().as_deref()),
            (Some("CREATE"), Some("DATABASE" | "RETENTION"))
                | (Some("ALTER"), Some("RETENTION"))
                | (Some("SHOW"), Some("DATABASES"))
        );
        if !known {
            let message = "nothing is kept that could be asked for: `http_out` of a task shows its results at /tasks/TASK/ENDPOINT";
            return Err(bad("query", message.into()));
        }
        results.push(json!({ "statement_id": number }));
    }
    Ok(Json(json!({ "results": results })))
}
