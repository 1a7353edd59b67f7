//! Nodes fail and no message is lost: real processes, killed by SIGKILL under load and restarted.
//!
//! The test with NATS needs `nats-server` and half a minute, so it runs only when asked for:
//! `ci/courier.sh`, or `cargo test -p corsair-courier --test failover -- --ignored --nocapture`.

mod credentials;
mod crowd;
mod nodes;
mod process;
mod recovery;
mod snapshots;
mod stream;
mod versions;

use crowd::{Crowd, Load};
use process::{Nats, NodeProcess, free_port};
use std::time::Duration;
use tokio::time::sleep;

// Guarantee: courier-1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_killed_among_group_commits_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = NodeProcess::start(free_port(), dir.path(), None).await;
    let load = Load::start(Crowd::gather(&[node.host()], 24, 8).await);
    for _ in 0..3 {
        sleep(Duration::from_millis(700)).await;
        node.kill();
        node.restart().await;
    }
    sleep(Duration::from_millis(500)).await;
    let tally = load.finish().await;
    tally.print();
    tally.check();
    assert!(tally.acknowledged > 100, "{tally}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_in_use_is_refused_to_a_second_process() {
    let dir = tempfile::tempdir().unwrap();
    let node = NodeProcess::start(free_port(), dir.path(), None).await;
    let said = NodeProcess::refused(free_port(), dir.path());
    assert!(said.contains("in use by another process"), "{said}");
    assert!(said.contains("--data"), "{said}");
    drop(node);
}

// Guarantee: courier-1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server and half a minute: ci/courier.sh"]
async fn three_nodes_and_nats_killed_in_turn_lose_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut nats = Nats::start(free_port(), &dir.path().join("nats")).await;
    let mut nodes = Vec::new();
    for number in 0..3 {
        let data = dir.path().join(format!("node{number}"));
        nodes.push(NodeProcess::start(free_port(), &data, Some(&nats.url())).await);
    }
    let hosts: Vec<String> = nodes.iter().map(NodeProcess::host).collect();
    let load = Load::start(Crowd::gather(&hosts, 200, 32).await);
    for node in &mut nodes {
        sleep(Duration::from_secs(2)).await;
        node.kill();
        sleep(Duration::from_secs(1)).await;
        node.restart().await;
    }
    sleep(Duration::from_secs(2)).await;
    nats.restart().await;
    sleep(Duration::from_secs(4)).await;
    let tally = load.finish().await;
    tally.print();
    tally.check();
    assert!(tally.acknowledged > 1000, "{tally}");
}
