//! Tests that posted messages reach their recipients once and in order, also after faults.

use crate::node::{http, in_memory, message, on_disk, quiet, text, users};
use corsair_courier_load::client::Login;
use hyper::Method;

// Guarantee: courier-2.
#[tokio::test]
async fn a_message_reaches_all_recipients_and_the_sockets_of_its_sender() {
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
    for socket in &mut sockets {
        let (sequence, message) = message(socket).await;
        assert_eq!((sequence, message.number), (1, 1));
        assert_eq!(
            (message.sender, message.text.as_str()),
            (people[0].user, "ahoy")
        );
    }
    node.stop().await;
}

// Guarantee: courier-2.
#[tokio::test]
async fn what_one_posts_comes_to_ones_other_devices_and_is_not_unread() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let anne = &people[0];
    let room = http.converse(&anne.token, &[people[1].user]).await.unwrap();
    let phone = http.log_in("user0", crate::node::PASSWORD).await.unwrap();
    for turn in ["one", "two", "three"] {
        http.post(&anne.token, room, turn, None).await.unwrap();
        http.post(&people[1].token, room, "so?", None)
            .await
            .unwrap();
    }
    // The phone was not connected before, and receives everything in the order of the conversation.
    let mut socket = quiet(&node, &phone, "").await;
    for (place, turn) in ["one", "so?", "two", "so?", "three", "so?"]
        .iter()
        .enumerate()
    {
        let (sequence, found) = message(&mut socket).await;
        assert_eq!(
            (sequence, found.number),
            (place as u64 + 1, place as u64 + 1)
        );
        assert_eq!(&found.text, turn);
    }
    let unread = |who: &Login, count: u64| {
        let bearer = format!("Bearer {}", who.token);
        let wanted = format!("{{\"conversation\":1,\"count\":{count}}}");
        (bearer, wanted)
    };
    for (after, count) in [(0, 3), (1, 3), (2, 2), (5, 1)] {
        socket.acknowledge(after).await.unwrap();
        let (bearer, wanted) = unread(anne, count);
        let headers = [("authorization", bearer.as_str())];
        loop {
            let path = "/conversations/unread";
            let (_, page) = http.send(Method::GET, path, &headers, "").await.unwrap();
            let page = String::from_utf8_lossy(&page).into_owned();
            if page.contains(&wanted) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
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
