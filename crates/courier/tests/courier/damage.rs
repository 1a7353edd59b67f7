//! Lost or damaged data, and full disks: the node reports them and does not serve wrong data.

use crate::node::{counted, http, limits, on_disk, start, users};
use corsair_courier::{Limits, Node, Options};
use hyper::Method;

// Guarantee: courier-11.
#[tokio::test]
async fn a_lost_log_beside_a_good_index_is_not_taken_for_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    users(&mut http(&node).await, 3).await;
    node.stop().await;
    std::fs::remove_dir_all(dir.path().join("log")).unwrap();
    let options = Options {
        data: Some(dir.path().to_owned()),
        limits: limits(),
        ..Options::default()
    };
    let said = Node::start(options).await.unwrap_err().to_string();
    assert!(said.contains("another log"), "{said}");
}

// Guarantee: courier-14.
#[tokio::test]
async fn a_full_disk_is_said_and_what_is_there_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let people = users(&mut http(&node).await, 2).await;
    node.stop().await;
    let node = start(Options {
        data: Some(dir.path().to_owned()),
        limits: Limits {
            reserve: u64::MAX,
            ..limits()
        },
        ..Options::default()
    })
    .await;
    let mut http = http(&node).await;
    let refused = http.converse(&people[0].token, &[people[1].user]).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.status(), Some(503));
    assert!(refused.to_string().contains("is full"), "{refused}");
    let (status, _) = http.send(Method::GET, "/ping", &[], "").await.unwrap();
    assert_eq!(status.as_u16(), 503);
    let bearer = format!("Bearer {}", people[0].token);
    let headers = [("authorization", bearer.as_str())];
    let read = http.send(Method::GET, "/conversations", &headers, "").await;
    assert_eq!(read.unwrap().0.as_u16(), 200);
    assert!(counted(&mut http, "disk_full").await);
    node.stop().await;
    // The disk has free space again.
    let node = on_disk(dir.path()).await;
    let mut http = crate::node::http(&node).await;
    let made = http.converse(&people[0].token, &[people[1].user]).await;
    made.unwrap();
    node.stop().await;
}

#[tokio::test]
#[cfg(unix)]
async fn other_users_of_the_machine_cannot_look_into_the_data() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    on_disk(&data).await.stop().await;
    let mode = std::fs::metadata(&data).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
