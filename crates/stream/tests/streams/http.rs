//! Requests without a socket.

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use corsair::Executor;
use corsair_stream::engine::{Engine, EngineOptions, TaskOptions};
use corsair_stream::http::router;
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;

/// The output of the `log` nodes of a service.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Clears the output.
    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    pub fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(String::from).collect()
    }
}

/// An engine and its routes.
pub struct Service {
    pub engine: Engine,
    pub log: Log,
}

impl Service {
    pub fn new() -> Service {
        Service::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut EngineOptions)) -> Service {
        let log = Log::default();
        let mut options = EngineOptions {
            log: Arc::new(Mutex::new(log.clone())),
            ..EngineOptions::default()
        };
        change(&mut options);
        Service {
            engine: Engine::start(options).unwrap(),
            log,
        }
    }

    pub fn on(executor: Executor) -> Service {
        Service::with(|options| options.executor = executor)
    }

    /// Starts a task, which must succeed.
    pub async fn task(&self, name: &str, text: &str) {
        let added = self.engine.add(name, text, TaskOptions::default()).await;
        added.unwrap_or_else(|error| panic!("{error}"));
    }

    pub async fn send(&self, request: Request<Body>) -> (StatusCode, Vec<u8>) {
        let answer = router(self.engine.clone()).oneshot(request).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, body.to_vec())
    }

    pub async fn request(&self, method: Method, path: &str, body: &str) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::from(body.to_string())).unwrap();
        let (status, body) = self.send(request).await;
        let value = match body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&body).expect("answers are JSON"),
        };
        (status, value)
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.request(Method::GET, path, "").await
    }

    /// Writes lines, in seconds, that must all be accepted. Like every client, it repeats a write that was refused because
    /// the queue of a task was full.
    pub async fn write(&self, lines: &str) {
        let path = "/write?db=db&precision=s";
        for _ in 0..1_000 {
            let (status, body) = self.request(Method::POST, path, lines).await;
            if status == StatusCode::NO_CONTENT {
                return;
            }
            assert_eq!(body["code"], "full", "{status} {body}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the queue of a task stays full");
    }

    /// Waits until all points have been processed, and returns the logged lines without their
    /// prefixes.
    pub async fn logged(self) -> Vec<String> {
        self.engine.drain().await;
        let lines = self.log.lines();
        assert!(self.engine.close().await.unwrap().is_ok());
        lines
            .iter()
            .map(|line| line.split_once(' ').expect("a prefix").1.to_string())
            .collect()
    }
}
