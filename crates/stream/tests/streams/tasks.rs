//! Tests of tasks over HTTP: created, shown, deleted, refused.

use crate::http::Service;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::json;

async fn add(service: &Service, name: &str, text: &str) -> (StatusCode, serde_json::Value) {
    let body = json!({ "name": name, "text": text }).to_string();
    service.request(Method::POST, "/tasks", &body).await
}

#[tokio::test]
async fn a_task_is_shown_with_its_graph_and_live_counters() {
    let service = Service::new();
    let (status, shown) = add(&service, "t", "stream | from('m') | where(v > 1) | log()").await;
    assert_eq!(
        (status, &shown["state"]),
        (StatusCode::CREATED, &json!("running"))
    );
    service.write("m v=1 1\nm v=2 2\n").await;
    service.engine.drain().await;
    let (_, shown) = service.get("/tasks/t").await;
    assert_eq!(shown["state"], "ended");
    let names: Vec<_> = shown["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| &n["name"])
        .collect();
    assert_eq!(names, ["from0", "where1", "log2"]);
    let edge = &shown["edges"][1];
    assert_eq!(
        (&edge["from"], &edge["to"]),
        (&json!("from0"), &json!("where1"))
    );
    assert_eq!(
        (&edge["collected"], &edge["emitted"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(shown["edges"][2]["emitted"], 1);
}

#[tokio::test]
async fn a_task_is_shown_as_dot() {
    let service = Service::new();
    add(&service, "t", "stream | from('m') | log()").await;
    let request = Request::get("/tasks/t?format=dot")
        .body(Body::empty())
        .unwrap();
    let (status, dot) = service.send(request).await;
    let dot = String::from_utf8(dot).unwrap();
    assert_eq!(status, StatusCode::OK);
    assert!(dot.starts_with("digraph \"t\" {"), "{dot}");
    assert!(dot.contains("from0 -> log1 [label=\"0 of 0\"]"), "{dot}");
}

#[tokio::test]
async fn all_tasks_are_listed_by_name() {
    let service = Service::new();
    add(&service, "b", "stream | from()").await;
    add(&service, "a", "stream | from()").await;
    let (_, listed) = service.get("/tasks").await;
    let tasks = listed["tasks"].as_array().unwrap();
    let names: Vec<_> = tasks.iter().map(|task| &task["name"]).collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn a_second_task_of_a_name_is_refused_and_the_first_goes_on() {
    let service = Service::new();
    add(&service, "t", "stream | from('m') | log()").await;
    let (status, refusal) = add(&service, "t", "stream | from('n')").await;
    assert_eq!(
        (status, &refusal["code"]),
        (StatusCode::CONFLICT, &json!("duplicate"))
    );
    service.write("m v=1 1\n").await;
    assert_eq!(service.logged().await.len(), 1);
}

#[tokio::test]
async fn a_text_that_is_no_pipeline_is_refused_with_its_place() {
    let service = Service::new();
    let (status, refusal) = add(&service, "t", "stream\n  | from()\n  | windaw(10s)").await;
    assert_eq!(
        (status, &refusal["code"]),
        (StatusCode::BAD_REQUEST, &json!("text"))
    );
    assert_eq!(
        (&refusal["line"], &refusal["column"]),
        (&json!(3), &json!(5))
    );
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.contains("windaw") && message.contains("window"),
        "{message}"
    );
    assert_eq!(service.get("/tasks/t").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn bad_descriptions_are_refused_with_what_to_do() {
    let service = Service::new();
    for (body, code) in [
        ("{", "task"),
        ("[]", "task"),
        (r#"{"name": "t"}"#, "task"),
        (
            r#"{"name": "t", "text": "stream|from()", "colour": 1}"#,
            "task",
        ),
        (
            r#"{"name": "t", "text": "stream|from()", "capacity": 0}"#,
            "task",
        ),
        (
            r#"{"name": "t", "text": "stream|from()", "overflow": "never"}"#,
            "task",
        ),
        (r#"{"name": "a b", "text": "stream|from()"}"#, "name"),
        (r#"{"name": "", "text": "stream|from()"}"#, "name"),
    ] {
        let (status, refusal) = service.request(Method::POST, "/tasks", body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(refusal["code"], code, "{body}: {refusal}");
    }
    let long = format!(r#"{{"name": "t", "text": "{}"}}"#, " ".repeat(2 << 20));
    let (status, _) = service.request(Method::POST, "/tasks", &long).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(service.engine.statuses().is_empty());
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn an_https_hook_is_refused_where_tls_is_not_built() {
    let service = Service::new();
    for scheme in ["https", "HTTPS"] {
        let text = format!("stream | from('m') | http_post('{scheme}://localhost/hook')");
        let (status, refusal) = add(&service, "t", &text).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(refusal["code"], "tls");
        let message = refusal["message"].as_str().unwrap();
        assert!(
            message.contains("--features corsair-stream/tls"),
            "{message}"
        );
    }
    add(
        &service,
        "t",
        "stream | from('m') | http_post('http://localhost/hook')",
    )
    .await;
    assert_eq!(service.get("/tasks/t").await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_unknown_task_is_not_found_and_the_nearest_is_named() {
    let service = Service::new();
    add(&service, "cpu", "stream | from()").await;
    for (method, path) in [(Method::GET, "/tasks/cpi"), (Method::DELETE, "/tasks/cpi")] {
        let (status, refusal) = service.request(method, path, "").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(
            refusal["message"]
                .as_str()
                .unwrap()
                .contains("did you mean `cpu`?")
        );
    }
}

#[tokio::test]
async fn http_out_shows_the_latest_of_every_group() {
    let service = Service::new();
    let text = "stream | from('m') | groupBy('host') | window(10s, every 10s) | count(v) | http_out('counts')";
    add(&service, "t", text).await;
    let (status, empty) = service.get("/tasks/t/counts").await;
    assert_eq!((status, empty), (StatusCode::OK, json!({ "series": [] })));
    service
        .write("m,host=b v=1 1\nm,host=a v=1 2\nm,host=b v=1 3\n")
        .await;
    service.engine.drain().await;
    let (_, shown) = service.get("/tasks/t/counts").await;
    let series = |host: &str, count: i64| {
        json!({
            "name": "m",
            "tags": { "host": host },
            "columns": ["time", "count"],
            "values": [[10_000_000_000_i64, count]],
        })
    };
    assert_eq!(shown, json!({ "series": [series("a", 1), series("b", 2)] }));
    let (status, _) = service.get("/tasks/t/other").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn metrics_are_in_the_format_of_prometheus() {
    let service = Service::new();
    add(&service, "t", "stream | from('m') | where(v > 1)").await;
    service.write("m v=1 1\nm v=2 1\n").await;
    service.engine.drain().await;
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let (_, text) = service.send(request).await;
    let text = String::from_utf8(text).unwrap();
    for line in [
        "corsair_stream_writes_total 1",
        "corsair_stream_lines_accepted_total 2",
        "corsair_stream_tasks{state=\"ended\"} 1",
        "corsair_stream_edge_points_emitted_total{task=\"t\",from=\"stream\",to=\"from0\"} 2",
        "corsair_stream_edge_points_emitted_total{task=\"t\",from=\"from0\",to=\"where1\"} 2",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit_once(' ').expect("a value").1;
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist_say_so() {
    let service = Service::new();
    let (status, refusal) = service.get("/select").await;
    assert_eq!(
        (status, &refusal["code"]),
        (StatusCode::NOT_FOUND, &json!("unknown_path"))
    );
    let (status, refusal) = service.get("/write").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(refusal["code"], "method");
}
