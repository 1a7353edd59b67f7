//! Nodes that start from a snapshot, because the stream is trimmed.

use crate::nodes::{PATIENCE, nodes_with};
use crate::process::{Nats, NodeProcess, free_port};
use crate::stream::ping;
use corsair_courier::ConversationId;
use corsair_courier_load::client::{Http, Login};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const FLAGS: [&str; 2] = ["--nats-snapshot", "150"];
const ROOMS: usize = 4;

/// Returns the first entry of the stream.
async fn first(nats: &Nats) -> u64 {
    let client = async_nats::connect(nats.url()).await.unwrap();
    let stream = async_nats::jetstream::new(client)
        .get_stream("COURIER2")
        .await;
    stream.unwrap().cached_info().state.first_sequence
}

/// Waits until the stream begins after this entry.
async fn trimmed(nats: &Nats, after: u64) -> u64 {
    let begun = Instant::now();
    loop {
        let first = first(nats).await;
        if first > after {
            return first;
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "the stream is kept whole");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Users who post to one node until the stop signal.
struct Posting {
    over: Arc<AtomicBool>,
    rooms: Vec<(ConversationId, Login)>,
    posters: Vec<JoinHandle<u64>>,
}

impl Posting {
    async fn start(host: &str) -> Posting {
        Posting::start_with(host, "").await
    }

    /// Starts to post as users whose names end with `suffix`.
    async fn start_with(host: &str, suffix: &str) -> Posting {
        let over = Arc::new(AtomicBool::new(false));
        let (mut rooms, mut posters) = (Vec::new(), Vec::new());
        for number in 0..ROOMS {
            let mut http = Http::connect(host).await.unwrap();
            let name = format!("anne{number}{suffix}");
            let anne = http.create_user(&name, "correct horse").await.unwrap();
            let name = format!("mary{number}{suffix}");
            let mary = http.create_user(&name, "correct horse").await.unwrap();
            let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
            let over = over.clone();
            posters.push(tokio::spawn(async move {
                let text = "x".repeat(8 << 10);
                let mut last = 0;
                while !over.load(Relaxed) {
                    let stored = http.post(&anne.token, room, &text, None).await.unwrap();
                    last = stored.number;
                    sleep(Duration::from_millis(5)).await;
                }
                last
            }));
            rooms.push((room, mary));
        }
        Posting {
            over,
            rooms,
            posters,
        }
    }

    /// Returns each conversation with one of its members and the number of its last message.
    async fn stop(self) -> Vec<(ConversationId, Login, u64)> {
        self.over.store(true, Relaxed);
        let mut all = Vec::new();
        for ((room, reader), poster) in self.rooms.into_iter().zip(self.posters) {
            all.push((room, reader, poster.await.unwrap()));
        }
        all
    }
}

/// Checks that a node has all posted messages.
async fn check(host: &str, posted: &[(ConversationId, Login, u64)]) {
    let mut http = Http::connect(host).await.unwrap();
    for (room, reader, last) in posted {
        let mut numbers = Vec::new();
        while numbers.len() < *last as usize {
            let after = numbers.last().copied().unwrap_or(0);
            let page = http.history(&reader.token, *room, after).await.unwrap();
            assert!(!page.is_empty(), "{host} knows {after} of {last}");
            numbers.extend(page.iter().map(|message| message.number));
        }
        assert_eq!(numbers, (1..=*last).collect::<Vec<_>>());
    }
}

// Guarantee: courier-20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_new_node_joins_from_a_snapshot_while_posts_go_on() {
    let (dir, nats, nodes) = nodes_with(2, &FLAGS).await;
    let posting = Posting::start(&nodes[0].host()).await;
    trimmed(&nats, 1).await;
    let data = dir.path().join("new");
    let new = NodeProcess::start_with(free_port(), &data, Some(&nats.url()), &FLAGS).await;
    sleep(Duration::from_millis(500)).await;
    let posted = posting.stop().await;
    for host in [nodes[0].host(), nodes[1].host(), new.host()] {
        check(&host, &posted).await;
    }
    // A restarted node resumes at its position and needs no snapshot.
    drop(new);
    let new = NodeProcess::start_with(free_port(), &data, Some(&nats.url()), &FLAGS).await;
    check(&new.host(), &posted).await;
    assert!(!data.join("index.snapshot").exists());
}

// Guarantee: courier-20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_node_that_was_away_or_asleep_while_the_stream_was_trimmed_begins_anew_from_a_snapshot() {
    let (_dir, nats, mut nodes) = nodes_with(3, &FLAGS).await;
    let posting = Posting::start(&nodes[0].host()).await;
    // All nodes know of these entries.
    sleep(Duration::from_millis(500)).await;
    nodes[1].kill();
    nodes[2].signal("-STOP");
    let first = trimmed(&nats, 1).await;
    // Entries beyond the position of both nodes are trimmed.
    trimmed(&nats, first).await;
    nodes[1].restart().await;
    nodes[2].signal("-CONT");
    sleep(Duration::from_secs(1)).await;
    let posted = posting.stop().await;
    for node in &nodes {
        ping(&node.host(), 200).await;
        check(&node.host(), &posted).await;
    }
}

// Guarantee: courier-20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_snapshot_that_no_node_has_stored_is_not_believed() {
    let (dir, nats, nodes) = nodes_with(1, &FLAGS).await;
    let posting = Posting::start(&nodes[0].host()).await;
    trimmed(&nats, 1).await;
    let posted = posting.stop().await;
    let client = async_nats::connect(nats.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let name = "COURIER2_SNAPSHOTS";
    let objects = context.get_object_store(name).await.unwrap();
    // Another file replaces the object of the newest snapshot.
    let mut listed = objects.list().await.unwrap();
    while let Some(object) = futures_util::StreamExt::next(&mut listed).await {
        let forged = vec![7u8; 100_000];
        let name = object.unwrap().name;
        objects
            .put(name.as_str(), &mut forged.as_slice())
            .await
            .unwrap();
    }
    let said = NodeProcess::refused_with(free_port(), &dir.path().join("new"), &nats.url(), &[]);
    assert!(said.contains("snapshot cannot be read"), "{said}");
    // A forged message names another snapshot as the newest.
    let forged = context
        .publish("courier.snapshots.2", "forged".into())
        .await;
    forged.unwrap().await.unwrap();
    let said = NodeProcess::refused_with(free_port(), &dir.path().join("new"), &nats.url(), &[]);
    assert!(said.contains("entries are missing"), "{said}");
    // Running nodes do not need the snapshot, and store another one.
    let posting = Posting::start_with(&nodes[0].host(), "later").await;
    let first = first(&nats).await;
    trimmed(&nats, first).await;
    let later = posting.stop().await;
    let data = dir.path().join("new");
    let new = NodeProcess::start_with(free_port(), &data, Some(&nats.url()), &FLAGS).await;
    check(&new.host(), &posted).await;
    check(&new.host(), &later).await;
}
