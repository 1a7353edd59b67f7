//! Tests of the limits on the memory of nodes and requests.

use crate::http::Service;
use crate::sinks::counter;
use axum::http::{Method, StatusCode};

const MB: usize = 1 << 20;

/// A service whose nodes may keep a megabyte each.
fn small() -> Service {
    Service::with(|options| {
        options.node_memory = MB;
        options.max_line = 1 << 20;
    })
}

/// A line of a group with a name of 20 KB, and a string.
fn line(group: usize, time: usize, length: usize) -> String {
    let string = "s".repeat(length);
    format!("m,host={group:020000} v={time}i,s=\"{string}\" {time}\n")
}

/// Writes a hundred groups with a point of 40 KB each and returns how many points a node left out.
async fn left_out(service: &Service, text: &str, node: &str) -> u64 {
    service.task("t", text).await;
    for group in 0..100 {
        service.write(&line(group, 1, 20_000)).await;
    }
    service.engine.settle().await;
    counter(service, "t", node, "over_node_memory")
}

#[tokio::test]
async fn a_window_keeps_no_more_bytes_than_a_node_may_and_has_room_again_once_they_are_gone() {
    let service = small();
    let text = "stream | from('m') | groupBy('host') | window(10s, every 10s) | count(v) | log()";
    let over = left_out(&service, text, "window2").await;
    assert!((50..100).contains(&over), "{over} of 100 points");
    // The first groups' windows are emitted and free their memory.
    let kept = 100 - over as usize;
    for group in 0..kept {
        service.write(&line(group, 11, 1)).await;
    }
    service.engine.settle().await;
    assert_eq!(service.log.lines().len(), kept);
    for group in 0..100 {
        service.write(&line(group, 21, 1)).await;
    }
    service.engine.settle().await;
    let late = counter(&service, "t", "window2", "over_node_memory") - over;
    assert!(late < 100, "some of the late points fit");
}

#[tokio::test]
async fn alerts_and_what_is_shown_keep_no_more_bytes_than_a_node_may() {
    for (nodes, node) in [
        ("alert().crit(v > 0) | log()", "alert2"),
        ("http_out('seen')", "http_out2"),
    ] {
        let service = small();
        let text = format!("stream | from('m') | groupBy('host') | {nodes}");
        let over = left_out(&service, &text, node).await;
        assert!((20..100).contains(&over), "{node}: {over} of 100 points");
    }
}

#[tokio::test]
async fn a_join_leaves_out_the_oldest_points_for_which_there_is_no_memory() {
    let service = small();
    let text = "var a = stream | from('m')
                var b = stream | from('other')
                a | join(b).as('a', 'b') | log()";
    service.task("t", text).await;
    for time in 1..100 {
        service.write(&line(0, time, 20_000)).await;
    }
    service.engine.settle().await;
    let unmatched = counter(&service, "t", "join2", "unmatched");
    assert!((50..99).contains(&unmatched), "{unmatched}");
    // The newest is still there.
    service.write("other w=1i 99\n").await;
    service.engine.settle().await;
    let logged = service.log.lines();
    assert_eq!(logged.len(), 1);
    assert!(logged[0].contains("b.w=1i"), "{logged:?}");
}

#[tokio::test]
async fn a_body_of_which_every_line_needs_a_column_of_its_own_is_not_taken_whole() {
    let service = Service::with(|options| options.body_memory = 4 * MB);
    service.task("t", "stream | from() | http_out('x')").await;
    let measurements: String = (0..100_000).map(|at| format!("m{at} v=1\n")).collect();
    let keys: String = (0..100_000).map(|at| format!("m v{at}=1\n")).collect();
    for body in [measurements, keys] {
        assert!(body.len() < 2 * MB);
        let (status, refusal) = service.request(Method::POST, "/write?db=db", &body).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{refusal}");
        assert!(refusal["message"].to_string().contains("smaller parts"));
    }
    assert_eq!(service.engine.totals().0, 0, "nothing was written");
    service.write("m v=1 1\n").await;
}

#[tokio::test]
async fn one_task_too_many_is_refused() {
    let service = Service::with(|options| options.max_tasks = 1);
    service.task("one", "stream | from('m')").await;
    let two = r#"{"name": "two", "text": "stream | from('m')"}"#;
    let (status, refusal) = service.request(Method::POST, "/tasks", two).await;
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE);
    assert_eq!(refusal["code"], "too_many_tasks");
    service.engine.delete("one").await.unwrap();
    let (status, _) = service.request(Method::POST, "/tasks", two).await;
    assert_eq!(status, StatusCode::CREATED);
}
