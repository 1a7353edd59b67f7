//! The engine over HTTP.
//!
//! | request | answer |
//! |---|---|
//! | `POST /write?db=&rp=&precision=` | lines, plain or gzip: 204, or 400 with the bad lines |
//! | `GET /tasks` | all tasks |
//! | `POST /tasks` | `{"name", "text", "capacity", "overflow"}` starts one: 201 |
//! | `GET /tasks/{name}` | its graph with live counters; as DOT with `?format=dot` |
//! | `DELETE /tasks/{name}` | aborts it: 204 |
//! | `GET /tasks/{name}/{endpoint}` | what an `http_out` shows |
//! | `GET /metrics` | counters for Prometheus |
//! | `GET /ping` | 204 |
//!
//! Every refusal is a JSON object with a `code` for programs and a `message` that says what to do.

mod metrics;
mod refusal;
mod tasks;
mod write;

use crate::engine::Engine;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{get, post};
use refusal::Refusal;

/// The routes of an engine.
pub fn router(engine: Engine) -> Router {
    Router::new()
        .route("/write", post(write::write))
        .route("/tasks", get(tasks::list).post(tasks::add))
        .route("/tasks/{name}", get(tasks::show).delete(tasks::delete))
        .route("/tasks/{name}/{endpoint}", get(tasks::endpoint))
        .route("/metrics", get(metrics::metrics))
        .route("/ping", get(|| async { StatusCode::NO_CONTENT }))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        // Each route has a limit of its own.
        .layer(DefaultBodyLimit::disable())
        .with_state(engine)
}

async fn unknown(uri: Uri) -> Refusal {
    let message = format!(
        "there is nothing at {}; there are /write, /tasks, /metrics and /ping",
        uri.path()
    );
    Refusal::new(StatusCode::NOT_FOUND, "unknown_path", message)
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let message = format!("{} does not take {method}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}
