//! The upgrade of a request to a WebSocket.

use super::origin;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, Peer, StrictQuery};
use crate::frame::largest;
use crate::hub::{Attachment, HubRequest};
use crate::node::Node;
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use utoipa::IntoParams;

/// The size of a socket's read buffer, which every open socket keeps. An acknowledgement has at most 50 bytes.
const READ_BUFFER: usize = 128;
const WRITE_BUFFER: usize = 8 << 10;

/// The resume position of a socket, and the frames that it sends.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Resume {
    /// Sends messages after this sequence number. By default, sends messages that this session has not acknowledged.
    after: Option<u64>,
    /// True to receive presence frames.
    #[serde(default = "yes")]
    #[param(default = true)]
    presence: bool,
}

fn yes() -> bool {
    true
}

/// Opens a WebSocket.
///
/// The client receives text frames with JSON: `message:new`, `users:online`, `users:connect`, `users:disconnect`,
/// `conversation:changed` and `error`. A `message:new` frame has a `sequence` and a `message`. The sequence counts all
/// messages of this user, including messages that the user has sent. It has gaps only where old messages were removed.
/// To acknowledge all messages up to N, the client sends `{"type":"ack","sequence":N}`. A client that cannot set
/// `Authorization` offers two subprotocols: `courier` and its token.
#[utoipa::path(
    get,
    path = "/ws",
    params(Resume),
    security(("token" = [])),
    responses(
        (status = 101, description = "The connection is now a WebSocket"),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 426, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn upgrade(
    State(node): State<Node>,
    headers: HeaderMap,
    who: Authenticated,
    StrictQuery(resume): StrictQuery<Resume>,
    peer: Option<Extension<Peer>>,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let inner = &node.inner;
    if !origin::allows(&headers, &inner.origins) {
        inner.metrics.refuse("origin");
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "origin",
            "pages of this origin may not connect; start the node with --origin to allow it",
        ));
    }
    let socket = socket.map_err(|rejection| {
        let message = format!("this is not a WebSocket handshake: {rejection}");
        let status = match rejection.status() {
            StatusCode::UPGRADE_REQUIRED => StatusCode::UPGRADE_REQUIRED,
            _ => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, "handshake", message)
    })?;
    let Some(counted) = inner.hub.admit(who.user) else {
        inner.metrics.refuse("sockets");
        let most = inner.limits.sockets;
        let message = format!("you already have {most} sockets on this node; close one");
        return Err(Problem::too_many(
            "sockets",
            message,
            inner.limits.heartbeat,
        ));
    };
    let (mut acknowledged, mut last) = inner.position(&who).await?;
    if resume.after.is_some_and(|after| after > last) {
        // A node that could not reach the log does not know the latest messages.
        inner.caught_up().await?;
        (acknowledged, last) = inner.position(&who).await?;
    }
    let after = resume.after.unwrap_or(acknowledged);
    if after > last {
        let message = format!("sequence {after} was never sent; the last one is {last}");
        return Err(Problem::invalid("after", message));
    }
    let presence = resume.presence;
    let frame = inner.limits.frame;
    let node = node.clone();
    let upgrade = socket
        .protocols(["courier"])
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(WRITE_BUFFER + 2 * largest(inner.limits.text) + frame)
        .max_message_size(frame)
        .max_frame_size(frame);
    let peer = peer.map(|Extension(peer)| peer);
    if let Some(peer) = &peer {
        peer.upgraded.store(true, Relaxed);
    }
    Ok(upgrade.on_upgrade(move |socket| async move {
        let attachment = Attachment {
            user: who.user,
            name: who.name.clone(),
            session: who.session,
            expires: who.expires,
            after,
            acknowledged,
            presence,
            socket,
            counted,
            connection: peer.map(|peer| peer.counted as Arc<dyn Any + Send + Sync>),
        };
        // If the node is shutting down, dropping the socket closes it.
        let hub = &node.inner.hub;
        let _ = hub.request(HubRequest::Attach(Box::new(attachment))).await;
        // The session may have ended before the hub knew the socket.
        if let Ok(None) = node.inner.index.session(who.session).await {
            let _ = hub
                .request(HubRequest::CloseSession(who.user, who.session))
                .await;
        }
    }))
}
