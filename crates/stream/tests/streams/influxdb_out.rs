//! `influxdb_out` and authenticated posts against a server on loopback that records requests.

use crate::http::Service;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use corsair_stream::engine::{Endpoints, TaskOptions};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Requests as `path?query`, `Authorization`, another header and the body.
type Requests = Arc<Mutex<Vec<[String; 4]>>>;

async fn receive(State(requests): State<Requests>, request: Request) -> StatusCode {
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        let value = parts.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap()).to_owned()
    };
    let (authorization, other) = (header("authorization"), header("x-team"));
    let target = parts.uri.to_string();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    requests
        .lock()
        .unwrap()
        .push([target, authorization, other, body]);
    StatusCode::NO_CONTENT
}

/// A server that records requests, and its URL.
async fn server() -> (Requests, String) {
    let requests = Requests::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(receive).with_state(requests.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (requests, url)
}

/// Runs a task with a node, of which `URL` is the server's, over two lines. Returns the requests.
async fn requests(node: &str, endpoints: &str) -> Vec<[String; 4]> {
    let (requests, url) = server().await;
    let endpoints = Endpoints::parse(&endpoints.replace("URL", &url)).unwrap();
    let service = Service::with(|options| options.endpoints = endpoints);
    let text = format!("stream | from('m') | {}", node.replace("URL", &url));
    service.task("t", &text).await;
    // The canonical text means the same.
    let canonical = service.engine.status("t").unwrap().text;
    service.task("copy", &canonical).await;
    service.engine.delete("copy").await.unwrap();
    service.write("m,h=a v=1i 61\nm,h=b v=2i 62\n").await;
    service.engine.drain().await;
    std::mem::take(&mut *requests.lock().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn points_are_written_with_the_api_of_version_1() {
    let node = "influxdb_out('URL').database('my db').retentionPolicy('rp').measurement('n').precision('m').tag('h', 'x').basic('u', 'p').create()";
    let found = requests(node, "{}").await;
    let targets: Vec<&str> = found.iter().map(|[target, ..]| &**target).collect();
    assert_eq!(
        targets,
        [
            "/query?q=CREATE%20DATABASE%20%22my%20db%22",
            "/query?q=CREATE%20RETENTION%20POLICY%20%22rp%22%20ON%20%22my%20db%22%20DURATION%200s%20REPLICATION%201",
            "/write?precision=ns&db=my%20db&rp=rp"
        ]
    );
    let [_, authorization, _, body] = &found[2];
    assert_eq!(authorization, "Basic dTpw");
    assert_eq!(body, "n,h=x v=1i 60000000000\nn,h=x v=2i 60000000000\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn points_are_written_with_the_api_of_version_2() {
    let node = "influxDBOut().org('my org').token('secret').cluster('here')";
    let found = requests(node, r#"{"here": {"url": "URL/"}}"#).await;
    let [[target, authorization, _, body]] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(target, "/api/v2/write?precision=ns&org=my%20org&bucket=db");
    assert_eq!(authorization, "Token secret");
    assert_eq!(body, "m,h=a v=1i 61000000000\nm,h=b v=2i 62000000000\n");
    let endpoint = r#"{"influxdb": {"url": "URL", "token": "t", "scheme": "Token", "org": "o"}}"#;
    let found = requests(
        "influxDBOut().database('d').buffer(5000).flushInterval(1s)",
        endpoint,
    )
    .await;
    assert_eq!(found[0][0], "/api/v2/write?precision=ns&org=o&bucket=d");
    assert_eq!(found[0][1], "Token t");
}

#[tokio::test(flavor = "multi_thread")]
async fn posts_carry_headers_and_credentials_of_the_task_or_of_an_endpoint() {
    for (node, endpoints, authorization, team) in [
        (
            "httpPost('URL/hook').header('X-Team', 'db').token('t')",
            "{}",
            "Bearer t",
            "db",
        ),
        (
            "httpPost('URL/hook').basic('u', 'p')",
            "{}",
            "Basic dTpw",
            "",
        ),
        (
            "httpPost().endpoint('pager').header('X-Team', 'own')",
            r#"{"pager": {"url": "URL/hook", "username": "u", "password": "p"}}"#,
            "Basic dTpw",
            "own",
        ),
        (
            "alert().info(v > 1).post().endpoint('pager')",
            r#"{"pager": {"url": "URL/hook", "token": "t", "headers": [["X-Team", "db"]]}}"#,
            "Bearer t",
            "db",
        ),
    ] {
        let found = requests(node, endpoints).await;
        assert!(!found.is_empty(), "{node}");
        for [target, given, other, _] in &found {
            assert_eq!(
                (&**target, &**given, &**other),
                ("/hook", authorization, team),
                "{node}"
            );
        }
    }
}

#[tokio::test]
async fn receivers_that_cannot_be_reached_are_refused_with_a_reason() {
    for (node, part) in [
        (
            "httpPost().endpoint('pager')",
            "define it in the file of `--endpoints FILE`",
        ),
        ("influxDBOut()", "the endpoint 'influxdb'"),
        (
            "httpPost('http://a/').endpoint('b')",
            "leave out the URL or the endpoint",
        ),
        ("httpPost()", "a URL or an endpoint"),
        (
            "httpPost('http://a/').header('a b', 'c')",
            "is not the name of a header",
        ),
        (
            "httpPost('http://a/').header('a', 'b\nc: d')",
            "one line of text",
        ),
        (
            "httpPost('http://a/').header('a')",
            "takes 2 strings, not 1",
        ),
        (
            "httpPost('http://a/').overflow('never')",
            "expected 'block'",
        ),
        (
            "alert().info(v > 1).header('a', 'b')",
            "after `.post('URL')`",
        ),
        ("influxdb_out('nowhere')", "is not a URL"),
        (
            "influxdb_out('http://a/').precision('day')",
            "is not a precision",
        ),
    ] {
        let text = format!("stream | from('m') | {node}");
        let added = Service::new()
            .engine
            .add("t", &text, TaskOptions::default())
            .await;
        let said = added.expect_err(node).to_string();
        assert!(said.contains(part), "{node}: {said}");
    }
    for (endpoints, part) in [
        ("[]", "endpoints are JSON"),
        (r#"{"a": {"url": "x"}}"#, "`a`"),
        (
            r#"{"a": {"url": "http://x/", "username": "u"}}"#,
            "give `username` and `password`",
        ),
        (
            r#"{"a": {"url": "http://x/", "passwort": "u"}}"#,
            "passwort",
        ),
    ] {
        let said = Endpoints::parse(endpoints).unwrap_err().to_string();
        assert!(said.contains(part), "{endpoints}: {said}");
    }
}
