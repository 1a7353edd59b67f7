//! A node whose disk has failed, and is there again.
//!
//! A database that could not write does not go on: what of its last changes is on the disk is known only
//! when the file is opened anew. So the node is closed and started again, as it would be by hand, until
//! that succeeds. Meanwhile every request is answered by 503 and the reason.

use super::problem::Problem;
use crate::metrics::Metrics;
use crate::node::Node;
use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns when it is time to stop.
pub(super) async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// Keeps a node running, and its routes known, until it is told to stop. Returns the node that runs then.
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
        let mut reason = "it opens its data anew (its log says why)".to_owned();
        tracing::error!("this node closes its files, and opens them anew");
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
                        tracing::error!("this node cannot be started anew yet: {said}");
                        drop(routes.send_replace(down(&said, &metrics)));
                        reason = said;
                    }
                }
            }
        };
        tracing::warn!("this node goes on");
        drop(routes.send_replace(node.router()));
    }
}

/// What is answered while there is no node.
fn down(reason: &str, metrics: &Metrics) -> Router {
    let message = format!("this node is down: {reason}; try again in a moment, or another node");
    let (counted, metrics) = (metrics.refused.clone(), metrics.clone());
    Router::new()
        .route(
            "/metrics",
            get(async move || super::service::render(&metrics)),
        )
        .route("/healthz", get(super::service::health))
        .fallback(async move || {
            let why = crate::metrics::Why { why: "down" };
            counted.get_or_create(&why).inc();
            Problem::busy("down", message, PAUSE).into_response()
        })
}
