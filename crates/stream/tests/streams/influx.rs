//! Tests of requests other than writes that clients of InfluxDB send.

use crate::http::Service;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use corsair_stream::http::router;
use tower::ServiceExt;

#[tokio::test]
async fn a_bucket_is_a_database_and_perhaps_a_policy() {
    let service = Service::new();
    let text = "stream | from().database('db').retentionPolicy('week') | log()";
    service.task("t", text).await;
    for (path, status) in [
        (
            "/api/v2/write?bucket=db/week&org=any&precision=s",
            StatusCode::NO_CONTENT,
        ),
        (
            "/api/v2/write?bucket=db&org=any&precision=s",
            StatusCode::NO_CONTENT,
        ),
        ("/api/v2/write?org=any", StatusCode::BAD_REQUEST),
        ("/api/v2/write?bucket=", StatusCode::BAD_REQUEST),
    ] {
        let (found, _) = service.request(Method::POST, path, "m v=1 1\n").await;
        assert_eq!(found, status, "{path}");
    }
    assert_eq!(service.logged().await.len(), 1, "of the policy `week`");
}

#[tokio::test]
async fn ping_and_health_name_a_version() {
    let service = Service::new();
    for path in ["/ping", "/health"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = router(service.engine.clone())
            .oneshot(request)
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}");
        let version = &answer.headers()["x-influxdb-version"];
        assert!(version.to_str().unwrap().starts_with("1."), "{path}");
    }
}

#[tokio::test]
async fn databases_need_not_be_made_and_nothing_can_be_asked() {
    let service = Service::new();
    for (method, path, body, status) in [
        (
            Method::POST,
            "/query?q=CREATE%20DATABASE%20%22telegraf%22",
            "",
            StatusCode::OK,
        ),
        (
            Method::GET,
            "/query?q=show+databases&db=x",
            "",
            StatusCode::OK,
        ),
        (
            Method::POST,
            "/query",
            "q=CREATE+DATABASE+a%3B+create+retention+policy+b",
            StatusCode::OK,
        ),
        (
            Method::GET,
            "/query?q=SELECT%20*%20FROM%20cpu",
            "",
            StatusCode::BAD_REQUEST,
        ),
        (
            Method::GET,
            "/query?q=DROP%20DATABASE%20x",
            "",
            StatusCode::BAD_REQUEST,
        ),
        (Method::POST, "/query", "", StatusCode::BAD_REQUEST),
    ] {
        let (found, answer) = service.request(method, path, body).await;
        assert_eq!(found, status, "{path} {body}");
        let key = if found.is_success() {
            "results"
        } else {
            "error"
        };
        assert!(!answer[key].is_null(), "{answer}");
    }
}
