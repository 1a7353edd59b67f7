//! Members of a cluster are killed, stopped and replaced under load, and nothing that was acknowledged is lost.

use crate::crowd::{Crowd, Load};
use crate::nodes::nodes;
use std::time::Duration;
use tokio::time::sleep;

// Guarantee: courier-1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_killed_in_turn_lose_nothing_that_was_acknowledged() {
    let mut nodes = nodes(3).await;
    let load = Load::start(Crowd::gather(&nodes.hosts(), 24, 8).await);
    for turn in 0..3 {
        sleep(Duration::from_millis(700)).await;
        let leader = nodes.leader(turn % 3).await;
        nodes.all[leader].kill();
        sleep(Duration::from_millis(1500)).await;
        nodes.all[leader].restart().await;
    }
    sleep(Duration::from_millis(500)).await;
    let tally = load.finish().await;
    tally.print();
    tally.check();
    assert!(tally.acknowledged > 100, "{tally}");
}

// Guarantee: courier-1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute: ci/courier.sh"]
async fn leaders_that_are_killed_or_stand_still_lose_nothing_that_was_acknowledged() {
    let mut nodes = nodes(3).await;
    let load = Load::start(Crowd::gather(&nodes.hosts(), 200, 32).await);
    let mut last = 0;
    for turn in 0..10 {
        sleep(Duration::from_secs(1)).await;
        let leader = nodes.leader(last).await;
        last = (leader + 1) % 3;
        match turn % 3 {
            0 => {
                nodes.all[leader].kill();
                sleep(Duration::from_secs(2)).await;
                nodes.all[leader].restart().await;
            }
            1 => {
                // The leader believes that it leads until it runs again.
                nodes.all[leader].signal("-STOP");
                sleep(Duration::from_secs(4)).await;
                nodes.all[leader].signal("-CONT");
            }
            _ => {
                nodes.all[leader].stop();
                nodes.all[leader].restart().await;
            }
        }
    }
    // All nodes are killed at once.
    nodes.all.iter_mut().for_each(|node| node.kill());
    nodes.all.iter_mut().for_each(|node| node.start_again());
    for node in &nodes.all {
        node.ready().await;
    }
    sleep(Duration::from_secs(2)).await;
    let tally = load.finish().await;
    tally.print();
    tally.check();
    assert!(tally.acknowledged > 1000, "{tally}");
}

// Guarantee: courier-1, courier-20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute: ci/courier.sh"]
async fn nodes_that_join_and_leave_under_load_lose_nothing_that_was_acknowledged() {
    let mut nodes = nodes(3).await;
    let load = Load::start(Crowd::gather(&nodes.hosts(), 60, 16).await);
    for _ in 0..2 {
        sleep(Duration::from_secs(1)).await;
        nodes.add().await;
        nodes.settle(nodes.all.len()).await;
    }
    for _ in 0..2 {
        sleep(Duration::from_secs(1)).await;
        let leaving = nodes.all.pop().unwrap();
        let (code, said) = leaving.command("leave", &[]);
        assert_eq!(code, Some(0), "{said}");
        nodes.settle(nodes.all.len()).await;
    }
    sleep(Duration::from_secs(1)).await;
    let tally = load.finish().await;
    tally.print();
    tally.check();
    assert!(tally.acknowledged > 300, "{tally}");
}
