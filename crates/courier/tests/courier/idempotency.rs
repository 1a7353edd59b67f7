//! A POST that is repeated has one effect.

use crate::node::{http, in_memory, on_disk, quiet, text, users};

// Guarantee: courier-4.
#[tokio::test]
async fn a_repeated_post_stores_one_message_even_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    let people = users(&mut first, 2).await;
    let token = &people[0].token;
    let room = first.converse(token, &[people[1].user]).await.unwrap();
    let stored = first
        .post(token, room, "once", Some("a key"))
        .await
        .unwrap();
    assert!(!stored.repeated);
    let again = first
        .post(token, room, "once", Some("a key"))
        .await
        .unwrap();
    assert_eq!((again.number, again.repeated), (stored.number, true));
    node.stop().await;
    let node = on_disk(dir.path()).await;
    let mut second = http(&node).await;
    let again = second
        .post(token, room, "once", Some("a key"))
        .await
        .unwrap();
    assert_eq!((again.number, again.repeated), (stored.number, true));
    second.post(token, room, "twice", None).await.unwrap();
    let mut socket = quiet(&node, &people[1], "").await;
    assert_eq!(text(&mut socket).await, (1, "once".to_owned()));
    assert_eq!(text(&mut socket).await, (2, "twice".to_owned()));
    node.stop().await;
}

#[tokio::test]
async fn a_key_belongs_to_one_message_of_one_user() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let token = &people[0].token;
    let room = http.converse(token, &[people[1].user]).await.unwrap();
    let other = http.converse(token, &[people[1].user]).await.unwrap();
    http.post(token, room, "one", Some("k")).await.unwrap();
    for (place, text) in [(room, "two"), (other, "one")] {
        let reused = http.post(token, place, text, Some("k")).await.unwrap_err();
        assert_eq!(reused.status(), Some(422));
        assert!(reused.to_string().contains("key_reused"), "{reused}");
    }
    let theirs = http
        .post(&people[1].token, room, "one", Some("k"))
        .await
        .unwrap();
    assert!(!theirs.repeated);
    for key in ["", &"k".repeat(256)] {
        let refused = http
            .post(token, room, "three", Some(key))
            .await
            .unwrap_err();
        assert_eq!(refused.status(), Some(422), "{key}");
    }
    node.stop().await;
}

// Guarantee: courier-4.
#[tokio::test]
async fn the_same_post_many_times_at_once_stores_one_message() {
    let node = in_memory().await;
    let mut first = http(&node).await;
    let people = users(&mut first, 2).await;
    let room = first
        .converse(&people[0].token, &[people[1].user])
        .await
        .unwrap();
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let mut http = http(&node).await;
        let token = people[0].token.clone();
        tasks.push(tokio::spawn(async move {
            http.post(&token, room, "once", Some("k")).await.unwrap()
        }));
    }
    let mut new = 0;
    for task in tasks {
        let stored = task.await.unwrap();
        assert_eq!(stored.number, 1);
        new += u32::from(!stored.repeated);
    }
    assert_eq!(new, 1);
    node.stop().await;
}
