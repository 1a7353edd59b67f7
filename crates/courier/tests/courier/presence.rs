//! Tests of the online status of users.

use crate::node::{host, http, in_memory, limits, quiet, said, users, with};
use corsair_courier::Limits;
use corsair_courier_load::client::{ServerMessage, Socket};
use hyper::Method;
use std::time::Duration;

#[tokio::test]
async fn who_comes_and_goes_is_announced_to_those_who_are_there() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let mut first = Socket::open(&host(&node), &people[0].token, "")
        .await
        .unwrap();
    let ServerMessage::Online { total, users } = said(&mut first).await else {
        panic!("first comes who is online");
    };
    assert_eq!((total, users[0].id), (1, people[0].user));
    let second = quiet(&node, &people[1], "").await;
    // The watcher's own connection may be reported first.
    let came = loop {
        match said(&mut first).await {
            ServerMessage::Connect { users }
                if users.iter().any(|face| face.id == people[1].user) =>
            {
                break users;
            }
            ServerMessage::Connect { .. } => {}
            other => panic!("{other:?} instead of somebody who comes"),
        }
    };
    assert!(came.iter().any(|face| &*face.name == "user1"));
    let bearer = format!("Bearer {}", people[0].token);
    let headers = [("authorization", bearer.as_str())];
    let (_, body) = http
        .send(Method::GET, "/users/online", &headers, "")
        .await
        .unwrap();
    let online: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(online["total"], 2);
    second.close().await.unwrap();
    match said(&mut first).await {
        ServerMessage::Disconnect { users } => assert_eq!(users[0].id, people[1].user),
        other => panic!("{other:?} instead of somebody who goes"),
    }
    node.stop().await;
}

#[tokio::test]
async fn a_user_is_online_until_the_last_socket_ends() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let mut watcher = Socket::open(&host(&node), &people[0].token, "")
        .await
        .unwrap();
    let one = quiet(&node, &people[1], "").await;
    let other = quiet(&node, &people[1], "").await;
    one.close().await.unwrap();
    let silence = tokio::time::timeout(Duration::from_millis(500), async {
        loop {
            if let ServerMessage::Disconnect { users } = said(&mut watcher).await {
                return users;
            }
        }
    });
    assert!(silence.await.is_err());
    other.close().await.unwrap();
    assert!(matches!(
        said(&mut watcher).await,
        ServerMessage::Disconnect { .. }
    ));
    node.stop().await;
}

// Guarantee: courier-7.
#[tokio::test]
async fn a_peer_that_says_nothing_any_more_is_noticed() {
    let node = with(Limits {
        heartbeat: Duration::from_millis(100),
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let mut watcher = Socket::open(&host(&node), &people[0].token, "")
        .await
        .unwrap();
    // A client that is never polled does not answer pings.
    let dead = quiet(&node, &people[1], "").await;
    loop {
        // A client that reads answers pings.
        if let ServerMessage::Disconnect { users } = said(&mut watcher).await {
            assert_eq!(users[0].id, people[1].user);
            break;
        }
    }
    let metrics = http.metrics().await.unwrap();
    assert!(metrics.contains("courier_dead_peers_total 1"), "{metrics}");
    drop(dead);
    node.stop().await;
}
