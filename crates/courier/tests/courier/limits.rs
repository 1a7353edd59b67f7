//! Tests that excessive requests are refused and counted, and do not disturb other clients.

use crate::node::{counted, host, http, limits, quiet, users, with};
use corsair_courier::Limits;
use corsair_courier_load::client::Socket;
use hyper::Method;
use std::num::NonZeroU32;

#[tokio::test]
async fn bodies_texts_and_recipients_over_their_limit_are_413() {
    let node = with(Limits {
        body: 1000,
        text: 100,
        recipients: 3,
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 5).await;
    let token = &people[0].token;
    let room = http.converse(token, &[people[1].user]).await.unwrap();
    http.post(token, room, &"x".repeat(100), None)
        .await
        .unwrap();
    let text = http
        .post(token, room, &"x".repeat(101), None)
        .await
        .unwrap_err();
    assert_eq!(text.status(), Some(413));
    let body = http
        .post(token, room, &"x".repeat(1001), None)
        .await
        .unwrap_err();
    assert_eq!(body.status(), Some(413));
    let all: Vec<_> = people[1..].iter().map(|login| login.user).collect();
    http.converse(token, &all[..3]).await.unwrap();
    let many = http.converse(token, &all).await.unwrap_err();
    assert_eq!(many.status(), Some(413));
    for why in ["text", "body", "recipients"] {
        assert!(counted(&mut http, why).await, "{why}");
    }
    http.post(token, room, "still here", None).await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_body_that_is_longer_than_it_said_nothing_of_is_413() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let node = with(Limits {
        body: 1000,
        text: 1000,
        ..limits()
    })
    .await;
    let mut stream = tokio::net::TcpStream::connect(node.address())
        .await
        .unwrap();
    let head = "POST /users HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("200\r\n{}\r\n", " ".repeat(0x200));
    for _ in 0..3 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    node.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_408() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let node = with(Limits {
        head: std::time::Duration::from_millis(200),
        ..limits()
    })
    .await;
    let mut stream = tokio::net::TcpStream::connect(node.address())
        .await
        .unwrap();
    let head = "POST /users HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert!(counted(&mut http(&node).await, "slow_body").await);
    node.stop().await;
}

#[tokio::test]
async fn a_user_over_the_rate_is_429_and_others_are_not() {
    let node = with(Limits {
        rate: NonZeroU32::new(5).unwrap(),
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let mut refused = 0;
    for _ in 0..50 {
        let bearer = format!("Bearer {}", people[0].token);
        let headers = [("authorization", bearer.as_str())];
        let (status, _) = http
            .send(Method::GET, "/users/online", &headers, "")
            .await
            .unwrap();
        refused += u32::from(status.as_u16() == 429);
    }
    assert!(refused >= 30, "{refused}");
    http.converse(&people[1].token, &[people[0].user])
        .await
        .unwrap();
    assert!(counted(&mut http, "rate").await);
    node.stop().await;
}

#[tokio::test]
async fn guessing_passwords_and_tokens_is_slowed_down() {
    let node = with(Limits {
        strangers: NonZeroU32::new(3).unwrap(),
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let (mut logins, mut tokens) = (0, 0);
    for _ in 0..20 {
        let refused = http.log_in("anne", "a guess or two").await.unwrap_err();
        logins += u32::from(refused.status() == Some(429));
        let headers = [("authorization", "Bearer courier_guess")];
        let (status, _) = http
            .send(Method::GET, "/conversations", &headers, "")
            .await
            .unwrap();
        tokens += u32::from(status.as_u16() == 429);
    }
    assert!(logins >= 10 && tokens >= 10, "{logins} {tokens}");
    assert!(counted(&mut http, "strangers").await);
    node.stop().await;
}

#[tokio::test]
async fn sockets_of_one_user_have_a_limit() {
    let node = with(Limits {
        sockets: 2,
        ..limits()
    })
    .await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let first = quiet(&node, &people[0], "").await;
    let _second = quiet(&node, &people[0], "").await;
    let third = loop {
        // Sockets count when they have reached their actor.
        match Socket::open(&host(&node), &people[0].token, "").await {
            Ok(early) => early.close().await.unwrap(),
            Err(refused) => break refused,
        }
    };
    assert_eq!(third.status(), Some(429));
    assert!(counted(&mut http, "sockets").await);
    quiet(&node, &people[1], "").await;
    first.close().await.unwrap();
    loop {
        if Socket::open(&host(&node), &people[0].token, "")
            .await
            .is_ok()
        {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn connections_over_the_limit_are_refused_with_the_reason_and_sockets_count() {
    let node = with(Limits {
        connections: 3,
        address_connections: 3,
        // All connections may come from one trusted address.
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        ..limits()
    })
    .await;
    let mut first = http(&node).await;
    let people = users(&mut first, 1).await;
    let socket = quiet(&node, &people[0], "").await;
    let mut second = http(&node).await;
    second.metrics().await.unwrap();
    let mut third = http(&node).await;
    let (status, body) = third.send(Method::GET, "/ping", &[], "").await.unwrap();
    assert_eq!(status.as_u16(), 503);
    assert!(String::from_utf8_lossy(&body).contains("3 connections"));
    assert!(counted(&mut first, "connections").await);
    socket.close().await.unwrap();
    loop {
        let mut http = http(&node).await;
        if let Ok((status, _)) = http.send(Method::GET, "/ping", &[], "").await
            && status.as_u16() == 200
        {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    node.stop().await;
}
