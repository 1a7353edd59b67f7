//! A client that does not read stalls no other, and gets everything in the end.

use crate::node::{host, http, in_memory, message, quiet, users};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

// Guarantee: courier-5.
#[tokio::test]
async fn a_slow_reader_stalls_nobody_and_gets_everything_in_the_end() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let to = [people[1].user, people[2].user];
    let room = http.converse(&people[0].token, &to).await.unwrap();
    // This socket is not read until all messages are posted.
    let mut slow = quiet(&node, &people[1], "").await;
    let mut fast = quiet(&node, &people[2], "").await;
    // Far more than the buffers of the system and the node.
    let count = 1500;
    let text = "x".repeat(8000);
    for sequence in 1..=count {
        http.post(&people[0].token, room, &text, None)
            .await
            .unwrap();
        assert_eq!(message(&mut fast).await.0, sequence);
    }
    let metrics = http.metrics().await.unwrap();
    let overflows = metrics
        .lines()
        .find_map(|line| line.strip_prefix("courier_overflows_total "))
        .unwrap();
    assert_ne!(overflows, "0");
    for sequence in 1..=count {
        let (found, message) = message(&mut slow).await;
        assert_eq!((found, message.text.len()), (sequence, 8000));
    }
    node.stop().await;
}

// Guarantee: courier-5.
#[tokio::test]
async fn two_sockets_of_one_user_get_everything_however_slow_one_is() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let room = http
        .converse(&people[0].token, &[people[1].user])
        .await
        .unwrap();
    let mut slow = quiet(&node, &people[1], "").await;
    let mut fast = quiet(&node, &people[1], "").await;
    let text = "x".repeat(8000);
    for sequence in 1..=1500 {
        http.post(&people[0].token, room, &text, None)
            .await
            .unwrap();
        assert_eq!(message(&mut fast).await.0, sequence);
    }
    for sequence in 1..=1500 {
        assert_eq!(message(&mut slow).await.0, sequence);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_request_that_never_ends_keeps_nobody_from_being_served() {
    let node = in_memory().await;
    let mut stalled = Vec::new();
    for _ in 0..100 {
        let mut stream = tokio::net::TcpStream::connect(host(&node)).await.unwrap();
        stream
            .write_all(b"POST /users HTTP/1.1\r\nhost: x\r\n")
            .await
            .unwrap();
        stalled.push(stream);
    }
    let mut http = http(&node).await;
    users(&mut http, 1).await;
    let mut byte = [0];
    assert!(
        tokio::time::timeout(
            std::time::Duration::from_millis(10),
            stalled[0].read(&mut byte)
        )
        .await
        .is_err()
    );
    drop(stalled);
    node.stop().await;
}
