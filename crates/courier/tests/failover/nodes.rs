//! Several nodes: a user can connect to any of them.

use crate::process::{NodeProcess, free_port};
use corsair_courier_load::client::{Http, ServerMessage, Socket};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::timeout;

pub const PATIENCE: Duration = Duration::from_secs(20);

/// The nodes of a cluster, in separate processes.
pub struct Nodes {
    pub dir: TempDir,
    pub all: Vec<NodeProcess>,
    /// The number of nodes that were added with an empty directory.
    added: usize,
}

/// Starts a cluster: one node, which the others join.
pub async fn nodes(count: usize) -> Nodes {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("key"),
        "a key that the nodes of a test share",
    )
    .unwrap();
    let mut nodes = Nodes {
        dir,
        all: Vec::new(),
        added: 0,
    };
    for _ in 0..count {
        nodes.add().await;
    }
    nodes.settle(count).await;
    nodes
}

impl Nodes {
    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the flags of a node that joins the first one.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec!["--cluster-key".to_owned(), self.path("key")];
        if let Some(first) = self.all.first() {
            flags.extend(["--join".to_owned(), first.host()]);
        }
        flags
    }

    /// Adds a node with an empty directory.
    pub async fn add(&mut self) {
        self.added += 1;
        let data = self.dir.path().join(format!("node{}", self.added));
        self.add_at(&data).await;
    }

    /// Adds a node with this directory.
    pub async fn add_at(&mut self, data: &Path) {
        let flags = self.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.all
            .push(NodeProcess::start_with(free_port(), data, &flags).await);
    }

    pub fn hosts(&self) -> Vec<String> {
        self.all.iter().map(NodeProcess::host).collect()
    }

    /// Waits until this number of members can vote.
    pub async fn settle(&self, voters: usize) {
        let Some(first) = self.all.first() else {
            return;
        };
        let begun = Instant::now();
        loop {
            let members = first.members();
            let list = members["members"].as_array().unwrap();
            let count = list.iter().filter(|member| member["voter"] == true).count();
            if count == voters && list.len() == voters {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{members}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the place of the leader, as one of the running nodes knows it.
    pub async fn leader(&self, asked: usize) -> usize {
        let begun = Instant::now();
        loop {
            let members = self.all[asked].members();
            let list = members["members"].as_array().unwrap();
            if let Some(leader) = list.iter().find(|member| member["leader"] == true) {
                let host = leader["address"].as_str().unwrap();
                return self
                    .all
                    .iter()
                    .position(|node| node.host() == host)
                    .unwrap();
            }
            assert!(begun.elapsed() < PATIENCE, "{members}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn said(socket: &mut Socket) -> ServerMessage {
    let said = timeout(PATIENCE, socket.next()).await.expect("in time");
    said.unwrap().expect("an open socket")
}

// Guarantee: courier-6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_was_sent_all_know_at_once() {
    let nodes = nodes(3).await;
    let hosts = nodes.hosts();
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
async fn users_of_a_node_that_dies_are_reported_as_gone() {
    let mut nodes = nodes(3).await;
    let (here, there) = (nodes.all[0].host(), nodes.all[1].host());
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
    nodes.all[1].kill();
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
