//! What a client is built on: finding users, history from its end, what was not read yet, the page.

use crate::node::{PASSWORD, http, in_memory, quiet, said, users};
use corsair_courier_load::client::{Http, Login};
use hyper::{Method, StatusCode};
use serde_json::Value;

async fn get(http: &mut Http, who: &Login, path: &str) -> (StatusCode, Value) {
    let bearer = format!("Bearer {}", who.token);
    let headers = [("authorization", bearer.as_str())];
    let (status, body) = http.send(Method::GET, path, &headers, "").await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

fn names(page: &Value) -> Vec<&str> {
    let users = page["users"].as_array().unwrap();
    users
        .iter()
        .map(|user| user["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn users_are_found_by_the_beginning_of_their_names_and_by_number() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let mut all = Vec::new();
    for name in ["anne", "ann", "Zoë", "annie", "bob"] {
        all.push(http.create_user(name, PASSWORD).await.unwrap());
    }
    let (_, page) = get(&mut http, &all[0], "/users?prefix=ann&limit=2").await;
    assert_eq!(
        (names(&page), &page["more"]),
        (vec!["ann", "anne"], &true.into())
    );
    let (_, page) = get(&mut http, &all[0], "/users?prefix=ann&after=anne").await;
    assert_eq!(
        (names(&page), &page["more"]),
        (vec!["annie"], &false.into())
    );
    // However it is written.
    let (_, page) = get(&mut http, &all[0], "/users?prefix=Zoe%CC%88").await;
    assert_eq!(names(&page), ["Zoë"]);
    let (_, page) = get(&mut http, &all[0], "/users").await;
    assert_eq!(names(&page).len(), 5);
    let (_, page) = get(&mut http, &all[0], "/users?ids=5,77,1").await;
    assert_eq!(names(&page), ["bob", "anne"]);
    let many = ["1"; 101].join(",");
    for wrong in [
        "/users?ids=",
        "/users?ids=1,x",
        "/users?ids=1&prefix=a",
        &format!("/users?ids={many}"),
    ] {
        let (status, said) = get(&mut http, &all[0], wrong).await;
        assert_eq!(status, 422, "{wrong}: {said}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_history_is_read_from_its_end() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let room = http
        .converse(&people[0].token, &[people[1].user])
        .await
        .unwrap();
    for turn in 1..=5 {
        let text = turn.to_string();
        http.post(&people[0].token, room, &text, None)
            .await
            .unwrap();
    }
    let mut before = u64::MAX;
    for (wanted, more) in [(vec![5, 4], true), (vec![3, 2], true), (vec![1], false)] {
        let path = format!("/conversations/{room}/messages?limit=2&before={before}");
        let (_, page) = get(&mut http, &people[1], &path).await;
        let messages = page["messages"].as_array().unwrap();
        let found: Vec<_> = messages
            .iter()
            .map(|one| one["number"].as_u64().unwrap())
            .collect();
        assert_eq!((&found, &page["more"]), (&wanted, &more.into()));
        before = *found.last().unwrap();
    }
    let path = format!("/conversations/{room}/messages?after=1&before=3");
    assert_eq!(get(&mut http, &people[1], &path).await.0, 422);
    node.stop().await;
}

#[tokio::test]
async fn what_was_not_acknowledged_is_counted_by_conversation() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let mary = &people[2];
    let first = http.converse(&people[0].token, &[mary.user]).await.unwrap();
    let second = http.converse(&people[1].token, &[mary.user]).await.unwrap();
    for (who, room, count) in [(0, first, 2), (1, second, 3), (0, first, 4)] {
        for _ in 0..count {
            http.post(&people[who].token, room, "ahoy", None)
                .await
                .unwrap();
        }
    }
    let (_, page) = get(&mut http, mary, "/conversations/unread").await;
    let wanted = serde_json::json!([
        { "conversation": first, "count": 6 },
        { "conversation": second, "count": 3 },
    ]);
    assert_eq!(page["conversations"], wanted);
    let mut socket = quiet(&node, mary, "").await;
    for _ in 0..4 {
        said(&mut socket).await;
    }
    socket.acknowledge(4).await.unwrap();
    let wanted = serde_json::json!([
        { "conversation": first, "count": 4 },
        { "conversation": second, "count": 1 },
    ]);
    loop {
        let (_, page) = get(&mut http, mary, "/conversations/unread").await;
        if page["conversations"] == wanted {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn a_node_tells_that_it_lives_and_that_it_is_ready() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    for path in ["/healthz", "/readyz", "/"] {
        let (status, _) = http.send(Method::GET, path, &[], "").await.unwrap();
        assert_eq!(status, 200, "{path}");
    }
    node.stop().await;
}
