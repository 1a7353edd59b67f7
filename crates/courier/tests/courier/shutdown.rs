//! A node that shuts down.

use crate::bad_frames::{closed, raw};
use crate::node::{host, http, on_disk, users};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

// Guarantee: courier-19.
#[tokio::test]
async fn a_node_that_ends_answers_what_was_asked_and_closes_sockets_with_1001() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    let people = users(&mut first, 2).await;
    let (anne, mary) = (&people[0], &people[1]);
    let room = first.converse(&anne.token, &[mary.user]).await.unwrap();
    let socket = raw(&host(&node), &mary.token).await;
    let mut post = TcpStream::connect(host(&node)).await.unwrap();
    let head = format!(
        "POST /conversations/{room}/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{{\"text\"",
        anne.token
    );
    post.write_all(head.as_bytes()).await.unwrap();
    // When a later request on another connection was answered, the head of this request was read.
    first.metrics().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let ending = tokio::spawn(node.stop());
    assert_eq!(closed(socket).await, Some(1001));
    post.write_all(b":\"ahoy\"}").await.unwrap();
    let mut answer = Vec::new();
    post.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    ending.await.unwrap();
    let node = on_disk(dir.path()).await;
    let mut http = http(&node).await;
    let page = http.history(&mary.token, room, 0).await.unwrap();
    assert_eq!(page[0].text, "ahoy");
    node.stop().await;
}
