//! Connections of other members of the cluster.

use super::problem::Problem;
use super::read::Peer;
use crate::cluster::link::{PATH, PROTOCOL};
use crate::node::Node;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use hyper_util::rt::TokioIo;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn routes() -> Router<Node> {
    Router::new().route(PATH, get(upgrade))
}

/// Turns a connection into one between members. The other node must then prove that it has the common key.
async fn upgrade(
    State(node): State<Node>,
    peer: Option<Extension<Peer>>,
    mut request: Request<Body>,
) -> Result<axum::response::Response, Problem> {
    let Some(cluster) = node.inner.cluster.clone() else {
        return Err(Problem::no_route());
    };
    let refused = |status, message: &str| Err(Problem::new(status, "cluster", message.to_owned()));
    let protocol = request.headers().get(UPGRADE);
    if protocol.is_none_or(|protocol| protocol != PROTOCOL) {
        let message = "this path is for members of the cluster alone";
        return refused(StatusCode::UPGRADE_REQUIRED, message);
    }
    if cluster.is_secure()
        && !peer
            .as_ref()
            .is_some_and(|Extension(peer)| peer.is_certified)
    {
        let message = "a member needs a certificate of the authority in --cluster-ca";
        return refused(StatusCode::FORBIDDEN, message);
    }
    let upgraded = hyper::upgrade::on(&mut request);
    if let Some(Extension(peer)) = &peer {
        peer.upgraded.store(true, Relaxed);
    }
    tokio::spawn(async move {
        if let Ok(stream) = upgraded.await {
            let stream = Box::new(TokioIo::new(stream));
            let index = node.inner.index.clone();
            // The node may be closed before its connections are.
            drop(node);
            tokio::select! {
                () = cluster.serve(stream, &index, peer) => {}
                () = cluster.is_over() => {}
            }
        }
    });
    let answer = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, PROTOCOL)
        .body(Body::empty());
    answer.map(IntoResponse::into_response).map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "cluster",
            error.to_string(),
        )
    })
}
