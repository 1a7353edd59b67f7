//! Routes for operators.

use super::problem::{ErrorBody, Problem};
use crate::metrics::Metrics;
use crate::node::Node;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

/// Returns whether the node accepts messages. It does if a write became durable within the last seconds.
#[utoipa::path(
    get,
    path = "/ping",
    responses((status = 200, description = "pong", body = String), (status = 503, body = ErrorBody))
)]
pub(crate) async fn ping(State(node): State<Node>) -> Result<&'static str, Problem> {
    let unavailable =
        |code, message: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, message);
    if !node.inner.is_up() {
        let message = "this node cannot reach its log; use another one, or wait";
        return Err(unavailable("down", message.to_owned()));
    }
    node.inner.check_writes().await.map_err(|age| {
        let message = format!(
            "no write of this node has become durable for {} s; use another one, or wait",
            age.as_secs()
        );
        unavailable("stalled", message)
    })?;
    Ok("pong")
}

/// Equivalent to `GET /ping`, at the usual path for load balancers.
#[utoipa::path(
    get,
    path = "/readyz",
    responses((status = 200, description = "pong", body = String), (status = 503, body = ErrorBody))
)]
pub(crate) async fn ready(node: State<Node>) -> Result<&'static str, Problem> {
    ping(node).await
}

/// Returns whether the process is alive. The answer does not depend on the log or the disk.
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "alive", body = String))
)]
pub(crate) async fn health() -> &'static str {
    "alive"
}

/// Returns the counters of the node for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(node): State<Node>) -> Result<impl IntoResponse, Problem> {
    render(&node.inner.metrics)
}

pub(super) fn render(metrics: &Metrics) -> Result<impl IntoResponse + use<>, Problem> {
    let text = metrics.render().map_err(|error| {
        let message = format!("the metrics cannot be written: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "metrics", message)
    })?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text))
}
