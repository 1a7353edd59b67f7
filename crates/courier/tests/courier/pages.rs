//! Lists that are read page by page.

use crate::node::{http, in_memory, quiet, users};
use corsair_courier_load::client::Http;
use hyper::Method;
use serde_json::{Value, json};

/// Reads a list with a token.
async fn list(http: &mut Http, token: &str, path: &str) -> Value {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let answer = http.send(Method::GET, path, &headers, "").await;
    let (status, body) = answer.unwrap();
    assert_eq!(
        status.as_u16(),
        200,
        "{path}: {}",
        String::from_utf8_lossy(&body)
    );
    serde_json::from_slice(&body).unwrap()
}

/// Returns one member of each item in a list.
fn each(page: &Value, list: &str, member: &str) -> Vec<u64> {
    let items = page[list].as_array().unwrap();
    items
        .iter()
        .map(|item| item[member].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn conversations_are_listed_for_their_members_only() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let token = &people[0].token;
    // A recipient that is listed twice, or the creator in the list, changes nothing.
    let twice = [people[1].user, people[0].user, people[1].user];
    for _ in 0..5 {
        http.converse(token, &twice).await.unwrap();
    }
    let page = list(&mut http, token, "/conversations?limit=2").await;
    assert_eq!(each(&page, "conversations", "id"), [1, 2]);
    assert_eq!(page["more"], true);
    let first = &page["conversations"][0];
    assert_eq!(first["creator"], json!(people[0].user));
    assert_eq!(first["members"], json!([people[0].user, people[1].user]));
    let page = list(&mut http, &people[1].token, "/conversations?after=2").await;
    assert_eq!(each(&page, "conversations", "id"), [3, 4, 5]);
    assert_eq!(page["more"], false);
    let page = list(&mut http, &people[2].token, "/conversations").await;
    assert_eq!(page["conversations"], json!([]));
    node.stop().await;
}

#[tokio::test]
async fn the_history_of_a_conversation_goes_on_after_a_number() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let token = &people[0].token;
    let room = http.converse(token, &[people[1].user]).await.unwrap();
    for number in 1..=7 {
        http.post(token, room, &format!("text {number}"), None)
            .await
            .unwrap();
    }
    let mut numbers = Vec::new();
    let mut more = true;
    while more {
        let after = numbers.last().copied().unwrap_or(0);
        let path = format!("/conversations/{room}/messages?after={after}&limit=3");
        let page = list(&mut http, &people[1].token, &path).await;
        let found = each(&page, "messages", "number");
        assert!((1..=3).contains(&found.len()), "{page}");
        numbers.extend(found);
        more = page["more"].as_bool().unwrap();
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    node.stop().await;
}

#[tokio::test]
async fn those_online_are_listed_by_number() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 4).await;
    let mut sockets = Vec::new();
    for who in &people[1..] {
        sockets.push(quiet(&node, who, "").await);
    }
    let token = &people[0].token;
    let page = loop {
        // Users are in the list when their sockets have reached their actors.
        let page = list(&mut http, token, "/users/online?limit=2").await;
        if page["total"] == 3 {
            break page;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(each(&page, "users", "id"), [2, 3]);
    assert_eq!(page["more"], true);
    let page = list(&mut http, token, "/users/online?after=3").await;
    assert_eq!(each(&page, "users", "id"), [4]);
    assert_eq!(page["more"], false);
    node.stop().await;
}
