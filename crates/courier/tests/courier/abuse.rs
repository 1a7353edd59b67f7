//! Clients that exceed their share: their use of the node is bounded, and other clients are not affected.

use crate::node::{PASSWORD, counted, host, http, in_memory, limits, quiet, said, users, with};
use corsair_courier::{Limits, Serving};
use corsair_courier_load::client::{Http, Login, ServerMessage, Socket};
use hyper::Method;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message as Frame;

/// A character that takes six times as many bytes in JSON.
const CONTROL: &str = "\u{1}";

/// Creates a user with a conversation whose first page has the maximum length. Returns the path of that page.
async fn long_history(node: &Serving) -> (Vec<Login>, String) {
    let mut http = http(node).await;
    let people = users(&mut http, 2).await;
    let room = http.converse(&people[0].token, &[people[1].user]).await;
    let room = room.unwrap();
    for _ in 0..8 {
        let text = CONTROL.repeat(16 << 10);
        let posted = http.post(&people[0].token, room, &text, None).await;
        posted.unwrap();
    }
    (people, format!("/conversations/{room}/messages"))
}

/// Sends a request many times and reads no answer.
async fn ask(node: &Serving, path: &str, token: &str, times: usize) -> TcpStream {
    let mut stream = TcpStream::connect(host(node)).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    let requests = request.repeat(times);
    stream.write_all(requests.as_bytes()).await.unwrap();
    stream
}

// Guarantee: courier-8.
#[tokio::test]
async fn a_page_has_a_quarter_of_a_megabyte_whatever_the_texts_are() {
    let node = in_memory().await;
    let (people, path) = long_history(&node).await;
    let bearer = format!("Bearer {}", people[1].token);
    let headers = [("authorization", bearer.as_str())];
    let mut http = http(&node).await;
    let (mut after, mut found) = (0, 0);
    loop {
        let path = format!("{path}?after={after}");
        let (status, page) = http.send(Method::GET, &path, &headers, "").await.unwrap();
        assert_eq!(status.as_u16(), 200);
        assert!(page.len() <= 256 << 10, "{}", page.len());
        let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
        let messages = page["messages"].as_array().unwrap();
        found += messages.len();
        after = messages.last().unwrap()["number"].as_u64().unwrap();
        if page["more"] == false {
            break;
        }
    }
    assert_eq!(found, 8);
    node.stop().await;
}

// Guarantee: courier-8.
#[tokio::test]
async fn answers_that_are_not_read_are_bounded_and_end_their_connections() {
    let node = with(Limits {
        write: Duration::from_millis(300),
        unread: 512 << 10,
        ..limits()
    })
    .await;
    let (people, path) = long_history(&node).await;
    // The answers exceed the system's buffers by far.
    let times = 120;
    let mut stalled = Vec::new();
    for _ in 0..6 {
        stalled.push(ask(&node, &path, &people[1].token, times).await);
    }
    let mut http = http(&node).await;
    while !counted(&mut http, "unread").await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Another user is not affected.
    let bearer = format!("Bearer {}", people[0].token);
    let headers = [("authorization", bearer.as_str())];
    let (status, _) = http.send(Method::GET, &path, &headers, "").await.unwrap();
    assert_eq!(status.as_u16(), 200);
    // A connection that was blocked for too long has ended.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut ended = 0;
    for mut stream in stalled {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest));
        let _ = read.await.expect("the connection has ended");
        ended += usize::from(rest.len() < times * (200 << 10));
    }
    assert_eq!(ended, 6);
    node.stop().await;
}

// Guarantee: courier-8.
#[tokio::test]
async fn sockets_that_are_not_read_hold_little_and_get_everything_in_the_end() {
    let node = with(Limits {
        outbox: 32 << 10,
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let room = http.converse(&people[0].token, &[people[1].user]).await;
    let room = room.unwrap();
    let mut slow = quiet(&node, &people[1], "").await;
    for _ in 0..400 {
        let text = CONTROL.repeat(4 << 10);
        http.post(&people[0].token, room, &text, None)
            .await
            .unwrap();
    }
    let metrics = http.metrics().await.unwrap();
    let overflows = metrics
        .lines()
        .find_map(|line| line.strip_prefix("courier_overflows_total "))
        .unwrap();
    assert_ne!(overflows, "0");
    for expected in 1..=400 {
        match said(&mut slow).await {
            ServerMessage::Message { sequence, .. } => assert_eq!(sequence, expected),
            other => panic!("{other:?}"),
        }
    }
    node.stop().await;
}

// Guarantee: courier-9.
#[tokio::test]
async fn however_many_leave_at_once_those_who_watch_keep_their_sockets() {
    let node = with(Limits {
        // The system's buffers of sockets are then small, too.
        text: 1000,
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let mut watcher = Socket::open(&host(&node), &people[0].token, "")
        .await
        .unwrap();
    let mut sockets = Vec::new();
    for number in 0..300 {
        let name = format!("{:\"<60}{number:04}", "");
        let login = http.create_user(&name, PASSWORD).await.unwrap();
        sockets.push(quiet(&node, &login, "").await);
    }
    drop(sockets);
    while !http.metrics().await.unwrap().contains("courier_online 1\n") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The presence of a later user shows that all earlier presence was sent.
    let last = http.create_user("last", PASSWORD).await.unwrap();
    let _last = quiet(&node, &last, "").await;
    loop {
        match said(&mut watcher).await {
            ServerMessage::Online { users, .. } | ServerMessage::Connect { users } => {
                if users.iter().any(|user| user.id == last.user) {
                    break;
                }
            }
            ServerMessage::Disconnect { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    node.stop().await;
}

// Guarantee: courier-10.
#[tokio::test]
async fn a_message_to_many_counts_as_many_and_small_ones_of_others_do_not() {
    let node = with(Limits {
        fanout: NonZeroU32::new(10).unwrap(),
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 9).await;
    let all: Vec<_> = people[1..].iter().map(|login| login.user).collect();
    let large = http.converse(&people[0].token, &all).await.unwrap();
    let small = http.converse(&people[1].token, &all[1..2]).await.unwrap();
    // At any speed, at least one message is stored and one is refused.
    let (mut stored, mut refused) = (false, false);
    while !(stored && refused) {
        match http.post(&people[0].token, large, "ahoy", None).await {
            Ok(_) => stored = true,
            Err(error) => {
                assert_eq!(error.status(), Some(429), "{error}");
                refused = true;
            }
        }
    }
    assert!(counted(&mut http, "fanout").await);
    for _ in 0..5 {
        http.post(&people[1].token, small, "ahoy", None)
            .await
            .unwrap();
    }
    node.stop().await;
}

// Guarantee: courier-10.
#[tokio::test]
async fn a_conversation_of_many_counts_as_many() {
    let node = with(Limits {
        fanout: NonZeroU32::new(10).unwrap(),
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 9).await;
    let all: Vec<_> = people[1..].iter().map(|login| login.user).collect();
    let refused = loop {
        if let Err(refused) = http.converse(&people[0].token, &all).await {
            break refused;
        }
    };
    assert_eq!(refused.status(), Some(429));
    http.converse(&people[1].token, &all[1..2]).await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn requests_that_are_refused_before_their_body_is_read_keep_the_connection() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let headers = [
        ("authorization", "Bearer courier_wrong"),
        ("content-type", "application/json"),
    ];
    for _ in 0..100 {
        let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(10_000));
        let sent = http.send(Method::POST, "/conversations/1/messages", &headers, body);
        assert_eq!(sent.await.unwrap().0.as_u16(), 401);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_body_that_is_refused_and_does_not_come_closes_the_connection_and_says_so() {
    let node = in_memory().await;
    let mut stream = TcpStream::connect(host(&node)).await.unwrap();
    let head = "POST /conversations/1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer courier_wrong\r\ncontent-type: application/json\r\ncontent-length: 200000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    node.stop().await;
}

#[tokio::test]
async fn a_close_frame_is_answered_by_one() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let mut socket = quiet(&node, &people[0], "").await;
    socket.send(Frame::Close(None)).await.unwrap();
    // A connection that ends without a close frame is an error.
    assert_eq!(socket.next().await.unwrap(), None);
    node.stop().await;
}

#[tokio::test]
async fn a_token_that_expires_ends_its_sockets() {
    let node = with(Limits {
        session: Duration::from_millis(500),
        heartbeat: Duration::from_millis(100),
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let mut socket = quiet(&node, &people[0], "").await;
    let ended = tokio::time::timeout(Duration::from_secs(20), socket.next()).await;
    assert_eq!(ended.unwrap().unwrap(), None);
    node.stop().await;
}

#[tokio::test]
async fn sockets_that_come_at_once_are_not_more_than_the_limit() {
    let node = with(Limits {
        sockets: 4,
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let opening: Vec<_> = (0..30)
        .map(|_| {
            let (host, token) = (host(&node), people[0].token.clone());
            tokio::spawn(async move { Socket::open(&host, &token, "").await.ok() })
        })
        .collect();
    let mut open = Vec::new();
    for socket in opening {
        open.extend(socket.await.unwrap());
    }
    assert_eq!(open.len(), 4);
    node.stop().await;
}

#[tokio::test]
async fn acknowledgements_of_what_was_acknowledged_count_once() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let room = http.converse(&people[0].token, &[people[1].user]).await;
    http.post(&people[0].token, room.unwrap(), "ahoy", None)
        .await
        .unwrap();
    let mut socket = quiet(&node, &people[1], "").await;
    said(&mut socket).await;
    for _ in 0..50 {
        socket.acknowledge(1).await.unwrap();
    }
    // The answer to a later frame shows that these frames were read.
    socket.send(Frame::Text("nonsense".into())).await.unwrap();
    assert!(matches!(
        said(&mut socket).await,
        ServerMessage::Error { .. }
    ));
    let metrics = http.metrics().await.unwrap();
    assert!(
        metrics.contains("courier_acknowledged_total 1\n"),
        "{metrics}"
    );
    node.stop().await;
}

#[tokio::test]
async fn random_tokens_are_refused_before_they_are_looked_up() {
    let node = with(Limits {
        strangers: NonZeroU32::new(2).unwrap(),
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let mut refused = 0;
    let begun = Instant::now();
    for number in 0..60 {
        let bearer = format!("Bearer courier_{number:064}");
        let headers = [("authorization", bearer.as_str())];
        let (status, _) = http
            .send(Method::GET, "/conversations", &headers, "")
            .await
            .unwrap();
        refused += u64::from(status.as_u16() == 429);
    }
    let allowed = 2 + 2 * (begun.elapsed().as_secs() + 1);
    assert!(refused >= 60 - allowed, "{refused}");
    node.stop().await;
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_are_distinguished() {
    let node = with(Limits {
        strangers: NonZeroU32::new(1).unwrap(),
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let log_in = async |http: &mut Http, number: usize, from: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("x-forwarded-for", from),
        ];
        let body = format!(r#"{{"name":"nobody{number}","password":"wrong horse"}}"#);
        let sent = http.send(Method::POST, "/sessions", &headers, body).await;
        sent.unwrap().0.as_u16()
    };
    for number in 0..20 {
        let from = format!("6.6.6.6, 10.1.1.{number}");
        assert_eq!(log_in(&mut http, number, &from).await, 401);
    }
    let mut refused = 0;
    for number in 20..40 {
        refused += u32::from(log_in(&mut http, number, "10.2.2.2").await == 429);
    }
    assert!(refused >= 10, "{refused}");
    node.stop().await;
}

#[tokio::test]
async fn one_address_has_its_part_of_the_connections() {
    let node = with(Limits {
        address_connections: 2,
        ..limits()
    })
    .await;
    let (mut first, mut second) = (http(&node).await, http(&node).await);
    for http in [&mut first, &mut second] {
        http.metrics().await.unwrap();
    }
    let mut third = http(&node).await;
    let (status, body) = third.send(Method::GET, "/ping", &[], "").await.unwrap();
    assert_eq!(status.as_u16(), 503);
    assert!(String::from_utf8_lossy(&body).contains("2 connections"));
    node.stop().await;
}

#[tokio::test]
async fn names_that_look_the_same_are_the_same() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    http.create_user("Zoe\u{308}", PASSWORD).await.unwrap();
    http.log_in("Zo\u{eb}", PASSWORD).await.unwrap();
    let taken = http.create_user("Zo\u{eb}", PASSWORD).await;
    assert_eq!(taken.unwrap_err().status(), Some(409));
    let hidden = http.create_user("an\u{200b}ne", PASSWORD).await;
    assert_eq!(hidden.unwrap_err().status(), Some(422));
    node.stop().await;
}
