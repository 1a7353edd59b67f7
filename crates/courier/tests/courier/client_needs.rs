//! Functions that a client needs: finding users, history from its end, unread counts, the page.

use crate::node::{PASSWORD, host, http, in_memory, limits, on_disk, quiet, said, start, users};
use corsair_courier::{Options, Registration};
use corsair_courier_load::client::{Http, Login, ServerMessage};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

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
    // The prefix matches in any normal form.
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
    let wanted = json!([
        { "conversation": first, "count": 6 },
        { "conversation": second, "count": 3 },
    ]);
    assert_eq!(page["conversations"], wanted);
    let mut socket = quiet(&node, mary, "").await;
    for _ in 0..4 {
        said(&mut socket).await;
    }
    socket.acknowledge(4).await.unwrap();
    let wanted = json!([
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

/// Sends JSON with additional headers.
async fn send(
    http: &mut Http,
    who: &Login,
    method: Method,
    path: &str,
    key: Option<&str>,
    body: Value,
) -> (u16, Value) {
    let bearer = format!("Bearer {}", who.token);
    let mut headers = vec![
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    let sent = http.send(method, path, &headers, body.to_string()).await;
    let (status, answer) = sent.unwrap();
    (
        status.as_u16(),
        serde_json::from_slice(&answer).unwrap_or_default(),
    )
}

#[tokio::test]
async fn a_conversation_is_begun_once_under_a_key_and_once_by_a_pair() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let [anne, mary, bob] = [&people[0], &people[1], &people[2]];
    let path = "/conversations";
    let titled = json!({ "recipients": [mary.user, bob.user], "title": "Ship's papers" });
    let first = send(
        &mut http,
        anne,
        Method::POST,
        path,
        Some("k"),
        titled.clone(),
    )
    .await;
    assert_eq!(first.0, 201, "{}", first.1);
    let again = send(
        &mut http,
        anne,
        Method::POST,
        path,
        Some("k"),
        titled.clone(),
    )
    .await;
    assert_eq!(again, (200, first.1.clone()));
    let other = json!({ "recipients": [mary.user] });
    let reused = send(&mut http, anne, Method::POST, path, Some("k"), other).await;
    assert_eq!(reused.0, 422, "{}", reused.1);
    // Both users find the same conversation.
    let to = |who: &Login| json!({ "recipients": [who.user], "pair": true });
    let made = send(&mut http, anne, Method::POST, path, None, to(mary)).await;
    assert_eq!(made.0, 201);
    let found = send(&mut http, mary, Method::POST, path, None, to(anne)).await;
    assert_eq!(found, (200, made.1.clone()));
    assert_eq!(
        send(&mut http, anne, Method::POST, path, None, to(bob))
            .await
            .0,
        201
    );
    let three = json!({ "recipients": [mary.user, bob.user], "pair": true });
    assert_eq!(
        send(&mut http, anne, Method::POST, path, None, three)
            .await
            .0,
        422
    );
    let odd = json!({ "recipients": [mary.user], "title": "a\nb" });
    assert_eq!(
        send(&mut http, anne, Method::POST, path, None, odd).await.0,
        422
    );
    let (_, page) = get(&mut http, mary, "/conversations").await;
    let titles: Vec<_> = page["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["title"])
        .collect();
    assert_eq!(titles, [&json!("Ship's papers"), &Value::Null]);
    node.stop().await;
}

#[tokio::test]
async fn an_account_that_is_deleted_is_gone_and_what_it_said_stays() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let [anne, mary] = [&people[0], &people[1]];
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    http.post(&anne.token, room, "ahoy", None).await.unwrap();
    let mut socket = quiet(&node, anne, "").await;
    let path = "/users/me";
    let wrong = json!({ "password": "wrong horse" });
    assert_eq!(
        send(&mut http, anne, Method::DELETE, path, None, wrong)
            .await
            .0,
        403
    );
    let right = json!({ "password": PASSWORD });
    assert_eq!(
        send(&mut http, anne, Method::DELETE, path, None, right.clone())
            .await
            .0,
        204
    );
    // Anne's own messages come first.
    while let Some(said) = socket.next().await.unwrap() {
        assert!(matches!(said, ServerMessage::Message { sequence: 1, .. }));
    }
    assert_eq!(
        send(&mut http, anne, Method::DELETE, path, None, right)
            .await
            .0,
        401
    );
    let refused = http.log_in("user0", PASSWORD).await.unwrap_err();
    assert_eq!(refused.status(), Some(401));
    let (_, page) = get(&mut http, mary, "/users?ids=1,2").await;
    assert_eq!(names(&page), ["user1"]);
    assert_eq!(http.history(&mary.token, room, 0).await.unwrap().len(), 1);
    http.post(&mary.token, room, "are you there?", None)
        .await
        .unwrap();
    // The name can be taken again, by a different user.
    let new = http.create_user("user0", PASSWORD).await.unwrap();
    assert_ne!(new.user, anne.user);
    let (_, page) = get(&mut http, &new, "/conversations").await;
    assert_eq!(page["conversations"], json!([]));
    node.stop().await;
}

async fn register(registration: Registration, header: Option<&str>) -> u16 {
    let node = start(Options {
        registration,
        limits: limits(),
        ..Options::default()
    })
    .await;
    let mut http = http(&node).await;
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(header.map(|value| ("registration-token", value)));
    let body = json!({ "name": "anne", "password": PASSWORD }).to_string();
    let (status, _) = http
        .send(Method::POST, "/users", &headers, body)
        .await
        .unwrap();
    node.stop().await;
    status.as_u16()
}

#[tokio::test]
async fn accounts_are_made_by_those_who_may() {
    let token = || Registration::Token("the secret".to_owned());
    assert_eq!(register(Registration::Open, None).await, 201);
    assert_eq!(register(Registration::Closed, None).await, 403);
    assert_eq!(register(token(), None).await, 403);
    assert_eq!(register(token(), Some("the secre")).await, 403);
    assert_eq!(register(token(), Some("the secret")).await, 201);
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_answers_and_others_not() {
    let node = start(Options {
        origins: vec!["https://app.example".to_owned()],
        limits: limits(),
        ..Options::default()
    })
    .await;
    for (origin, allowed) in [
        ("https://app.example", true),
        ("https://evil.example", false),
    ] {
        for request in ["OPTIONS /users", "GET /ping"] {
            let head = raw(&node, request, origin).await;
            let told = head.contains("access-control-allow-origin: https://app.example");
            assert_eq!(told, allowed, "{request} from {origin}: {head}");
            let asked = request.starts_with("OPTIONS");
            assert_eq!(
                head.contains("access-control-allow-headers: authorization"),
                allowed && asked
            );
        }
    }
    node.stop().await;
}

/// Sends a handwritten request and returns the answer.
async fn raw(node: &corsair_courier::Serving, request: &str, origin: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(node.address())
        .await
        .unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: {origin}\r\naccess-control-request-method: POST\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_client_that_ends_its_half_of_the_connection_gets_the_answer_to_its_post() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let room = http.converse(&people[0].token, &[people[1].user]).await;
    let mut stream = tokio::net::TcpStream::connect(host(&node)).await.unwrap();
    let request = format!(
        "POST /conversations/{}/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{{\"text\":\"ahoy\"}}",
        room.unwrap(),
        people[0].token
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    // The node closes the connection after the answer, because no other request can come.
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    node.stop().await;
}
