//! Nodes of two versions on one stream.

use crate::nodes::{PATIENCE, nodes};
use crate::process::{NODES_KEY, Nats};
use crate::stream::ping;
use corsair_courier_load::client::{Http, Login};
use hyper::{Method, StatusCode};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The subject to which nodes publish.
const LOG: &str = "courier.log.2";
const PRESENCE: &str = "courier.presence.2";
/// The number of the variant `Alive`.
const ALIVE: u8 = 1;

/// Returns the message that a node of this version would publish.
fn sealed(version: u8, value: &impl Serialize) -> Vec<u8> {
    let context = "corsair-courier 2026-11 messages between nodes";
    let key = blake3::derive_key(context, NODES_KEY.as_bytes());
    let mut said = vec![version];
    said.extend(postcard::to_allocvec(value).unwrap());
    let hash = blake3::keyed_hash(&key, &said);
    [&b"cou2"[..], hash.as_bytes(), &said].concat()
}

async fn publish(nats: &Nats, subject: &'static str, bytes: Vec<u8>) {
    let client = async_nats::connect(nats.url()).await.unwrap();
    client.publish(subject, bytes.into()).await.unwrap();
    client.flush().await.unwrap();
}

/// Requests a feature that only nodes of the second version support.
async fn close_others(http: &mut Http, login: &Login) -> (StatusCode, String) {
    let bearer = format!("Bearer {}", login.token);
    let headers = [("authorization", bearer.as_str())];
    let sent = http.send(Method::DELETE, "/sessions/others", &headers, "");
    let (status, body) = sent.await.unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

async fn until(http: &mut Http, login: &Login, wanted: u16) -> String {
    let begun = Instant::now();
    loop {
        let (status, body) = close_others(http, login).await;
        if status.as_u16() == wanted {
            return body;
        }
        assert!(begun.elapsed() < PATIENCE, "{status} {body}");
        sleep(Duration::from_millis(50)).await;
    }
}

// Guarantee: courier-12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn while_a_node_of_an_older_version_runs_nothing_is_written_that_it_cannot_read() {
    let (_dir, nats, nodes) = nodes(2).await;
    let mut http = Http::connect(&nodes[0].host()).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    until(&mut http, &anne, 204).await;
    // A node of the first version reports that it is alive, but not the versions that it can read.
    let client = async_nats::connect(nats.url()).await.unwrap();
    let older = tokio::spawn(async move {
        loop {
            let alive = sealed(1, &(77u64, ALIVE, 0u64));
            client.publish(PRESENCE, alive.into()).await.unwrap();
            sleep(Duration::from_millis(500)).await;
        }
    });
    let said = until(&mut http, &anne, 503).await;
    assert!(said.contains("older version"), "{said}");
    // Features that both versions support keep working.
    for host in nodes.iter().map(|node| node.host()) {
        let mut http = Http::connect(&host).await.unwrap();
        http.log_in("anne", "correct horse").await.unwrap();
    }
    older.abort();
    until(&mut http, &anne, 204).await;
}

// Guarantee: courier-12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn an_entry_that_no_node_can_read_is_skipped_and_counted_by_all() {
    let (_dir, nats, nodes) = nodes(2).await;
    publish(&nats, LOG, sealed(1, &(1u64, 1u64, u64::MAX))).await;
    publish(&nats, LOG, sealed(2, &"nonsense")).await;
    let mut http = Http::connect(&nodes[0].host()).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    for host in nodes.iter().map(|node| node.host()) {
        let mut http = Http::connect(&host).await.unwrap();
        let again = http.log_in("anne", "correct horse").await.unwrap();
        assert_eq!(again.user, anne.user);
        let metrics = http.metrics().await.unwrap();
        let line = "courier_refused_total{why=\"unreadable_entry\"} 2";
        assert!(metrics.contains(line), "{metrics}");
    }
}

// Guarantee: courier-12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn an_entry_of_a_newer_version_stops_a_node_with_a_sentence() {
    let (_dir, nats, nodes) = nodes(1).await;
    let host = nodes[0].host();
    let mut http = Http::connect(&host).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    publish(&nats, LOG, sealed(200, &(1u64, 1u64, 0u64))).await;
    ping(&host, 503).await;
    let mut http = Http::connect(&host).await.unwrap();
    let said = until(&mut http, &anne, 503).await;
    assert!(said.contains("version 200"), "{said}");
    assert!(said.contains("upgrade this node"), "{said}");
}
