//! Tests of unread answers and unread bodies.

use crate::http::Service;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use corsair_stream::http::{HttpOptions, router_with};
use std::time::Duration;
use tower::ServiceExt;

#[tokio::test]
async fn long_answers_that_are_not_read_hold_no_more_memory_than_they_may() {
    let service = Service::with(|options| options.patience = Duration::from_millis(1));
    service
        .task("t", "stream | from('m') | groupBy('h') | http_out('o')")
        .await;
    let lines: String = (0..10_000).map(|at| format!("m,h={at} v=1 1\n")).collect();
    service.write(&lines).await;
    service.engine.settle().await;
    let options = HttpOptions {
        answer_memory: 2 << 20,
        ..HttpOptions::default()
    };
    let router = router_with(service.engine.clone(), options);
    let ask = || {
        let request = Request::get("/tasks/t/o").body(Body::empty()).unwrap();
        router.clone().oneshot(request)
    };
    let mut unread = Vec::new();
    for _ in 0..10 {
        let answer = ask().await.unwrap();
        match answer.status() {
            StatusCode::OK => unread.push(answer),
            status => assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE),
        }
    }
    assert!((1..4).contains(&unread.len()), "{} of 0.9 MB", unread.len());
    // Short responses are served all the time; long ones once a client has disconnected.
    let request = Request::get("/ping").body(Body::empty()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    unread.pop();
    assert_eq!(ask().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn an_answer_to_a_body_that_was_not_read_closes_the_connection_and_says_so() {
    let service = Service::new();
    let router = corsair_stream::http::router(service.engine.clone());
    for (path, closes) in [
        ("/write", true),
        ("/write?db=db&precision=days", true),
        ("/nothing", true),
        ("/metrics", true),
        ("/write?db=db", false),
    ] {
        let request = Request::post(path).body(Body::from("m v=1 1\n")).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let said = answer.headers().get("connection").is_some();
        assert_eq!(said, closes, "{path}: {}", answer.status());
    }
    let request = Request::get("/nothing").body(Body::empty()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    assert!(answer.headers().get("connection").is_none(), "no body");
}

/// Python's client, like others, sends its complete body before it reads the answer.
#[tokio::test]
async fn a_body_over_the_limit_is_answered_before_the_connection_closes() {
    use std::io::{Read, Write};
    let service = Service::with(|options| options.max_body = 1 << 20);
    let router = corsair_stream::http::router(service.engine.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = corsair_stream::http::Limits::default();
    let serving = corsair_stream::http::serve(listener, router, limits, std::future::pending());
    let serving = tokio::spawn(serving);
    for head in ["content-length: 33554432", "transfer-encoding: chunked"] {
        let answer = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let head = format!("POST /write?db=db HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let part = vec![b'x'; 1 << 20];
            for _ in 0..32 {
                if head.contains("chunked") {
                    stream.write_all(b"100000\r\n").unwrap();
                }
                stream.write_all(&part).unwrap();
                if head.contains("chunked") {
                    stream.write_all(b"\r\n").unwrap();
                }
            }
            if head.contains("chunked") {
                stream.write_all(b"0\r\n\r\n").unwrap();
            }
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        let answer = answer.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{head}: {answer}");
        assert!(answer.contains("1048576 bytes"), "{head}: {answer}");
    }
    serving.abort();
}
