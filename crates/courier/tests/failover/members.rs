//! Changes of the members, and nodes that are refused.

use crate::nodes::{PATIENCE, nodes};
use crate::process::{NodeProcess, free_port};
use corsair_courier_load::client::Http;
use std::time::{Duration, Instant};
use tokio::time::sleep;

// Guarantee: courier-20, courier-25.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_node_becomes_the_first_of_several_with_all_its_data() {
    let mut cluster = nodes(0).await;
    let data = cluster.dir.path().join("data");
    let mut alone = NodeProcess::start(free_port(), &data).await;
    let mut http = Http::connect(&alone.host()).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    http.post(&anne.token, room, "alone", Some("k"))
        .await
        .unwrap();
    // Some entries are only in the log.
    alone.kill();
    cluster.add_at(&data).await;
    cluster.add().await;
    cluster.add().await;
    cluster.settle(3).await;
    for node in &cluster.all {
        let mut http = Http::connect(&node.host()).await.unwrap();
        let history = http.history(&mary.token, room, 0).await.unwrap();
        assert_eq!(history.len(), 1);
        let again = http
            .post(&anne.token, room, "alone", Some("k"))
            .await
            .unwrap();
        assert_eq!((again.number, again.repeated), (1, true));
    }
    // A running member is backed up, and so is one that was killed.
    let to = cluster.path("backup");
    let (code, said) = cluster.all[1].command("backup", &["--to", &to]);
    assert_eq!(code, Some(0), "{said}");
    cluster.all[2].kill();
    let to = cluster.path("later");
    let (code, said) = cluster.all[2].command("backup", &["--to", &to]);
    assert_eq!(code, Some(0), "{said}");
    // The data of a member need the flags of a member.
    let said = NodeProcess::refused(free_port(), &cluster.all[2].data, &[]);
    assert!(said.contains("--cluster-key FILE"), "{said}");
}

// Guarantee: courier-12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_another_key_other_data_or_a_taken_address_are_refused() {
    let cluster = nodes(1).await;
    let dir = cluster.dir.path();
    let join = |data: &str, key: &str, host: &str| {
        let flags = ["--cluster-key", key, "--join", host];
        NodeProcess::refused(free_port(), &dir.join(data), &flags)
    };
    let (key, wrong) = (cluster.path("key"), cluster.path("wrong"));
    std::fs::write(&wrong, "another key of some other cluster").unwrap();
    let said = join("a", &wrong, &cluster.all[0].host());
    assert!(said.contains("another --cluster-key"), "{said}");
    let single = NodeProcess::start(free_port(), &dir.join("single")).await;
    let said = join("c", &key, &single.host());
    assert!(said.contains("not a member of a cluster"), "{said}");
    drop(single);
    let said = join("single", &key, &cluster.all[0].host());
    assert!(said.contains("empty --data"), "{said}");
    let flags = [
        "--cluster-key",
        &key,
        "--join",
        &cluster.all[0].host(),
        "--advertise",
        &cluster.all[0].host(),
    ];
    let said = NodeProcess::refused(free_port(), &dir.join("d"), &flags);
    assert!(said.contains("belongs to the member"), "{said}");
    let said = NodeProcess::refused(
        free_port(),
        &dir.join("e"),
        &["--cluster-key", &cluster.path("none")],
    );
    assert!(said.contains("none"), "{said}");
}

// Guarantee: courier-25.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_replaced_and_the_leader_leaves() {
    let mut cluster = nodes(3).await;
    let mut http = Http::connect(&cluster.all[0].host()).await.unwrap();
    http.create_user("anne", "correct horse").await.unwrap();
    let members = cluster.all[0].members();
    let gone = cluster.all.pop().unwrap();
    let list = members["members"].as_array().unwrap();
    let id = list
        .iter()
        .find(|member| member["address"] == gone.host().as_str())
        .unwrap();
    let id = id["id"].as_str().unwrap().to_owned();
    drop(gone);
    let (code, said) = cluster.all[1].command("remove", &["--node", &id]);
    assert_eq!(code, Some(0), "{said}");
    cluster.settle(2).await;
    let (code, said) = cluster.all[1].command("remove", &["--node", &id]);
    assert!(code == Some(2) && said.contains("no member"), "{said}");
    let data = cluster.dir.path().join("replacement");
    cluster.add_at(&data).await;
    cluster.settle(3).await;
    // The leader hands over before it leaves, and says why it does not serve.
    let leader = cluster.leader(0).await;
    let (code, said) = cluster.all[leader].command("leave", &[]);
    assert_eq!(code, Some(0), "{said}");
    let left = cluster.all.remove(leader);
    left.answers(503, PATIENCE).await;
    cluster.settle(2).await;
    for node in &cluster.all {
        let mut http = Http::connect(&node.host()).await.unwrap();
        http.log_in("anne", "correct horse").await.unwrap();
    }
    let next = cluster.leader(0).await;
    let (code, said) = cluster.all[next].command("transfer", &[]);
    assert_eq!(code, Some(0), "{said}");
    let begun = Instant::now();
    while cluster.leader(0).await == next {
        assert!(begun.elapsed() < PATIENCE);
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a node answers requests of its owner, and returns whether the cluster has this number of voters.
async fn has_voters(node: &NodeProcess, count: usize) {
    let begun = Instant::now();
    loop {
        let (code, said) = node.command("members", &[]);
        if code == Some(0) && said.matches(r#""voter":true"#).count() == count {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{said}");
        sleep(Duration::from_millis(50)).await;
    }
}

// Guarantee: courier-12.
#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_with_an_authority_use_tls_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "a key that the nodes of a test share").unwrap();
    let file = |name: &str| format!("{}/tests/program/{name}", env!("CARGO_MANIFEST_DIR"));
    let (certificate, secret) = (file("node.pem"), file("node.key"));
    let key = key.to_str().unwrap();
    let flags = [
        "--cluster-key",
        key,
        "--cluster-ca",
        &certificate,
        "--tls-cert",
        &certificate,
        "--tls-key",
        &secret,
    ];
    let ports = [free_port(), free_port()];
    let addresses = ports.map(|port| format!("localhost:{port}"));
    let first = [&flags[..], &["--advertise", &addresses[0]]].concat();
    let first = NodeProcess::spawn(ports[0], &dir.path().join("a"), &first);
    has_voters(&first, 1).await;
    let second = [
        &flags[..],
        &["--advertise", &addresses[1], "--join", &addresses[0]],
    ]
    .concat();
    let second = NodeProcess::spawn(ports[1], &dir.path().join("b"), &second);
    has_voters(&second, 2).await;
    has_voters(&first, 2).await;
}
