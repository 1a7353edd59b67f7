//! A node for one test, and its users.

use corsair_courier::{Limits, Message, Node, Options, Serving, serve};
use corsair_courier_load::client::{Http, Login, ServerMessage, Socket};
use hyper::Method;
use serde_json::Value;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

/// The time limit for everything that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const PASSWORD: &str = "correct horse";

/// Limits that tests do not reach by accident, with fast password hashing.
pub fn limits() -> Limits {
    let many = NonZeroU32::new(1_000_000).unwrap();
    Limits {
        rate: many,
        strangers: many,
        fanout: many,
        password_memory: 8,
        ..Limits::default()
    }
}

pub async fn start(options: Options) -> Serving {
    let node = Node::start(options).await.unwrap();
    serve(node, "127.0.0.1:0").await.unwrap()
}

/// Starts a node with its data in memory.
pub async fn in_memory() -> Serving {
    with(limits()).await
}

pub async fn with(limits: Limits) -> Serving {
    start(Options {
        limits,
        ..Options::default()
    })
    .await
}

pub async fn on_disk(dir: &Path) -> Serving {
    start(Options {
        data: Some(dir.to_owned()),
        limits: limits(),
        ..Options::default()
    })
    .await
}

pub fn host(serving: &Serving) -> String {
    serving.address().to_string()
}

pub async fn http(serving: &Serving) -> Http {
    Http::connect(&host(serving)).await.unwrap()
}

/// Creates users named `user0`, `user1` and so on.
pub async fn users(http: &mut Http, count: usize) -> Vec<Login> {
    let mut users = Vec::new();
    for number in 0..count {
        users.push(
            http.create_user(&format!("user{number}"), PASSWORD)
                .await
                .unwrap(),
        );
    }
    users
}

/// Sends a request of a user and returns the status and the answer. A body of `null` stands for no body.
pub async fn call(
    http: &mut Http,
    who: &Login,
    method: Method,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let bearer = format!("Bearer {}", who.token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let (status, answer) = http.send(method, path, &headers, body).await.unwrap();
    let answer = serde_json::from_slice(&answer).unwrap_or_default();
    (status.as_u16(), answer)
}

/// Opens a socket that receives only messages.
pub async fn quiet(serving: &Serving, who: &Login, query: &str) -> Socket {
    let join = if query.is_empty() { '?' } else { '&' };
    let query = format!("{query}{join}presence=false");
    Socket::open(&host(serving), &who.token, &query)
        .await
        .unwrap()
}

/// True if the node has counted a refusal.
pub async fn counted(http: &mut Http, why: &str) -> bool {
    let line = format!("courier_refused_total{{why=\"{why}\"}}");
    let metrics = http.metrics().await.unwrap();
    metrics.lines().any(|found| found.starts_with(&line))
}

/// Returns the next frame of the node.
pub async fn said(socket: &mut Socket) -> ServerMessage {
    let said = tokio::time::timeout(PATIENCE, socket.next()).await;
    said.expect("something within the time")
        .unwrap()
        .expect("an open socket")
}

/// Returns the next message with its sequence number.
pub async fn message(socket: &mut Socket) -> (u64, Message) {
    match said(socket).await {
        ServerMessage::Message { sequence, message } => (sequence, message),
        other => panic!("{other:?} instead of a message"),
    }
}

/// Returns the sequence number and the text of the next message.
pub async fn text(socket: &mut Socket) -> (u64, String) {
    let (sequence, message) = message(socket).await;
    (sequence, message.text)
}
