//! `/tasks`: lists, adds and deletes tasks.

use super::refusal::{Refusal, internal};
use super::{Server, answer, body, page};
use crate::engine::{TaskOptions, TaskStatus};
use crate::store::StoredTask;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::io;
use std::num::NonZeroUsize;

/// The largest description of a task, in bytes.
pub(super) const MAX_TASK: usize = 1 << 20;

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

pub(super) async fn list(State(server): State<Server>) -> Result<Response, Refusal> {
    let engine = server.engine.clone();
    let make = move || {
        json!({ "tasks": engine.statuses() })
            .to_string()
            .into_bytes()
    };
    answer::long(&server, "application/json", make).await
}

pub(super) async fn add(
    State(server): State<Server>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let bad = |message| Refusal::new(StatusCode::BAD_REQUEST, "task", message);
    let (body, _reserved) = body::read(&server, &headers, body, MAX_TASK).await?;
    let new: NewTask = serde_json::from_slice(&body).map_err(|error| {
        bad(format!(
            "the body must be {{\"name\": …, \"text\": …}}, and perhaps \"capacity\" and \"overflow\": {error}"
        ))
    })?;
    let mut options = TaskOptions::default();
    if let Some(capacity) = new.capacity {
        options.capacity = capacity;
    }
    if let Some(overflow) = &new.overflow {
        options.overflow = overflow.parse().map_err(|error| bad(format!("{error}")))?;
    }
    let location = format!("/tasks/{}", new.name);
    let status = to_its_end(async move {
        let NewTask { name, text, .. } = new;
        server.engine.add(&name, &text, options).await?;
        server.disabled.remove(&name);
        if let Some(store) = server.options.store.clone() {
            let stored = {
                let origin = server.engine.origin(&name);
                let task = StoredTask {
                    text,
                    options,
                    origin,
                    enabled: true,
                };
                let name = name.clone();
                blocking(move || store.put(&name, &task)).await
            };
            if let Err(error) = stored {
                server.engine.delete(&name).await?;
                return Err(not_stored(&error));
            }
        }
        Ok(server.engine.status(&name)?)
    });
    let status = status.await?;
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(status)).into_response())
}

pub(super) async fn show(
    State(server): State<Server>,
    name: Result<Path<String>, PathRejection>,
    format: Result<Query<Format>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Path(name) = name.map_err(bad_path)?;
    let Query(Format { format }) = format
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "query", error.body_text()))?;
    let status: TaskStatus = server.engine.status(&name)?;
    match format.as_deref() {
        None | Some("json") => Ok(Json(status).into_response()),
        Some("dot") => Ok(([(CONTENT_TYPE, "text/vnd.graphviz")], status.dot()).into_response()),
        Some("svg") => page::picture(&server, status).await,
        Some(other) => {
            let message = format!("a task is shown as json, svg or dot, not as `{other}`");
            Err(Refusal::new(StatusCode::BAD_REQUEST, "format", message))
        }
    }
}

pub(super) async fn delete(
    State(server): State<Server>,
    name: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Refusal> {
    let Path(name) = name.map_err(bad_path)?;
    to_its_end(async move {
        if !server.disabled.remove(&name) {
            server.engine.delete(&name).await?;
        }
        if let Some(store) = server.options.store.clone() {
            let removed = blocking(move || store.remove(&name)).await;
            removed.map_err(|error| not_stored(&error))?;
        }
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

pub(super) async fn endpoint(
    State(server): State<Server>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Refusal> {
    let Path((name, endpoint)) = path.map_err(bad_path)?;
    match server.engine.endpoint(&name, &endpoint)? {
        Some(latest) => answer::long(&server, "application/json", move || latest.json()).await,
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

/// Runs `work` to its end, even if the client disconnects.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(internal()))
}

pub(super) async fn blocking(
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::Error::other("the thread that wrote it has panicked")))
}

pub(super) fn bad_path(error: PathRejection) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "path", error.body_text())
}

pub(super) fn not_stored(error: &io::Error) -> Refusal {
    let message = format!("the data directory cannot be written: {error}");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "data", message)
}
