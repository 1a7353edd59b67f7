//! Nodes fail and no message is lost: real processes, killed by SIGKILL under load and restarted.
//!
//! The long tests run only when asked for: `ci/courier.sh`, or
//! `cargo test -p corsair-courier --test failover -- --ignored --nocapture`.

mod cluster;
mod crowd;
mod histories;
mod members;
mod nodes;
mod process;
mod recovery;

use crowd::{Crowd, Load};
use process::{NodeProcess, free_port};
use std::time::Duration;
use tokio::time::sleep;

// Guarantee: courier-1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_killed_among_group_commits_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = NodeProcess::start(free_port(), dir.path()).await;
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
    let node = NodeProcess::start(free_port(), dir.path()).await;
    let said = NodeProcess::refused(free_port(), dir.path(), &[]);
    assert!(said.contains("in use by another process"), "{said}");
    assert!(said.contains("--data"), "{said}");
    drop(node);
}
