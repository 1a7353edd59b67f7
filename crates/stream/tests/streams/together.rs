//! Bodies of an `influxdb_out` that wait while the receiver is busy, and are written with one request.

use crate::http::Service;
use crate::sinks::counter;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// An InfluxDB that answers its first request late, and refuses requests with a certain text.
#[derive(Clone, Default)]
struct Busy {
    /// Requests as their `Idempotency-Key` and body, and whether they were accepted.
    requests: Arc<Mutex<Vec<(String, String, bool)>>>,
    /// Notified when the first request has arrived, and when it may be answered.
    arrived: Arc<Notify>,
    answer: Arc<Notify>,
}

const REFUSED: &str = "v=13i";

async fn receive(State(busy): State<Busy>, request: Request) -> StatusCode {
    let (parts, body) = request.into_parts();
    let key = parts.headers["idempotency-key"]
        .to_str()
        .unwrap()
        .to_owned();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    if body.contains("v=0i") {
        busy.arrived.notify_one();
        busy.answer.notified().await;
    }
    let accepted = !body.contains(REFUSED);
    busy.requests.lock().unwrap().push((key, body, accepted));
    match accepted {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::BAD_REQUEST,
    }
}

/// Runs points with these values through an `influxdb_out`, each in a write of its own, which all wait for the answer to
/// the first one.
async fn run(values: &[i64]) -> (Service, Vec<(String, String, bool)>) {
    let busy = Busy::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(receive).with_state(busy.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let service = Service::new();
    let task = format!("stream | from('m') | influxdb_out('{url}') | log()");
    service.task("t", &task).await;
    for (second, value) in values.iter().enumerate() {
        service.write(&format!("m v={value}i {second}\n")).await;
        if second == 0 {
            busy.arrived.notified().await;
        }
    }
    // The lines of the log come after those of the queue.
    let logged = || {
        let status = service.engine.status("t").unwrap();
        status.edges[2].statistics.received
    };
    while logged() < values.len() as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    busy.answer.notify_one();
    service.engine.drain().await;
    let requests = std::mem::take(&mut *busy.requests.lock().unwrap());
    (service, requests)
}

// Guarantee: stream-11.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_wait_are_written_together_and_in_order() {
    let values: Vec<i64> = (0..10).collect();
    let (service, requests) = run(&values).await;
    let [(key, first, _), (rest_key, rest, _)] = &requests[..] else {
        panic!("{requests:?}");
    };
    let lines: String = (0..10)
        .map(|at| format!("m v={at}i {at}000000000\n"))
        .collect();
    assert_eq!(format!("{first}{rest}"), lines.replace(" 0000000000", " 0"));
    assert!(
        key.ends_with("-1") && rest_key.ends_with("-2-10"),
        "{key}, {rest_key}"
    );
    assert_eq!(counter(&service, "t", "influxdb_out1", "written"), 10);
}

// Guarantee: stream-11.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_refused_costs_no_other_body() {
    let (service, requests) = run(&[0, 11, 12, 13, 14]).await;
    let accepted = requests.iter().filter(|(.., accepted)| *accepted);
    let accepted: String = accepted.map(|(_, body, _)| &**body).collect();
    assert_eq!(
        accepted,
        "m v=0i 0\nm v=11i 1000000000\nm v=12i 2000000000\nm v=14i 4000000000\n"
    );
    assert_eq!(counter(&service, "t", "influxdb_out1", "written"), 4);
    assert_eq!(counter(&service, "t", "influxdb_out1", "failed"), 1);
}
