//! What is posted reaches its recipients, once, in order, and after whatever happened in between.

use crate::node::{http, in_memory, message, on_disk, quiet, text, users};

#[tokio::test]
async fn a_message_reaches_all_recipients_and_not_its_sender() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let mut sockets = Vec::new();
    for who in &people {
        sockets.push(quiet(&node, who, "").await);
    }
    let all = [people[1].user, people[2].user];
    let conversation = http.converse(&people[0].token, &all).await.unwrap();
    let stored = http
        .post(&people[0].token, conversation, "ahoy", None)
        .await
        .unwrap();
    assert_eq!((stored.number, stored.repeated), (1, false));
    for socket in &mut sockets[1..] {
        let (sequence, message) = message(socket).await;
        assert_eq!((sequence, message.number), (1, 1));
        assert_eq!(
            (message.sender, message.text.as_str()),
            (people[0].user, "ahoy")
        );
    }
    // The sender gets the answer, and nothing of its own message before it.
    http.post(&people[1].token, conversation, "ahoy yourself", None)
        .await
        .unwrap();
    assert_eq!(text(&mut sockets[0]).await, (1, "ahoy yourself".to_owned()));
    node.stop().await;
}

#[tokio::test]
async fn what_was_posted_meanwhile_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    let people = users(&mut first, 2).await;
    let to = [people[1].user];
    let conversation = first.converse(&people[0].token, &to).await.unwrap();
    for number in 1..=100 {
        let text = number.to_string();
        first
            .post(&people[0].token, conversation, &text, None)
            .await
            .unwrap();
    }
    node.stop().await;
    let node = on_disk(dir.path()).await;
    let mut socket = quiet(&node, &people[1], "").await;
    for number in 1..=100 {
        assert_eq!(text(&mut socket).await, (number, number.to_string()));
    }
    let mut http = http(&node).await;
    let page = http
        .history(&people[1].token, conversation, 97)
        .await
        .unwrap();
    let numbers: Vec<_> = page.iter().map(|message| message.number).collect();
    assert_eq!(numbers, [98, 99, 100]);
    node.stop().await;
}
