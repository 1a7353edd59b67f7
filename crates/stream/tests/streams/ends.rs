//! Tests of the ends of tasks and engines: drained, deleted, failed, dropped.

use crate::http::Service;
use crate::sinks::counter;
use axum::http::{Method, StatusCode};
use corsair::Executor;
use corsair::edge::Overflow;
use corsair_stream::engine::{Engine, EngineOptions, StartError, TaskOptions};
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

// Guarantee: stream-1.
#[tokio::test]
async fn what_was_accepted_goes_its_way_on_every_executor() {
    for executor in [Executor::Tokio, Executor::Threads, Executor::Pool] {
        let service = Service::on(executor);
        let text = "stream | from('m') | where(v > 0) | window(10s, every 10s) | sum(v) | log()";
        for task in 0..20 {
            service.task(&format!("t{task}"), text).await;
        }
        for second in 0..100 {
            service.write(&format!("m v=1i {second}\n")).await;
        }
        let logged = service.logged().await;
        assert_eq!(logged.len(), 20 * 10, "{executor:?}");
        assert!(
            logged.iter().all(|line| line.starts_with("m sum=10i ")),
            "{logged:?}"
        );
    }
}

#[tokio::test]
async fn virtual_time_is_refused() {
    let options = EngineOptions {
        executor: Executor::Virtual,
        ..EngineOptions::default()
    };
    assert!(matches!(Engine::start(options), Err(StartError::Virtual)));
}

#[tokio::test]
async fn nothing_is_accepted_once_the_engine_closes() {
    let service = Service::new();
    service.engine.drain().await;
    let (status, refusal) = service
        .request(Method::POST, "/write?db=db", "m v=1 1\n")
        .await;
    assert_eq!(
        (status, &refusal["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("shutting_down"))
    );
    let body = r#"{"name": "t", "text": "stream | from()"}"#;
    let (status, _) = service.request(Method::POST, "/tasks", body).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(service.engine.close().await.unwrap().is_ok());
    assert!(service.engine.close().await.is_none());
}

// Guarantee: stream-6.
#[tokio::test]
async fn a_slow_task_that_drops_keeps_nobody_waiting() {
    let service = Service::with(|options| {
        options.sink_memory = 1;
        options.log_overflow = Overflow::Block;
    });
    let options = TaskOptions {
        capacity: NonZeroUsize::MIN,
        overflow: Overflow::DropNewest,
    };
    // Nothing listens on this port, so each batch takes more than a second.
    let slow = "stream | from('m') | http_post('http://127.0.0.1:9/')";
    service.engine.add("slow", slow, options).await.unwrap();
    service.task("quick", "stream | from('m') | log()").await;
    for second in 0..50 {
        service.write(&format!("m v=1 {second}\n")).await;
    }
    let dropped = || {
        let status = service.engine.status("slow").unwrap();
        let edges = status.edges.iter();
        let dropped = edges.map(|edge| edge.statistics.dropped_by_overflow);
        dropped.sum::<u64>() + counter(&service, "slow", "http_post1", "dropped")
    };
    while dropped() == 0 {
        tokio::task::yield_now().await;
    }
    service.engine.delete("slow").await.unwrap();
    assert_eq!(service.logged().await.len(), 50);
}

#[tokio::test]
async fn deleting_a_task_ends_its_nodes_with_points_on_its_edges() {
    let service = Service::new();
    let slow = "stream | from('m') | http_post('http://127.0.0.1:9/')";
    service.task("slow", slow).await;
    for second in 0..20 {
        service.write(&format!("m v=1 {second}\n")).await;
    }
    service.engine.delete("slow").await.unwrap();
    assert_eq!(service.get("/tasks/slow").await.0, StatusCode::NOT_FOUND);
    // The name can be used again.
    service.task("slow", "stream | from('m')").await;
    assert!(service.engine.close().await.unwrap().is_ok());
}

// Guarantee: stream-1.
#[tokio::test]
async fn tasks_come_and_go_while_points_are_written() {
    let service = Service::new();
    service.task("stays", "stream | from('m')").await;
    let writer = async {
        for second in 0..300 {
            service.write(&format!("m v=1 {second}\n")).await;
        }
    };
    let changes = async {
        for round in 0..50 {
            let name = format!("t{}", round % 3);
            service
                .task(&name, "stream | from('m') | where(v > 0)")
                .await;
            tokio::task::yield_now().await;
            service.engine.delete(&name).await.unwrap();
        }
    };
    tokio::join!(writer, changes);
    service.engine.drain().await;
    let stays = service.engine.status("stays").unwrap();
    assert_eq!(stays.edges[0].statistics.received, 300);
}

#[tokio::test]
async fn an_engine_that_everybody_has_dropped_ends_its_run() {
    let log = Arc::new(Mutex::new(Vec::<u8>::new()));
    let options = EngineOptions {
        log: log.clone(),
        ..EngineOptions::default()
    };
    let engine = Engine::start(options).unwrap();
    let text = "stream | from('m') | log()";
    let added = engine.add("t", text, TaskOptions::default()).await;
    assert!(added.is_ok());
    drop(engine);
    // The task's nodes hold the log until they end.
    let ended = async {
        while Arc::strong_count(&log) > 1 {
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert!(ended.is_ok(), "its nodes still live");
}
