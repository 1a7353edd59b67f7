//! Tests of `body_memory`: bodies that do not fit together wait for each other, and none of them stops the others.

use crate::http::Service;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use corsair_stream::http::{HttpOptions, router, router_with};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tower::ServiceExt;

const MB: usize = 1 << 20;

fn gzip(lines: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(lines.as_bytes()).unwrap();
    packed.finish().unwrap()
}

/// Lines of at least this many bytes.
fn lines(bytes: usize) -> String {
    let mut lines = String::new();
    while lines.len() < bytes {
        let at = lines.len();
        writeln!(lines, "m,host=h{} value={}.5 {at}", at % 100, at % 1000).unwrap();
    }
    lines
}

/// A service with memory for bodies of at most a megabyte, of which not many fit together.
async fn service(patience: Duration) -> Service {
    let service = Service::with(|options| {
        options.max_body = MB;
        options.body_memory = 4 * MB;
        options.patience = patience;
    });
    service
        .task("t", "stream | from('m') | where(value < 0.0) | log()")
        .await;
    service
}

async fn answer(router: axum::Router, request: Request<Body>) -> (StatusCode, String) {
    let answer = router.oneshot(request).await.unwrap();
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
    let body: Value = serde_json::from_slice(&body.unwrap()).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

fn request(body: impl Into<Bytes>, packed: bool) -> Request<Body> {
    let body = body.into();
    let encoding = if packed { "gzip" } else { "identity" };
    let request = Request::post("/write?db=db").header("content-encoding", encoding);
    let request = request.header("content-length", body.len());
    request.body(body.into()).unwrap()
}

/// A body that arrives as its sender sends it.
fn live(length: usize) -> (mpsc::Sender<Bytes>, Request<Body>) {
    let (sender, parts) = mpsc::channel(1);
    let parts = ReceiverStream::new(parts).map(Ok::<_, Infallible>);
    let request = Request::post("/write?db=db").header("content-length", length);
    (sender, request.body(Body::from_stream(parts)).unwrap())
}

/// Writes a body from many clients at once. No write may be refused, because each client waits long enough.
async fn all_are_accepted(body: impl Fn() -> Request<Body>) {
    let service = service(Duration::from_secs(600)).await;
    let router = router(service.engine.clone());
    let clients: Vec<_> = (0..12)
        .map(|_| tokio::spawn(answer(router.clone(), body())))
        .collect();
    for client in clients {
        let (status, code) = client.await.unwrap();
        assert_eq!((status, &*code), (StatusCode::NO_CONTENT, ""));
    }
}

// Guarantee: stream-13.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn packed_bodies_that_do_not_fit_together_wait_for_each_other() {
    let body = gzip(&lines(MB - 100));
    all_are_accepted(|| request(body.clone(), true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn plain_bodies_that_do_not_fit_together_wait_for_each_other() {
    let body = Bytes::from(lines(MB - 100));
    all_are_accepted(|| request(body.clone(), false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_bodies_that_announce_less_than_they_need_one_makes_progress() {
    // The end of the body has the length of its last member, but there are many members.
    let member = gzip(&lines(10_000));
    let body = member.repeat(100);
    let service = service(Duration::from_millis(500)).await;
    let router = router(service.engine.clone());
    let clients: Vec<_> = (0..12)
        .map(|_| {
            let (router, body) = (router.clone(), body.clone());
            tokio::spawn(async move {
                for refused in 0.. {
                    let (status, code) = answer(router.clone(), request(body.clone(), true)).await;
                    match status {
                        StatusCode::NO_CONTENT => return refused,
                        _ => assert_eq!(&*code, "busy"),
                    }
                }
                unreachable!("the loop ends when the body is accepted")
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let accepted = body.len() / member.len() * lines(10_000).lines().count() * 12;
    assert_eq!(service.engine.totals().0, accepted as u64);
}

#[tokio::test]
async fn a_wrong_length_at_the_end_of_a_packed_body_is_refused_and_releases_its_memory() {
    let service = service(Duration::ZERO).await;
    let router = router(service.engine.clone());
    for length in [0, 1, MB as u32, u32::MAX] {
        let mut body = gzip(&lines(50_000));
        body.truncate(body.len() - 4);
        body.extend(length.to_le_bytes());
        for _ in 0..20 {
            let (status, code) = answer(router.clone(), request(body.clone(), true)).await;
            assert_eq!((status, &*code), (StatusCode::BAD_REQUEST, "gzip"));
        }
    }
    let all = request(gzip(&lines(MB - 100)), true);
    assert_eq!(answer(router, all).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_bomb_is_refused_and_releases_its_memory() {
    let service = service(Duration::ZERO).await;
    let router = router(service.engine.clone());
    // Many times the limit, as one line and as many.
    for unit in ["xxxxxxxx", "m v=1 1\n", "m s=\"xxx"] {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        let part = unit.repeat(MB);
        for _ in 0..4 {
            packed.write_all(part.as_bytes()).unwrap();
        }
        let bomb = packed.finish().unwrap();
        for _ in 0..4 {
            let (status, code) = answer(router.clone(), request(bomb.clone(), true)).await;
            assert_eq!(
                (status, &*code),
                (StatusCode::PAYLOAD_TOO_LARGE, "too_large")
            );
        }
    }
    assert_eq!(service.engine.totals().0, 0);
    let all = request(gzip(&lines(MB - 100)), true);
    assert_eq!(answer(router, all).await.0, StatusCode::NO_CONTENT);
}

// Guarantee: stream-13.
#[tokio::test]
async fn small_bodies_do_not_wait_for_large_ones() {
    let service = Service::with(|options| {
        options.max_body = 16 * MB;
        options.body_memory = 16 * MB;
        options.patience = Duration::ZERO;
    });
    let router = router(service.engine.clone());
    // A body that has all memory that is not for small bodies.
    let (_sender, large) = live(12 * MB);
    tokio::spawn(answer(router.clone(), large));
    tokio::task::yield_now().await;
    let other = request(lines(MB), false);
    assert_eq!(answer(router.clone(), other).await.1, "busy");
    for _ in 0..100 {
        let small = request("m value=1 1\n", false);
        let (status, code) = answer(router.clone(), small).await;
        assert_eq!((status, &*code), (StatusCode::NO_CONTENT, ""));
    }
}

// Guarantee: stream-13.
#[tokio::test]
async fn a_body_that_stalls_gives_its_memory_to_others() {
    let service = service(Duration::from_secs(60)).await;
    let options = HttpOptions {
        // A body must bring a fifteenth of its length every 200 milliseconds.
        body_timeout: Duration::from_secs(3),
        ..HttpOptions::default()
    };
    let router = router_with(service.engine.clone(), options);
    let mut stalled = Vec::new();
    for _ in 0..3 {
        let (sender, request) = live(MB - 100);
        sender.send("m value=1 1\n".into()).await.unwrap();
        stalled.push((sender, tokio::spawn(answer(router.clone(), request))));
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let all = request(gzip(&lines(MB - 100)), true);
    let within = Duration::from_secs(20);
    let accepted = tokio::time::timeout(within, answer(router.clone(), all)).await;
    assert_eq!(accepted.unwrap().0, StatusCode::NO_CONTENT);
    let (senders, answers): (Vec<_>, Vec<_>) = stalled.into_iter().unzip();
    // The server reads the rest of a refused body before it answers. No body waited for the third one.
    drop(senders);
    for answer in answers.into_iter().take(2) {
        let (status, code) = answer.await.unwrap();
        assert_eq!((status, &*code), (StatusCode::SERVICE_UNAVAILABLE, "slow"));
    }
}

#[tokio::test]
async fn a_body_that_stalls_while_no_other_waits_may_take_its_time() {
    let service = service(Duration::from_secs(60)).await;
    let options = HttpOptions {
        body_timeout: Duration::from_secs(3),
        ..HttpOptions::default()
    };
    let router = router_with(service.engine.clone(), options);
    let (sender, request) = live("m value=1 1\n".len() * 10_000);
    let answer = tokio::spawn(answer(router, request));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let rest = "m value=1 1\n".repeat(10_000);
    sender.send(rest.into()).await.unwrap();
    drop(sender);
    assert_eq!(answer.await.unwrap().0, StatusCode::NO_CONTENT);
}

/// Packed lines have the same effect as plain lines, wherever the pieces of unpacked lines end.
#[tokio::test]
async fn packed_lines_are_read_as_plain_lines() {
    let mut text = String::new();
    for at in 0..30_000 {
        match at % 5 {
            0 => writeln!(text, "m s=\"a\nb {at}\" {at}").unwrap(),
            1 => writeln!(text, "wrong {at}").unwrap(),
            2 => writeln!(text, "# a comment\n").unwrap(),
            _ => writeln!(text, "n{},t=a v={at}i {at}", at % 3).unwrap(),
        }
    }
    // A string that is longer than a piece.
    writeln!(text, "m s=\"{}\" 1", "long\n".repeat(100_000)).unwrap();
    text.push_str("m v=1 2");
    let mut results = Vec::new();
    for packed in [false, true] {
        let service = Service::new();
        service.task("t", "stream | from() | log()").await;
        let body = match packed {
            true => gzip(&text),
            false => text.clone().into_bytes(),
        };
        let (status, refusal) = service.send(request(body, packed)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        service.engine.drain().await;
        results.push((String::from_utf8(refusal).unwrap(), service.log.lines()));
    }
    let (refusal, logged) = &results[0];
    assert!(refusal.contains("\"rejected\":6000"), "{refusal}");
    assert!(logged.len() > 100_000 + 18_000, "{}", logged.len());
    assert!(results[0] == results[1], "the results differ");
}
