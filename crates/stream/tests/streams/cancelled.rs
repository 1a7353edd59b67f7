//! Tests of clients that disconnect: a request that is dropped at any wait leaves no partial effect.

use crate::http::Service;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use corsair_stream::engine::TaskState;
use corsair_stream::http::router;
use std::pin::pin;
use std::task::{Context, Waker};
use tokio_stream::StreamExt;
use tower::ServiceExt;

/// A body that arrives in pieces, between which the reader has to wait.
fn in_pieces(text: &str) -> Body {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let pieces: Vec<Bytes> = bytes.chunks(8).map(Bytes::copy_from_slice).collect();
    let pieces = tokio_stream::iter(pieces).then(|piece| async move {
        tokio::task::yield_now().await;
        Ok::<_, std::io::Error>(piece)
    });
    Body::from_stream(pieces)
}

/// Polls a request this many times, then drops it. Returns true if it was complete.
async fn polled(service: &Service, request: Request<Body>, times: usize) -> bool {
    let mut answer = pin!(router(service.engine.clone()).oneshot(request));
    for _ in 0..times {
        let poll = answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if poll.is_ready() {
            return true;
        }
        // Lets the work that the request has started elsewhere make progress.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }
    false
}

// Guarantee: stream-1.
#[tokio::test]
async fn a_task_whose_client_goes_away_runs_or_does_not_exist() {
    let body = r#"{"name": "t", "text": "stream | from('m') | http_out('seen')"}"#;
    let service = Service::new();
    for times in 0.. {
        let request = Request::post("/tasks").body(in_pieces(body)).unwrap();
        let over = polled(&service, request, times).await;
        // Lets the work that continues without the client finish.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let (status, shown) = service.get("/tasks/t").await;
        if status == StatusCode::OK {
            assert_eq!(shown["state"], "running");
            service.write("m v=1 1\n").await;
            service.engine.settle().await;
            let (_, seen) = service.get("/tasks/t/seen").await;
            assert_eq!(seen["series"].as_array().unwrap().len(), 1, "{times} polls");
            let (status, _) = service.request(Method::DELETE, "/tasks/t", "").await;
            assert_eq!(status, StatusCode::NO_CONTENT, "{times} polls");
        }
        if over {
            break;
        }
    }
    assert!(
        service.engine.close().await.unwrap().is_ok(),
        "it shuts down"
    );
}

// Guarantee: stream-1.
#[tokio::test]
async fn a_write_whose_client_goes_away_reaches_all_its_tasks_or_none() {
    let service = Service::new();
    let tasks = ["a", "b", "c"];
    for name in tasks {
        service.task(name, "stream | from('m')").await;
    }
    let lines = "m v=1 1\nm v=2 2\nm v=3 3\n";
    let got = || {
        tasks.map(|name| {
            let status = service.engine.status(name).unwrap();
            assert_eq!(status.state, TaskState::Running);
            status.edges[0].statistics.sent
        })
    };
    for times in 0.. {
        let request = Request::post("/write?db=db")
            .body(in_pieces(lines))
            .unwrap();
        let over = polled(&service, request, times).await;
        service.engine.settle().await;
        let got = got();
        assert!(got.iter().all(|points| *points == got[0]), "{got:?}");
        assert!(got[0].is_multiple_of(3), "{got:?}");
        if over {
            assert!(got[0] > 0);
            break;
        }
    }
}

/// A service whose tasks are soon full, and whose writes wait for a long time.
fn patient() -> Service {
    Service::with(|options| {
        options.task_memory = 1;
        options.body_memory = 1 << 20;
        options.writes = std::num::NonZeroUsize::new(2).unwrap();
        options.patience = std::time::Duration::from_secs(3600);
        options.sink_memory = 1;
        options.post_timeout = std::time::Duration::from_secs(3600);
    })
}

// Guarantee: stream-1.
#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_for_room_and_are_cancelled_give_back_their_memory_and_their_place() {
    let service = patient();
    let hung = crate::sinks::Hung::new();
    let text = format!("stream | from('m') | http_post('{}')", hung.1);
    service.task("t", &text).await;
    // Fills the task. A second is long enough for a write that fits, even on a busy machine.
    let free = || {
        let request = Request::post("/write?db=db&precision=s");
        let request = request.body(in_pieces("m v=1 1\n")).unwrap();
        let answer = router(service.engine.clone()).oneshot(request);
        tokio::time::timeout(std::time::Duration::from_secs(1), answer)
    };
    let mut taken = 0;
    while free().await.is_ok() {
        taken += 1;
    }
    let before = service.engine.totals().0;
    assert_eq!(before, taken);
    let routes = router(service.engine.clone());
    for times in 0..200 {
        // Bodies of half of the memory: two of them at once would not fit.
        let body = Body::from("m v=1 1\n".repeat(64 << 10));
        let request = Request::post("/write?db=db").body(body).unwrap();
        let mut answer = pin!(routes.clone().oneshot(request));
        for _ in 0..times % 20 {
            let poll = answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            assert!(poll.is_pending(), "it waits for room");
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(service.engine.totals().0, before, "nothing was accepted");
    service.engine.delete("t").await.unwrap();
    service.write("m v=1 1\n").await;
    service.write("other v=1 1\n").await;
}
