//! A server that hangs, and a server that has permanently lost entries.

use crate::nodes::{nodes, nodes_with};
use crate::process::{NodeProcess, free_port};
use crate::stream::{copy, ping};
use corsair_courier_load::client::Http;
use hyper::Method;
use std::process::Command;
use std::time::Instant;

// Guarantee: courier-24.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_node_whose_server_hangs_is_not_ready() {
    let (_dir, nats, nodes) = nodes(1).await;
    let host = nodes[0].host();
    ping(&host, 200).await;
    nats.signal("-STOP");
    let begun = Instant::now();
    let said = ping(&host, 503).await;
    // The node is not ready before a post would be refused, and gives a reason.
    assert!(begun.elapsed().as_secs() < 12, "{:?}", begun.elapsed());
    assert!(said.contains("stalled"), "{said}");
    let mut http = Http::connect(&host).await.unwrap();
    let alive = http.send(Method::GET, "/healthz", &[], "").await.unwrap();
    assert_eq!(alive.0.as_u16(), 200);
    nats.signal("-CONT");
    ping(&host, 200).await;
}

fn program(arguments: &[&str]) -> (Option<i32>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_corsair-courier"))
        .args(arguments)
        .output()
        .unwrap();
    let said = [run.stdout, run.stderr].concat();
    (run.status.code(), String::from_utf8(said).unwrap())
}

// Guarantee: courier-25.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_stream_that_lost_its_tail_is_begun_again_from_the_node_that_knows_most() {
    let (dir, mut nats, mut nodes) = nodes(2).await;
    let (here, there) = (nodes[0].host(), nodes[1].host());
    let mut http = Http::connect(&here).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    let mut other = Http::connect(&there).await.unwrap();
    other.history(&mary.token, room, 0).await.unwrap();
    nodes[1].kill();
    nats.kill();
    let old = dir.path().join("old");
    copy(nats.data(), &old);
    nats.start_again().await;
    ping(&here, 200).await;
    let mut http = Http::connect(&here).await.unwrap();
    for _ in 0..17 {
        http.post(&anne.token, room, "ahoy", None).await.unwrap();
    }
    // The tail of the stream is permanently lost.
    nats.kill();
    std::fs::remove_dir_all(nats.data()).unwrap();
    copy(&old, nats.data());
    nats.start_again().await;
    let said = ping(&here, 503).await;
    nodes[0].stop();
    let data = |number: usize| dir.path().join(format!("node{number}"));
    let (most, less) = (data(0), data(1));
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    // The backups show which node has applied most entries.
    let last = |data: &std::path::Path, to: &str| {
        let to = dir.path().join(to);
        let (code, said) = program(&["backup", "--data", &path(data), "--to", &path(&to)]);
        assert_eq!(code, Some(0), "{said}");
        let last = said.split("up to entry ").nth(1).unwrap();
        last.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert!(last(&most, "a") >= last(&less, "b") + 17, "{said}");
    let key = dir.path().join("nodes.key");
    let (url, key) = (nats.url(), path(&key));
    let from = path(&most);
    let flags = [
        "reseed",
        "--data",
        &from,
        "--nats",
        &url,
        "--nats-key",
        &key,
    ];
    // A stream that lost its tail is not continued.
    let (code, said) = program(&flags);
    assert!(code == Some(2) && said.contains("stream rm"), "{said}");
    let new = ["--nats-stream", "SECOND"];
    let (code, said) = program(&[&flags[..], &new[..]].concat());
    assert_eq!(code, Some(0), "{said}");
    let first = NodeProcess::start_with(free_port(), &most, Some(&url), &new).await;
    // A node with the data of another log is refused, and an empty node receives everything.
    let said = NodeProcess::refused_with(free_port(), &less, &url, &new);
    assert!(said.contains("another log"), "{said}");
    let fresh = dir.path().join("fresh");
    let second = NodeProcess::start_with(free_port(), &fresh, Some(&url), &new).await;
    let mut hosts = Vec::new();
    for node in [&first, &second] {
        let mut http = Http::connect(&node.host()).await.unwrap();
        http.post(&anne.token, room, "again", None).await.unwrap();
        hosts.push(http);
    }
    for http in &mut hosts {
        let history = http.history(&mary.token, room, 0).await.unwrap();
        assert_eq!(history.len(), 19);
    }
}

// Guarantee: courier-25.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs nats-server: ci/courier.sh"]
async fn a_single_node_becomes_one_of_several() {
    let (dir, nats, _nodes) = nodes_with(0, &[]).await;
    let data = dir.path().join("data");
    let mut alone = NodeProcess::start(free_port(), &data, None).await;
    let mut http = Http::connect(&alone.host()).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    http.post(&anne.token, room, "alone", None).await.unwrap();
    // Some entries are only in the log.
    alone.kill();
    let key = dir.path().join("nodes.key");
    std::fs::write(&key, crate::process::NODES_KEY).unwrap();
    let (from, url) = (data.to_str().unwrap(), nats.url());
    let key = key.to_str().unwrap();
    let flags = ["reseed", "--data", from, "--nats", &url, "--nats-key", key];
    let (code, said) = program(&flags);
    assert_eq!(code, Some(0), "{said}");
    let first = NodeProcess::start(free_port(), &data, Some(&url)).await;
    let fresh = dir.path().join("fresh");
    let second = NodeProcess::start(free_port(), &fresh, Some(&url)).await;
    for node in [&first, &second] {
        let mut http = Http::connect(&node.host()).await.unwrap();
        let history = http.history(&mary.token, room, 0).await.unwrap();
        assert_eq!(history.len(), 1);
    }
    let (code, said) = program(&["backup", "--data", from, "--to", &format!("{from}.backup")]);
    assert_eq!(code, Some(0), "{said}");
}
