//! Tests of the routing of points to tasks.

use crate::http::Service;
use axum::http::{Method, StatusCode};

/// The points that the first node of a task has got.
fn got(service: &Service, task: &str) -> u64 {
    let status = service.engine.status(task).unwrap();
    status
        .edges
        .iter()
        .filter(|edge| edge.from == "stream")
        .map(|edge| edge.statistics.received)
        .sum()
}

#[tokio::test]
async fn a_task_gets_the_points_of_its_database_policy_and_measurement() {
    let service = Service::new();
    for (name, from) in [
        ("all", "from()"),
        ("m", "from().measurement('m')"),
        ("db1", "from().database('db1')"),
        ("short", "from().retentionPolicy('short')"),
        (
            "exact",
            "from().database('db1').retentionPolicy('short').measurement('m')",
        ),
        ("other", "from().database('db1').measurement('other')"),
    ] {
        service.task(name, &format!("stream | {from}")).await;
    }
    for (target, lines) in [
        ("db=db1", "m v=1 1\nn v=1 1\n"),
        ("db=db1&rp=short", "m v=1 1\nn v=1 1\nm v=1 2\n"),
        ("db=db2&rp=short", "m v=1 1\n"),
    ] {
        let path = format!("/write?{target}");
        let (status, _) = service.request(Method::POST, &path, lines).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }
    service.engine.drain().await;
    let counts = ["all", "m", "db1", "short", "exact", "other"].map(|task| got(&service, task));
    assert_eq!(counts, [6, 4, 5, 4, 2, 0]);
}

#[tokio::test]
async fn a_write_without_a_policy_goes_to_the_default_one() {
    let service = Service::with(|options| options.default_policy = "week".into());
    service
        .task("t", "stream | from().retentionPolicy('week')")
        .await;
    service.write("m v=1 1\n").await;
    service.engine.drain().await;
    assert_eq!(got(&service, "t"), 1);
}

#[tokio::test]
async fn a_deleted_task_gets_nothing_more_and_others_go_on() {
    let service = Service::new();
    service.task("gone", "stream | from('m') | log()").await;
    service.task("stays", "stream | from('m') | log()").await;
    service.engine.delete("gone").await.unwrap();
    service.write("m v=1 1\n").await;
    assert_eq!(service.logged().await.len(), 1);
}

#[tokio::test]
async fn both_sides_of_a_diamond_see_every_point() {
    let service = Service::new();
    let text = "var m = stream | from('m')
                m | where(v < 3) | log()
                m | where(v >= 3) | log()";
    service.task("t", text).await;
    let lines: String = (0..10).map(|v| format!("m v={v} {v}\n")).collect();
    service.write(&lines).await;
    assert_eq!(service.logged().await.len(), 10);
}
