//! Tests of writes that are refused completely or partly, without an effect on other work.

use crate::http::Service;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use corsair_stream::engine::TaskOptions;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::num::NonZeroUsize;

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(body).unwrap();
    packed.finish().unwrap()
}

async fn post(service: &Service, encoding: &str, body: Vec<u8>) -> (StatusCode, Value) {
    let request = Request::post("/write?db=db&precision=s").header("content-encoding", encoding);
    let (status, answer) = service.send(request.body(body.into()).unwrap()).await;
    (
        status,
        serde_json::from_slice(&answer).unwrap_or(Value::Null),
    )
}

/// Checks that good lines are still accepted.
async fn still_serves(service: Service) {
    service
        .task("after", "stream | from('after') | log()")
        .await;
    service.write("after v=1 1\n").await;
    assert_eq!(service.logged().await, ["after v=1.0 1000000000"]);
}

#[tokio::test]
async fn a_packed_body_is_unpacked() {
    let service = Service::new();
    service.task("t", "stream | from('m') | log()").await;
    let (status, _) = post(&service, "gzip", gzip(b"m v=1 1\nm v=2 2\n")).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(service.logged().await.len(), 2);
}

#[tokio::test]
async fn a_broken_or_cut_gzip_writes_nothing() {
    let service = Service::new();
    service.task("t", "stream | from('m') | log()").await;
    let mut packed = gzip(b"m v=1 1\n".repeat(1000).as_slice());
    packed.truncate(packed.len() - 9);
    for body in [packed, b"m v=1 1\n".to_vec()] {
        let (status, refusal) = post(&service, "gzip", body).await;
        assert_eq!(
            (status, &refusal["code"]),
            (StatusCode::BAD_REQUEST, &json!("gzip"))
        );
    }
    assert_eq!(service.engine.totals().0, 0);
    still_serves(service).await;
}

#[tokio::test]
async fn an_unknown_encoding_is_refused() {
    let service = Service::new();
    let (status, refusal) = post(&service, "br", b"m v=1 1\n".to_vec()).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(refusal["code"], "encoding");
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused_packed_or_not() {
    let service = Service::with(|options| options.max_body = 1000);
    let lines = b"m v=1 1\n".repeat(200);
    for (encoding, body) in [("identity", lines.clone()), ("gzip", gzip(&lines))] {
        let (status, refusal) = post(&service, encoding, body).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(
            refusal["message"].as_str().unwrap().contains("1000 bytes"),
            "{refusal}"
        );
    }
    // Without a length that is announced.
    let parts = lines
        .chunks(100)
        .map(|part| Ok::<_, std::io::Error>(Bytes::copy_from_slice(part)));
    let parts: Vec<_> = parts.collect();
    let body = Body::from_stream(tokio_stream::iter(parts));
    let request = Request::post("/write?db=db").body(body).unwrap();
    assert_eq!(service.send(request).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    still_serves(service).await;
}

#[tokio::test]
async fn a_body_that_breaks_off_writes_nothing() {
    let service = Service::new();
    let parts = [
        Ok(Bytes::from_static(b"m v=1 1\nm v")),
        Err("the connection broke"),
    ];
    let body = Body::from_stream(tokio_stream::iter(parts));
    let request = Request::post("/write?db=db").body(body).unwrap();
    let (status, refusal) = service.send(request).await;
    let refusal: Value = serde_json::from_slice(&refusal).unwrap();
    assert_eq!(
        (status, &refusal["code"]),
        (StatusCode::BAD_REQUEST, &json!("truncated"))
    );
    assert_eq!(service.engine.totals().0, 0);
    still_serves(service).await;
}

// Guarantee: stream-7.
#[tokio::test]
async fn a_partial_write_keeps_the_good_lines_and_names_the_bad() {
    let service = Service::new();
    service.task("t", "stream | from('m') | log()").await;
    let lines = "m v=1 1\nm v= 2\n# a comment\nm v=NaN 3\nm v=9223372036854775808i 4\nm v=5 5\n";
    let (status, refusal) = service
        .request(Method::POST, "/write?db=db&precision=s", lines)
        .await;
    assert_eq!(
        (status, &refusal["code"]),
        (StatusCode::BAD_REQUEST, &json!("partial_write"))
    );
    assert_eq!(
        (&refusal["accepted"], &refusal["rejected"]),
        (&json!(2), &json!(3))
    );
    let errors = refusal["errors"].as_array().unwrap();
    let places: Vec<_> = errors.iter().map(|error| &error["line"]).collect();
    assert_eq!(places, [2, 4, 5]);
    for error in errors {
        assert!(
            error["code"].is_string() && error["message"].is_string(),
            "{error}"
        );
    }
    assert_eq!(service.logged().await.len(), 2);
}

#[tokio::test]
async fn of_a_hundred_thousand_bad_lines_a_hundred_are_told() {
    let service = Service::new();
    let (status, refusal) = post(&service, "identity", b"nonsense\n".repeat(100_000)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(refusal["rejected"], 100_000);
    assert_eq!(refusal["errors"].as_array().unwrap().len(), 100);
    still_serves(service).await;
}

#[tokio::test]
async fn a_line_past_the_limit_is_one_bad_line() {
    let service = Service::new();
    service.task("t", "stream | from('m') | log()").await;
    let mut lines = b"m v=1 1\nm v=\"".to_vec();
    lines.extend(std::iter::repeat_n(b'x', 10 << 20));
    lines.extend(b"\" 2\nm v=3 3\n");
    let (status, refusal) = post(&service, "identity", lines).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(
        (&refusal["accepted"], &refusal["rejected"]),
        (&json!(2), &json!(1))
    );
    let error = &refusal["errors"][0];
    assert_eq!(
        (&error["code"], &error["line"]),
        (&json!("line_too_long"), &json!(2))
    );
    assert!(error["message"].as_str().unwrap().len() < 400, "{error}");
    assert_eq!(service.logged().await.len(), 2);
}

#[tokio::test]
async fn a_write_needs_a_database_and_a_known_precision() {
    let service = Service::new();
    for (path, code) in [
        ("/write", "database"),
        ("/write?db=", "database"),
        ("/write?db=db&precision=days", "precision"),
    ] {
        let (status, refusal) = service.request(Method::POST, path, "m v=1 1\n").await;
        assert_eq!(
            (status, &refusal["code"]),
            (StatusCode::BAD_REQUEST, &json!(code)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn one_write_too_many_is_told_to_try_again() {
    let service = Service::with(|options| {
        options.writes = NonZeroUsize::MIN;
        options.sink_memory = 1;
    });
    // A sink that takes its time, with edges that hold one batch.
    let text = "stream | from('m') | http_post('http://127.0.0.1:9/')";
    let capacity = NonZeroUsize::MIN;
    let options = TaskOptions {
        capacity,
        ..TaskOptions::default()
    };
    service.engine.add("slow", text, options).await.unwrap();
    let engine = service.engine.clone();
    let waiting = tokio::spawn(async move {
        let service = Service {
            engine,
            log: Default::default(),
        };
        // As many as fit, and one that waits.
        for second in 0..100 {
            let lines = format!("m v=1 {second}\n");
            service.request(Method::POST, "/write?db=db", &lines).await;
        }
    });
    let busy = async {
        loop {
            let (status, refusal) = service
                .request(Method::POST, "/write?db=db", "m v=1 1\n")
                .await;
            if refusal["code"] == "busy" {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    let busy = tokio::time::timeout(std::time::Duration::from_secs(20), busy).await;
    let status = busy.expect("one waits");
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    waiting.abort();
    service.engine.delete("slow").await.unwrap();
    let _ = waiting.await;
    still_serves(service).await;
}

#[tokio::test]
async fn what_is_busy_says_when_to_try_again_and_closes_the_connection() {
    let service = Service::with(|options| {
        options.body_memory = 1 << 20;
        options.patience = std::time::Duration::ZERO;
    });
    let router = corsair_stream::http::router(service.engine.clone());
    // A body that has most of the memory, and does not arrive.
    let stalled = Body::from_stream(tokio_stream::pending::<Result<Bytes, std::io::Error>>());
    let stalled = Request::post("/write?db=db")
        .header("content-length", 760 << 10)
        .body(stalled);
    tokio::spawn(tower::ServiceExt::oneshot(router.clone(), stalled.unwrap()));
    tokio::task::yield_now().await;
    let request = Request::post("/write?db=db")
        .body(axum::body::Body::from("m v=1 1\n"))
        .unwrap();
    let answer = tower::ServiceExt::oneshot(router, request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(answer.headers()["connection"], "close");
}

#[tokio::test]
async fn the_name_of_an_encoding_may_be_in_capitals() {
    let service = Service::new();
    service.task("t", "stream | from('m') | log()").await;
    for name in ["GZIP", "X-GZip", " gzip "] {
        let (status, _) = post(&service, name, gzip(b"m v=1 1\n")).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{name}");
    }
    let (status, _) = post(&service, "Identity", b"m v=1 1\n".to_vec()).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(service.logged().await.len(), 4);
}

#[tokio::test]
async fn a_packed_body_needs_memory_for_what_is_in_it() {
    let service = Service::with(|options| {
        options.body_memory = 1 << 20;
        options.patience = std::time::Duration::ZERO;
    });
    service.task("t", "stream | from('m') | count(v)").await;
    // Eight megabytes that compress to almost nothing, and will not fit at another time either.
    let (status, refusal) = post(&service, "gzip", gzip(&b"m v=1 1\n".repeat(1 << 20))).await;
    assert_eq!(
        (status, &refusal["code"]),
        (StatusCode::PAYLOAD_TOO_LARGE, &json!("too_large"))
    );
    still_serves(service).await;
}

#[tokio::test]
async fn timestamps_that_influxdb_refuses_are_refused() {
    let service = Service::new();
    service.task("t", "stream | from('m') | log()").await;
    for (time, taken) in [
        (i64::MIN, false),
        (i64::MIN + 1, false),
        (i64::MIN + 2, true),
        (i64::MAX - 1, true),
        (i64::MAX, false),
    ] {
        let lines = format!("m v=1 {time}\n");
        let (status, refusal) = service.request(Method::POST, "/write?db=db", &lines).await;
        assert_eq!(status.is_success(), taken, "{time}");
        if !taken {
            assert_eq!(refusal["errors"][0]["code"], "timestamp_out_of_range");
        }
    }
    assert_eq!(service.logged().await.len(), 2);
}

#[tokio::test]
async fn a_missing_timestamp_is_whole_in_the_precision_of_the_write() {
    let service = Service::new();
    service.task("t", "stream | from('m') | log()").await;
    for precision in ["s", "m", "h"] {
        let path = format!("/write?db=db&precision={precision}");
        service.request(Method::POST, &path, "m v=1\n").await;
    }
    let logged = service.logged().await;
    let time = |line: &String| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap();
    for (line, unit) in logged.iter().zip([1, 60, 3600]) {
        assert_eq!(time(line) % (unit * 1_000_000_000), 0, "{line}");
    }
}
