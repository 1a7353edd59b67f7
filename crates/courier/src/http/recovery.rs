//! Recovery of a node after its disk has failed.
//!
//! After a failed write, a database must be reopened, to find out which of its last changes are on disk. So the node is
//! closed and restarted until this succeeds. Until then every request is answered with 503 and the reason.

use super::problem::Problem;
use crate::metrics::Metrics;
use crate::node::Node;
use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns when the stop signal has been given.
pub(super) async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// Runs a node and serves its routes until the stop signal. Returns the node that is running at that time.
pub(super) async fn run(
    mut node: Node,
    routes: watch::Sender<Router>,
    mut stopped: watch::Receiver<bool>,
) -> Option<Node> {
    loop {
        tokio::select! {
            () = node.inner.failed() => {}
            () = told(&mut stopped) => return Some(node),
        }
        let (options, metrics) = (node.inner.options.clone(), node.inner.metrics.clone());
        let mut reason = "its data are being reopened (its log has the reason)".to_owned();
        tracing::error!("this node reopens its files");
        drop(routes.send_replace(down(&reason, &metrics)));
        node.close().await;
        drop(node);
        metrics.sockets.set(0);
        metrics.online.set(0);
        node = loop {
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = told(&mut stopped) => return None,
            }
            match Node::start_counting(options.clone(), metrics.clone()).await {
                Ok(node) => break node,
                Err(error) => {
                    let said = error.to_string();
                    if said != reason {
                        tracing::error!("this node cannot be restarted yet: {said}");
                        drop(routes.send_replace(down(&said, &metrics)));
                        reason = said;
                    }
                }
            }
        };
        tracing::warn!("this node has recovered");
        drop(routes.send_replace(node.router()));
    }
}

/// Returns the response while the node is down.
fn down(reason: &str, metrics: &Metrics) -> Router {
    let message =
        format!("this node is down: {reason}; try again in a moment, or use another node");
    let (counted, metrics) = (metrics.refused.clone(), metrics.clone());
    Router::new()
        .route(
            "/metrics",
            get(async move || super::service::render(&metrics)),
        )
        .route("/healthz", get(super::service::health))
        .fallback(async move || {
            let why = crate::metrics::RefusalLabel { why: "down" };
            counted.get_or_create(&why).inc();
            Problem::busy("down", message, PAUSE).into_response()
        })
}
