//! Strict parsing of requests: everything unexpected is an error with a sentence.

use super::client_address::{client_address, network};
use super::problem::Problem;
use crate::inner::{Failure, Inner};
use crate::json::object;
use crate::limits::Limits;
use crate::model::ConversationId;
use crate::node::Node;
use crate::sessions::Bearer;
use crate::token::Token;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The peer of a connection, stored in the extensions of each request of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// The address of the peer.
    pub address: SocketAddr,
    /// Counts the connection while it is open.
    pub counted: Arc<dyn ConnectionGuard>,
    /// Set when the connection is not HTTP any more, so that its reader may be slow.
    pub upgraded: Arc<AtomicBool>,
    /// True if the peer has a certificate of the cluster's authority.
    pub is_certified: bool,
}

/// A guard that counts a connection.
pub(crate) trait ConnectionGuard: Any + Debug + Send + Sync {}

impl<T: Any + Debug + Send + Sync> ConnectionGuard for T {}

/// A user with a valid token, within the rate limit.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated(pub Bearer);

impl Deref for Authenticated {
    type Target = Bearer;

    fn deref(&self) -> &Bearer {
        &self.0
    }
}

impl FromRequestParts<Node> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, node: &Node) -> Result<Self, Problem> {
        let bearer = bearer(&node.inner, parts).await?;
        if let Err(wait) = node.inner.rates.user(bearer.user) {
            node.inner.metrics.refuse("rate");
            let most = node.inner.limits.rate;
            let message = format!("more than {most} requests per second; wait a moment");
            return Err(Problem::too_many("rate", message, wait));
        }
        Ok(Authenticated(bearer))
    }
}

/// Authenticates the token of a request. Look-ups of unknown tokens are rate-limited, with a stricter limit for wrong
/// tokens. The limits apply before the log is asked for new sessions.
async fn bearer(node: &Inner, parts: &Parts) -> Result<Bearer, Problem> {
    let Some(text) = bearer_token(&parts.headers) else {
        stranger(node, parts)?;
        return Err(Problem::unauthorized(
            "this request needs a token in the header Authorization: Bearer TOKEN; POST /sessions returns a token",
        ));
    };
    let wrong =
        || Problem::unauthorized("this token is not valid; POST /sessions returns a new one");
    let Some(token) = Token::parse(text) else {
        stranger(node, parts)?;
        return Err(wrong());
    };
    let known = node.sessions.cached(&token);
    if let Some(Some(bearer)) = known {
        return Ok(bearer);
    }
    if known.is_none() {
        let checked = node.rates.lookup(address(node, parts));
        checked.map_err(|wait| too_many_attempts(node, wait))?;
        let found = node.sessions.find(&token, &node.index).await;
        if let Some(bearer) = found.map_err(Failure::from)? {
            return Ok(bearer);
        }
    }
    stranger(node, parts)?;
    if node.sessions.cached(&token).is_some() {
        // The session exists, but the token is not its token.
        return Err(wrong());
    }
    // Another node may have just opened the session.
    Box::pin(node.caught_up()).await?;
    let found = node.sessions.find(&token, &node.index).await;
    found.map_err(Failure::from)?.ok_or_else(wrong)
}

/// Returns the token in the headers: in `Authorization`, or in the subprotocol after `courier`, because browsers cannot
/// set `Authorization` for a WebSocket.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim_matches(' '));
    }
    let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    protocols
        .split(',')
        .map(|protocol| protocol.trim_matches(' '))
        .find(|protocol| protocol.starts_with("courier_"))
}

/// A client without a token, within the rate limit of its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stranger;

impl FromRequestParts<Node> for Stranger {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, node: &Node) -> Result<Self, Problem> {
        stranger(&node.inner, parts).map(|()| Stranger)
    }
}

fn stranger(node: &Inner, parts: &Parts) -> Result<(), Problem> {
    let checked = node.rates.stranger(address(node, parts));
    checked.map_err(|wait| too_many_attempts(node, wait))
}

/// Counts a login to an account.
pub(crate) fn account(node: &Inner, name: &str) -> Result<(), Problem> {
    node.rates.account(name).map_err(|wait| {
        node.metrics.refuse("account");
        let message = "too many logins to this account; wait a moment";
        Problem::too_many("account", message, wait)
    })
}

fn too_many_attempts(node: &Inner, wait: Duration) -> Problem {
    node.metrics.refuse("strangers");
    let message = "too many attempts from this address; wait a moment";
    Problem::too_many("strangers", message, wait)
}

/// Returns the network of a request that counts as one client.
fn address(node: &Inner, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>();
    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let peer = peer.map_or(nowhere, |peer| peer.address.ip());
    network(client_address(
        peer,
        &parts.headers,
        &node.limits.trusted_proxies,
    ))
}

/// A JSON body with exactly the expected fields.
#[derive(Debug)]
pub(crate) struct StrictJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Node> for StrictJson<T> {
    type Rejection = Problem;

    // The head is processed before the body is read, so that only the body is held during the wait.
    fn from_request(
        request: Request,
        node: &Node,
    ) -> impl Future<Output = Result<Self, Problem>> + Send {
        let body = admit(request, node);
        async move { json(&read(body?, node).await?).map(StrictJson) }
    }
}

/// Returns the body of a request, unless the head of the request shows that the body would be refused.
fn admit(request: Request, node: &Node) -> Result<Body, Problem> {
    let headers = request.headers();
    if !is_json(headers) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_json",
            "the body must be JSON; send the header Content-Type: application/json",
        ));
    }
    let told = headers.get(header::CONTENT_LENGTH);
    let told = told.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|length| length > node.inner.limits.body as u64) {
        return Err(too_large(node));
    }
    Ok(request.into_body())
}

/// Reads the complete body.
async fn read(body: Body, node: &Node) -> Result<Bytes, Problem> {
    let Limits {
        body: most, head, ..
    } = node.inner.limits;
    let body = Limited::new(body, most);
    let Ok(collected) = tokio::time::timeout(head, body.collect()).await else {
        node.inner.metrics.refuse("slow_body");
        return Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow_body",
            "the body did not arrive in time; send the request again",
        ));
    };
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(node)),
        Err(error) => {
            let message = format!("the body is incomplete: {error}; send the request again");
            Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "broken_body",
                message,
            ))
        }
    }
}

fn too_large(node: &Node) -> Problem {
    node.inner.metrics.refuse("body");
    let most = node.inner.limits.body;
    let message = format!("the body may have at most {most} bytes; send less");
    Problem::too_large("body", message)
}

/// Parses a JSON object.
fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    object(bytes).map_err(|error| {
        if error.is_data() {
            let message = format!("{error}; GET /openapi.json describes the expected body");
            Problem::invalid("unexpected_json", message)
        } else {
            let message = format!("the body is not JSON: {error}");
            Problem::new(StatusCode::BAD_REQUEST, "malformed_json", message)
        }
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// A query string with exactly the expected parameters.
#[derive(Debug)]
pub(crate) struct StrictQuery<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Node> for StrictQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Node) -> Result<Self, Problem> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(query)| StrictQuery(query))
            .map_err(|error| {
                let message = format!("{error}; GET /openapi.json describes the parameters");
                Problem::invalid("unexpected_query", message)
            })
    }
}

/// The conversation in the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPath(pub ConversationId);

impl FromRequestParts<Node> for InPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, node: &Node) -> Result<Self, Problem> {
        let number = Path::<u64>::from_request_parts(parts, node).await;
        let id = number.map(|Path(id)| InPath(ConversationId(id)));
        id.map_err(|_| {
            Problem::new(
                StatusCode::NOT_FOUND,
                "unknown_conversation",
                "a conversation is given by its number; GET /conversations lists yours",
            )
        })
    }
}
