//! Several nodes on one NATS server: a user can connect to any of them.

use crate::process::{Nats, NodeProcess, free_port};
use corsair_courier_load::client::{Http, ServerMessage, Socket};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::timeout;

pub const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a server and `count` nodes, in separate processes.
pub async fn nodes(count: usize) -> (TempDir, Nats, Vec<NodeProcess>) {
    nodes_with(count, &[]).await
}

/// Starts nodes like [`nodes`], with additional flags.
pub async fn nodes_with(count: usize, flags: &[&str]) -> (TempDir, Nats, Vec<NodeProcess>) {
    let dir = tempfile::tempdir().unwrap();
    let nats = Nats::start(free_port(), &dir.path().join("nats")).await;
    let mut nodes = Vec::new();
    for number in 0..count {
        let data = dir.path().join(format!("node{number}"));
        let url = Some(nats.url());
        let node = NodeProcess::start_with(free_port(), &data, url.as_deref(), flags).await;
        nodes.push(node);
    }
    (dir, nats, nodes)
}

async fn said(socket: &mut Socket) -> ServerMessage {
    let said = timeout(PATIENCE, socket.next()).await.expect("in time");
    said.unwrap().expect("an open socket")
}

// Guarantee: courier-6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn what_one_node_was_sent_all_know_at_once() {
    let (_dir, _nats, nodes) = nodes(3).await;
    let hosts: Vec<String> = nodes.iter().map(NodeProcess::host).collect();
    let mut clients = Vec::new();
    for host in &hosts {
        clients.push(Http::connect(host).await.unwrap());
    }
    for round in 0..20 {
        let (a, b, c) = (round % 3, (round + 1) % 3, (round + 2) % 3);
        let (anne, mary) = (format!("anne{round}"), format!("mary{round}"));
        let anne = clients[a]
            .create_user(&anne, "correct horse")
            .await
            .unwrap();
        // A name can be taken at only one of two nodes.
        let taken = clients[b]
            .create_user(&format!("anne{round}"), "correct horse")
            .await;
        assert_eq!(taken.unwrap_err().status(), Some(409));
        let mary = clients[b]
            .create_user(&mary, "correct horse")
            .await
            .unwrap();
        let again = clients[c]
            .log_in(&format!("mary{round}"), "correct horse")
            .await
            .unwrap();
        assert_eq!(again.user, mary.user);
        let room = clients[b]
            .converse(&anne.token, &[mary.user])
            .await
            .unwrap();
        let mut socket = Socket::open(&hosts[a], &mary.token, "?presence=false")
            .await
            .unwrap();
        let stored = clients[c]
            .post(&anne.token, room, "ahoy", Some("k"))
            .await
            .unwrap();
        assert_eq!((stored.number, stored.repeated), (1, false));
        let again = clients[b]
            .post(&anne.token, room, "ahoy", Some("k"))
            .await
            .unwrap();
        assert_eq!((again.number, again.repeated), (1, true));
        assert_eq!(
            clients[a]
                .history(&mary.token, room, 0)
                .await
                .unwrap()
                .len(),
            1
        );
        assert!(matches!(
            said(&mut socket).await,
            ServerMessage::Message { sequence: 1, .. }
        ));
        // A logout at one node applies to all nodes.
        let bearer = format!("Bearer {}", anne.token);
        let headers = [("authorization", bearer.as_str())];
        let out = clients[a]
            .send(hyper::Method::DELETE, "/sessions", &headers, "")
            .await;
        assert_eq!(out.unwrap().0.as_u16(), 204);
        let begun = Instant::now();
        loop {
            let listed = clients[b]
                .send(hyper::Method::GET, "/conversations", &headers, "")
                .await;
            if listed.unwrap().0.as_u16() == 401 {
                break;
            }
            assert!(begun.elapsed() < PATIENCE);
        }
    }
}

// Guarantee: courier-7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn users_of_a_node_that_dies_are_reported_as_gone() {
    let (_dir, _nats, mut nodes) = nodes(2).await;
    let (here, there) = (nodes[0].host(), nodes[1].host());
    let mut http = Http::connect(&here).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let mut watcher = Socket::open(&here, &anne.token, "").await.unwrap();
    let away = Socket::open(&there, &mary.token, "").await.unwrap();
    loop {
        let (ServerMessage::Connect { users } | ServerMessage::Online { users, .. }) =
            said(&mut watcher).await
        else {
            panic!("mary comes before she goes");
        };
        if users.iter().any(|face| face.id == mary.user) {
            break;
        }
    }
    nodes[1].kill();
    let begun = Instant::now();
    match said(&mut watcher).await {
        ServerMessage::Disconnect { users } => assert_eq!(users[0].id, mary.user),
        other => panic!("{other:?} instead of mary's end"),
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(away);
    // The user is online again at the other node.
    let _here = Socket::open(&here, &mary.token, "").await.unwrap();
    match said(&mut watcher).await {
        ServerMessage::Connect { users } => assert_eq!(users[0].id, mary.user),
        other => panic!("{other:?} instead of mary"),
    }
}
