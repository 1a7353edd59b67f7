//! The engine over HTTP.
//!
//! | request | answer |
//! |---|---|
//! | `POST /write?db=&rp=&precision=` | lines, plain or gzip: 204, or 400 with the bad lines |
//! | `GET /tasks` | all tasks |
//! | `POST /tasks` | `{"name", "text", "capacity", "overflow"}` starts a task: 201 |
//! | `GET /` | a page with the graphs of all tasks and live counters |
//! | `GET /tasks/{name}` | its graph with live counters; as DOT or SVG with `?format=dot`, `svg` |
//! | `DELETE /tasks/{name}` | aborts it: 204 |
//! | `GET /tasks/{name}/{endpoint}` | what an `http_out` shows |
//! | `GET /metrics` | counters for Prometheus |
//! | `/kapacitor/v1/tasks`, `/kapacitor/v1/ping` | tasks for the command line of kapacitor |
//! | `POST /api/v2/write?bucket=&org=&precision=` | lines, as for `/write`; a bucket is `database` or `database/policy` |
//! | `GET /ping`, `GET /health` | 204, or a JSON object that reports that the server works; neither needs a token |
//! | `GET` or `POST /query?q=` | an empty result for what clients ask before they write; else 400 |
//!
//! Every refusal is a JSON object. It has a `code` for programs and a `message` that says what to do. The message is
//! repeated under `error`, where InfluxDB clients look for it. A busy server answers 503 with `Retry-After`, because
//! writers such as telegraf retry such a request, but drop a batch that is answered with 4xx.

mod access;
mod answer;
mod body;
mod influx;
mod kapacitor;
mod memory;
mod metrics;
mod page;
mod refusal;
mod serve;
mod tasks;
mod tls;
mod unread;
mod write;

use crate::engine::{Engine, EngineOptions};
use crate::store::Store;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware;
use axum::routing::{get, post};
use memory::Budget;
use refusal::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

pub use serve::{Limits, serve};
pub use tls::{Tls, TlsError};

/// Access control and time limits of HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The token that every request must contain, except requests to `/ping` and `/health`. `None` if no token is
    /// required.
    pub token: Option<String>,
    /// The time limit for receiving the body of a request.
    pub body_timeout: Duration,
    /// The memory for long answers that are being sent (`http_out`, `/tasks` and `/metrics`), in bytes.
    pub answer_memory: usize,
    /// The store of tasks that were added over HTTP.
    pub store: Option<Arc<Store>>,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            token: None,
            body_timeout: Duration::from_secs(30),
            answer_memory: 64 << 20,
            store: None,
        }
    }
}

/// The state of every handler.
#[derive(Clone, Debug)]
struct Server {
    engine: Engine,
    options: Arc<HttpOptions>,
    /// The memory of bodies that are being read or parsed.
    memory: Arc<Budget>,
    /// A permit for each KiB of long answers that are being sent.
    answers: Arc<Semaphore>,
    /// Held while a long answer is made.
    making: Arc<Semaphore>,
    disabled: kapacitor::Disabled,
}

/// Returns the HTTP routes of an engine, with the default [`HttpOptions`].
pub fn router(engine: Engine) -> Router {
    router_with(engine, HttpOptions::default())
}

/// Returns the HTTP routes of an engine, with these options.
pub fn router_with(engine: Engine, options: HttpOptions) -> Router {
    let EngineOptions {
        body_memory,
        patience,
        ..
    } = *engine.options();
    let server = Server {
        engine,
        memory: Arc::new(Budget::new(body_memory, patience)),
        answers: Arc::new(Semaphore::new(answer::permits(usize::MAX, &options))),
        making: Arc::new(Semaphore::new(1)),
        disabled: kapacitor::Disabled::of(options.store.as_ref()),
        options: Arc::new(options),
    };
    Router::new()
        .route("/write", post(write::write))
        .route("/api/v2/write", post(write::write_v2))
        .route("/query", get(influx::query).post(influx::query))
        .route("/tasks", get(tasks::list).post(tasks::add))
        .route("/tasks/{name}", get(tasks::show).delete(tasks::delete))
        .route("/tasks/{name}/{endpoint}", get(tasks::endpoint))
        .route(
            "/kapacitor/v1/tasks",
            get(kapacitor::list).post(kapacitor::define),
        )
        .route(
            "/kapacitor/v1/tasks/{name}",
            get(kapacitor::show)
                .patch(kapacitor::change)
                .delete(kapacitor::delete),
        )
        .route("/metrics", get(metrics::metrics))
        .route("/", get(page::page))
        .route("/style.css", get(page::style))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(
            server.clone(),
            access::check,
        ))
        .route("/ping", get(influx::ping))
        .route("/kapacitor/v1/ping", get(influx::ping))
        .route("/health", get(influx::health))
        .layer(middleware::map_response(influx::version))
        .layer(middleware::from_fn(unread::close))
        // Each route has its own limit.
        .layer(DefaultBodyLimit::disable())
        .with_state(server)
}

async fn unknown(uri: Uri) -> Refusal {
    let message = format!(
        "there is nothing at {}; there are /write, /api/v2/write, /query, /tasks, /metrics, /kapacitor/v1/tasks, /health and /ping",
        uri.path()
    );
    Refusal::new(StatusCode::NOT_FOUND, "unknown_path", message)
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let message = format!("{} does not take {method}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}
