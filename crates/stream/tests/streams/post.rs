//! `http_post` against a real server on loopback.

use crate::http::Service;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

#[derive(Clone, Default)]
struct Received {
    bodies: Arc<Mutex<Vec<Value>>>,
    /// How many requests are yet to be refused.
    refuse: Arc<Mutex<usize>>,
}

async fn receive(State(received): State<Received>, body: String) -> StatusCode {
    let mut refuse = received.refuse.lock().unwrap();
    if *refuse > 0 {
        *refuse -= 1;
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    let body = serde_json::from_str(&body).unwrap();
    received.bodies.lock().unwrap().push(body);
    StatusCode::OK
}

/// A server, and its URL.
async fn server(received: &Received) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let routes = Router::new()
        .route("/hook", post(receive))
        .with_state(received.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn every_window_is_posted_as_json_and_refused_requests_are_tried_again() {
    let received = Received::default();
    *received.refuse.lock().unwrap() = 1;
    let url = server(&received).await;
    let service = Service::new();
    let text = format!("stream | from('m') | window(10s, every 10s) | sum(v) | http_post('{url}')");
    service.task("t", &text).await;
    service.write("m v=1i 1\nm v=2i 2\nm v=4i 11\n").await;
    service.engine.drain().await;
    let values: Vec<Value> = received
        .bodies
        .lock()
        .unwrap()
        .iter()
        .map(|body| body["series"][0]["values"].clone())
        .collect();
    assert_eq!(
        values,
        [
            json!([[10_000_000_000_i64, 3]]),
            json!([[20_000_000_000_i64, 4]])
        ]
    );
    let status = service.engine.status("t").unwrap();
    let poster = status.nodes.last().unwrap();
    assert_eq!(
        poster.counters,
        [("posted", 2), ("failed", 0), ("dropped", 0)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_away_is_counted_and_the_task_goes_on() {
    let service = Service::new();
    let text = "stream | from('m') | http_post('http://127.0.0.1:9/') | log()";
    service.task("t", text).await;
    service.write("m v=1 1\n").await;
    service.engine.drain().await;
    let status = service.engine.status("t").unwrap();
    let poster = status
        .nodes
        .iter()
        .find(|node| node.name.starts_with("http_post"))
        .unwrap();
    assert_eq!(
        poster.counters,
        [("posted", 0), ("failed", 1), ("dropped", 0)]
    );
    assert_eq!(service.logged().await.len(), 1);
}
