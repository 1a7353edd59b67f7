//! `/tasks`: what runs, and more or fewer of it.

use super::refusal::Refusal;
use crate::engine::{Engine, TaskOptions, TaskStatus};
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::num::NonZeroUsize;

/// The largest description of a task, in bytes.
const MAX_TASK: usize = 1 << 20;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTask {
    name: String,
    text: String,
    capacity: Option<NonZeroUsize>,
    overflow: Option<String>,
}

#[derive(serde::Deserialize)]
pub(super) struct Format {
    format: Option<String>,
}

pub(super) async fn list(State(engine): State<Engine>) -> Json<Value> {
    Json(json!({ "tasks": engine.statuses() }))
}

pub(super) async fn add(State(engine): State<Engine>, body: Body) -> Result<Response, Refusal> {
    let bad = |message| Refusal::new(StatusCode::BAD_REQUEST, "task", message);
    let body = to_bytes(body, MAX_TASK).await.map_err(|_| {
        let message = format!("a task's description may have {MAX_TASK} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    })?;
    let new: NewTask = serde_json::from_slice(&body).map_err(|error| {
        bad(format!(
            "the body must be {{\"name\": …, \"text\": …}}, and perhaps \"capacity\" and \"overflow\": {error}"
        ))
    })?;
    let mut options = TaskOptions::default();
    if let Some(capacity) = new.capacity {
        options.capacity = capacity;
    }
    if let Some(overflow) = new.overflow {
        options.overflow = overflow.parse().map_err(|error| bad(format!("{error}")))?;
    }
    engine.add(&new.name, &new.text, options).await?;
    let status = engine.status(&new.name)?;
    let location = [(LOCATION, format!("/tasks/{}", new.name))];
    Ok((StatusCode::CREATED, location, Json(status)).into_response())
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Path(name): Path<String>,
    Query(Format { format }): Query<Format>,
) -> Result<Response, Refusal> {
    let status: TaskStatus = engine.status(&name)?;
    match format.as_deref() {
        None | Some("json") => Ok(Json(status).into_response()),
        Some("dot") => Ok(([(CONTENT_TYPE, "text/vnd.graphviz")], status.dot()).into_response()),
        Some(other) => {
            let message = format!("a task is shown as json or dot, not as `{other}`");
            Err(Refusal::new(StatusCode::BAD_REQUEST, "format", message))
        }
    }
}

pub(super) async fn delete(
    State(engine): State<Engine>,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    engine.delete(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn endpoint(
    State(engine): State<Engine>,
    Path((name, endpoint)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    match engine.endpoint(&name, &endpoint)? {
        Some(latest) => Ok(([(CONTENT_TYPE, "application/json")], latest.json()).into_response()),
        None => {
            let message = format!("the task `{name}` has no http_out('{endpoint}')");
            Err(Refusal::new(
                StatusCode::NOT_FOUND,
                "unknown_endpoint",
                message,
            ))
        }
    }
}
