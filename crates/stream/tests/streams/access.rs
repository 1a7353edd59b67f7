//! Tests of access control, and that every refusal is JSON.

use crate::http::Service;
use crate::program;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use corsair_stream::http::{HttpOptions, router, router_with};
use serde_json::Value;
use tower::ServiceExt;

const TASK: &str = r#"{"name": "t", "text": "stream | from('m')"}"#;

async fn asked(service: &Service, token: Option<&str>, request: Request<Body>) -> Response<Body> {
    let options = HttpOptions {
        token: token.map(str::to_owned),
        ..HttpOptions::default()
    };
    let router = router_with(service.engine.clone(), options);
    router.oneshot(request).await.unwrap()
}

async fn json(answer: Response<Body>) -> Value {
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).expect("refusals are JSON")
}

#[tokio::test]
async fn a_page_of_another_origin_adds_no_task_and_writes_no_point() {
    let service = Service::new();
    for (path, body) in [("/tasks", TASK), ("/write?db=db", "m v=1 1\n")] {
        for (origin, expected) in [
            ("http://evil.example", StatusCode::FORBIDDEN),
            ("null", StatusCode::FORBIDDEN),
            ("http://localhost:9092", StatusCode::OK),
        ] {
            let request = Request::post(path)
                .header("host", "localhost:9092")
                .header("origin", origin);
            let answer = asked(&service, None, request.body(body.into()).unwrap()).await;
            match expected {
                StatusCode::FORBIDDEN => {
                    assert_eq!(answer.status(), expected, "{path} from {origin}");
                    assert_eq!(json(answer).await["code"], "origin");
                }
                _ => assert!(answer.status().is_success(), "{path} from {origin}"),
            }
        }
    }
}

#[tokio::test]
async fn a_page_under_a_name_that_points_here_needs_the_token() {
    let service = Service::new();
    for (host, token, status) in [
        ("evil.example:9092", None, StatusCode::FORBIDDEN),
        ("streams.example", Some("sesame"), StatusCode::NO_CONTENT),
        ("127.0.0.1:9092", None, StatusCode::NO_CONTENT),
        ("[::1]:9092", None, StatusCode::NO_CONTENT),
        ("LocalHost", None, StatusCode::NO_CONTENT),
    ] {
        let request = Request::post("/write?db=db")
            .header("host", host)
            .header("origin", format!("http://{host}"))
            .header("authorization", "Bearer sesame");
        let answer = asked(&service, token, request.body("m v=1 1\n".into()).unwrap()).await;
        assert_eq!(answer.status(), status, "{host}");
    }
}

#[tokio::test]
async fn a_token_is_asked_of_every_request_but_ping() {
    let service = Service::new();
    let token = Some("open sesame");
    for path in ["/tasks", "/metrics", "/nowhere"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = asked(&service, token, request).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(json(answer).await["code"], "token");
    }
    let request = Request::get("/ping").body(Body::empty()).unwrap();
    let answer = asked(&service, token, request).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    for (header, expected) in [
        ("Bearer open sesame", StatusCode::NO_CONTENT),
        ("Token open sesame", StatusCode::NO_CONTENT),
        // base64 of `anybody:open sesame`
        ("Basic YW55Ym9keTpvcGVuIHNlc2FtZQ==", StatusCode::NO_CONTENT),
        ("Bearer open", StatusCode::UNAUTHORIZED),
        ("Basic !", StatusCode::UNAUTHORIZED),
        ("Bearer ", StatusCode::UNAUTHORIZED),
    ] {
        let request = Request::post("/write?db=db").header("authorization", header);
        let answer = asked(&service, token, request.body("m v=1 1\n".into()).unwrap()).await;
        assert_eq!(answer.status(), expected, "{header}");
    }
}

#[tokio::test]
async fn every_refusal_is_json_with_a_code_a_message_and_an_error() {
    let service = Service::new();
    for (method, path) in [
        ("POST", "/write?db=a&db=b"),
        ("POST", "/write?db=%ff"),
        ("POST", "/write"),
        ("POST", "/write?db=a&precision=days"),
        ("POST", "/tasks"),
        ("GET", "/tasks/none"),
        ("GET", "/tasks/%ff"),
        ("GET", "/tasks/none/%ff"),
        ("DELETE", "/tasks/%ff"),
        ("GET", "/tasks/x?format=1&format=2"),
        ("PUT", "/tasks"),
        ("GET", "/nowhere"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::from("nonsense")).unwrap();
        let answer = router(service.engine.clone())
            .oneshot(request)
            .await
            .unwrap();
        assert!(answer.status().is_client_error(), "{method} {path}");
        let refusal = json(answer).await;
        for key in ["code", "message", "error"] {
            assert!(refusal[key].is_string(), "{method} {path}: {refusal}");
        }
    }
}

#[cfg(unix)]
#[test]
fn the_token_of_a_file_is_asked_for() {
    let terminal = program::terminal();
    terminal.write("token", "open sesame\n");
    let server = program::Server::start(&terminal, "--token-file token");
    let answer = server.get("/tasks");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let answer = server.get("/tasks HTTP/1.1\r\nAuthorization: Bearer open sesame\r\nX: ");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    terminal.write("empty", "\n");
    for (args, part) in [
        ("--token-file empty", "is empty"),
        ("--token-file none", "none"),
        ("--token-file token --token t", "cannot be used with"),
    ] {
        let said = terminal.refuse(&format!("serve --addr 127.0.0.1:0 {args}"));
        assert!(said.contains(part), "{args}: {said}");
    }
}
