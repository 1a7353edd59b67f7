//! A NATS server that loses entries, is unreachable, or has other clients.

use crate::nodes::{PATIENCE, nodes};
use corsair_courier_load::client::Http;
use hyper::Method;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::time::sleep;

pub fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

/// Waits until the node answers `GET /ping` with this status, and returns the body.
pub async fn ping(host: &str, status: u16) -> String {
    let begun = Instant::now();
    loop {
        let answer = match Http::connect(host).await {
            Ok(mut http) => http.send(Method::GET, "/ping", &[], "").await.ok(),
            Err(_) => None,
        };
        if let Some((found, body)) = answer
            && found.as_u16() == status
        {
            return String::from_utf8_lossy(&body).into_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "no {status}");
        sleep(Duration::from_millis(50)).await;
    }
}

// Guarantee: courier-11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_node_that_knows_more_than_the_stream_stops_and_says_why() {
    let (dir, mut nats, nodes) = nodes(1).await;
    let host = nodes[0].host();
    let mut http = Http::connect(&host).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    // An older copy of the store, as if the disk had been restored from a backup.
    let old = dir.path().join("old");
    nats.kill();
    copy(nats.data(), &old);
    nats.start_again().await;
    ping(&host, 200).await;
    for _ in 0..17 {
        http.post(&anne.token, room, "ahoy", None).await.unwrap();
    }
    nats.kill();
    std::fs::remove_dir_all(nats.data()).unwrap();
    copy(&old, nats.data());
    nats.start_again().await;
    let begun = Instant::now();
    let said = loop {
        let mut http = Http::connect(&host).await.unwrap();
        match http.post(&anne.token, room, "lost", None).await {
            Ok(stored) => panic!("{stored:?}"),
            Err(refused) if refused.to_string().contains("has lost entries") => break refused,
            Err(_) => assert!(begun.elapsed() < PATIENCE),
        }
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(said.status(), Some(503), "{said}");
    ping(&host, 503).await;
    // Data that differ from the log are not served.
    let mut http = Http::connect(&host).await.unwrap();
    let history = http.history(&mary.token, room, 0).await.unwrap_err();
    assert!(history.to_string().contains("restore"), "{history}");
}

// Guarantee: courier-11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_stream_that_lost_its_tail_and_took_other_entries_stops_the_nodes_that_knew_the_tail() {
    let (dir, mut nats, mut nodes) = nodes(2).await;
    let host = nodes[0].host();
    let mut http = Http::connect(&host).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    // The other node has applied exactly the entries of the older store.
    Http::connect(&nodes[1].host())
        .await
        .unwrap()
        .history(&mary.token, room, 0)
        .await
        .unwrap();
    nodes[1].kill();
    nats.kill();
    let old = dir.path().join("old");
    copy(nats.data(), &old);
    nats.start_again().await;
    ping(&host, 200).await;
    for _ in 0..5 {
        http.post(&anne.token, room, "lost", None).await.unwrap();
    }
    nodes[0].stop();
    nats.kill();
    std::fs::remove_dir_all(nats.data()).unwrap();
    copy(&old, nats.data());
    nats.start_again().await;
    // The stream receives other entries, more than it has lost.
    nodes[1].restart().await;
    let mut other = Http::connect(&nodes[1].host()).await.unwrap();
    for _ in 0..9 {
        other.post(&anne.token, room, "other", None).await.unwrap();
    }
    let said = nodes[0].refuses();
    assert!(
        said.contains("has lost entries and accepted others"),
        "{said}"
    );
    assert_eq!(other.history(&mary.token, room, 0).await.unwrap().len(), 9);
}

// Guarantee: courier-12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn entries_of_other_clients_are_skipped_and_counted() {
    let (_dir, nats, nodes) = nodes(2).await;
    let hosts = [nodes[0].host(), nodes[1].host()];
    let mut http = Http::connect(&hosts[0]).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    let stranger = async_nats::connect(nats.url()).await.unwrap();
    for forged in [&b""[..], b"nonsense", &[b'c'; 100]] {
        for subject in ["courier.log.2", "courier.presence.2"] {
            let sent = stranger.publish(subject, forged.to_vec().into()).await;
            sent.unwrap();
        }
    }
    stranger.flush().await.unwrap();
    for host in &hosts {
        let mut http = Http::connect(host).await.unwrap();
        http.post(&anne.token, room, "ahoy", None).await.unwrap();
        let metrics = http.metrics().await.unwrap();
        let line = "courier_refused_total{why=\"foreign_entry\"} 3";
        assert!(metrics.contains(line), "{metrics}");
    }
    let history = http.history(&mary.token, room, 0).await.unwrap();
    assert_eq!(history.len(), 2);
}

// Guarantee: courier-14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn while_nats_is_away_what_a_node_knows_can_be_read() {
    let (_dir, mut nats, nodes) = nodes(1).await;
    let host = nodes[0].host();
    let mut http = Http::connect(&host).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    http.post(&anne.token, room, "ahoy", None).await.unwrap();
    nats.kill();
    ping(&host, 503).await;
    let mut http = Http::connect(&host).await.unwrap();
    let history = http.history(&anne.token, room, 0).await.unwrap();
    assert_eq!(history.len(), 1);
    nats.start_again().await;
    ping(&host, 200).await;
    let mut http = Http::connect(&host).await.unwrap();
    http.post(&anne.token, room, "ahoy", None).await.unwrap();
}
