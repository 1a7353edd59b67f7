//! Tests of the retention of messages, and of copies of the data.

use crate::node::{http, limits, on_disk, quiet, start, text, users};
use corsair_courier::{BackupError, Node, Options, backup, compact, restore};
use std::time::Duration;

// Guarantee: courier-16.
#[tokio::test]
async fn messages_that_are_too_old_are_gone_from_histories_and_queues() {
    let node = start(Options {
        keep: Some(Duration::from_secs(1)),
        limits: limits(),
        ..Options::default()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let (anne, mary) = (&people[0], &people[1]);
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    for turn in 1..=600 {
        http.post(&anne.token, room, &turn.to_string(), None)
            .await
            .unwrap();
    }
    while !http.history(&mary.token, room, 0).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let stored = http.post(&anne.token, room, "next", None).await.unwrap();
    assert_eq!(stored.number, 601);
    let mut socket = quiet(&node, mary, "").await;
    assert_eq!(text(&mut socket).await, (601, "next".to_owned()));
    assert!(
        http.metrics()
            .await
            .unwrap()
            .contains("courier_expired_total 600")
    );
    node.stop().await;
}

// Guarantee: courier-17.
#[tokio::test]
async fn a_backup_of_a_node_that_runs_or_not_is_restored_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (data, to) = (dir.path().join("data"), dir.path().join("backup"));
    let node = on_disk(&data).await;
    let mut first = http(&node).await;
    let people = users(&mut first, 2).await;
    let (anne, mary) = (&people[0], &people[1]);
    let room = first.converse(&anne.token, &[mary.user]).await.unwrap();
    first
        .post(&anne.token, room, "one", Some("k"))
        .await
        .unwrap();
    // The running node, which has locked the files, makes the backup.
    backup(&data, &to).await.unwrap();
    let (before, after) = compact(&data).await.unwrap();
    assert!(after <= before, "{before} {after}");
    let twice = backup(&data, &to).await.unwrap_err();
    assert!(
        matches!(twice, BackupError::Exists(_) | BackupError::Refused(_)),
        "{twice}"
    );
    assert!(twice.to_string().contains("already exists"), "{twice}");
    first.post(&anne.token, room, "two", None).await.unwrap();
    node.stop().await;
    let later = dir.path().join("later");
    backup(&data, &later).await.unwrap();
    compact(&data).await.unwrap();
    for (from, texts) in [(&to, vec!["one"]), (&later, vec!["one", "two"])] {
        let place = dir.path().join(format!("{}", texts.len()));
        restore(from, &place).await.unwrap();
        let again = restore(from, &place).await.unwrap_err();
        assert!(again.to_string().contains("already exists"), "{again}");
        let node = on_disk(&place).await;
        let mut http = http(&node).await;
        let page = http.history(&mary.token, room, 0).await.unwrap();
        let found: Vec<_> = page.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(found, texts);
        let again = http
            .post(&anne.token, room, "one", Some("k"))
            .await
            .unwrap();
        assert_eq!((again.number, again.repeated), (1, true));
        let next = http.post(&anne.token, room, "next", None).await.unwrap();
        assert_eq!(next.number, texts.len() as u64 + 1);
        node.stop().await;
        // Messages stored after the restore are in the log of the restored node.
        let node = on_disk(&place).await;
        let mut http = crate::node::http(&node).await;
        assert_eq!(
            http.history(&mary.token, room, 0).await.unwrap().len(),
            texts.len() + 1
        );
        node.stop().await;
    }
    let nothing = backup(&dir.path().join("none"), &dir.path().join("x")).await;
    assert!(matches!(nothing, Err(BackupError::NoData(_))));
    std::fs::write(dir.path().join("nonsense"), "nonsense").unwrap();
    let none = dir.path().join("none");
    assert!(restore(&dir.path().join("nonsense"), &none).await.is_err());
    assert!(!none.join("index.redb").exists() && !none.join("log").exists());
}

// Guarantee: courier-17.
#[tokio::test]
async fn a_node_that_keeps_less_than_before_gives_the_room_back_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("index.redb");
    let length = || std::fs::metadata(&file).unwrap().len();
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    let people = users(&mut first, 2).await;
    let (anne, mary) = (&people[0], &people[1]);
    let room = first.converse(&anne.token, &[mary.user]).await.unwrap();
    let long = "x".repeat(16 << 10);
    for _ in 0..1000 {
        first.post(&anne.token, room, &long, None).await.unwrap();
    }
    node.stop().await;
    let before = length();
    assert!(before > 16 << 20, "{before}");
    let node = start(Options {
        data: Some(dir.path().to_owned()),
        keep_bytes: Some(1 << 20),
        waste: Some(1 << 20),
        limits: limits(),
        ..Options::default()
    })
    .await;
    let mut http = http(&node).await;
    while !http
        .metrics()
        .await
        .unwrap()
        .contains("courier_compactions_total 1")
    {
        http.post(&anne.token, room, "during compaction", None)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(length() < before / 2, "{} {before}", length());
    // The first 1,024 messages are a chunk, which is removed as a whole. Further ones are kept.
    let mut last = 0;
    while last < 1_100 {
        let posted = http.post(&anne.token, room, "last", None).await.unwrap();
        last = posted.number;
    }
    let mut after = last - 50;
    let kept = http.history(&mary.token, room, after).await.unwrap();
    for message in kept {
        after += 1;
        assert_eq!(message.number, after);
    }
    assert_eq!(after, last);
    node.stop().await;
}

#[tokio::test]
async fn what_is_in_memory_is_backed_up_too_and_not_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(Options::default()).await.unwrap();
    assert!(
        node.compact()
            .await
            .unwrap_err()
            .to_string()
            .contains("memory")
    );
    node.backup(&dir.path().join("backup")).await.unwrap();
    node.close().await;
}
