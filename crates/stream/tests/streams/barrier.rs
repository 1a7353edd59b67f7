//! `barrier`: windows of silent groups are completed by the wall clock.

use crate::http::Service;
use crate::sinks::counter;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// Waits until a counter of a node has this value.
async fn until(service: &Service, node: &str, name: &str, value: u64) {
    let begun = Instant::now();
    while counter(service, "t", node, name) < value {
        assert!(begun.elapsed() < Duration::from_secs(20), "{node}: {name}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the last edge of the task has passed on this many points.
async fn results(service: &Service, count: u64) {
    let begun = Instant::now();
    let passed = || {
        let status = service.engine.status("t").unwrap();
        status.edges.last().unwrap().statistics.received
    };
    while passed() < count {
        assert!(begun.elapsed() < Duration::from_secs(20), "no result");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const PERIOD: &str = "stream | from('m') | groupBy('h') | barrier().period(20ms) | window().period(10s).every(10s) | count('v') | log('c')";

// Guarantee: stream-2.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_a_silent_group_is_sent_when_the_wall_clock_is_beyond_it() {
    let service = Service::new();
    service.task("t", PERIOD).await;
    let then = seconds() - 20;
    service
        .write(&format!(
            "m,h=a v=1 {then}\nm,h=b v=1 {then}\nm,h=b v=1 {}\n",
            then + 1
        ))
        .await;
    results(&service, 2).await;
    // The watermark is beyond this point.
    service.write(&format!("m,h=a v=1 {}\n", then + 2)).await;
    until(&service, "barrier2", "late", 1).await;
    let end = then + 10;
    let mut logged = service.logged().await;
    logged.sort();
    assert_eq!(
        logged,
        [
            format!("m,h=a count=1i {end}000000000"),
            format!("m,h=b count=2i {end}000000000")
        ]
    );
}

// Guarantee: stream-2.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_group_advances_with_the_wall_clock_from_its_last_point_on() {
    for window in ["window().period(1s).every(1s)", "window(1s, every 1s)"] {
        let service = Service::new();
        let text =
            format!("stream | from('m') | barrier().idle(50ms) | {window} | sum('v') | log('s')");
        service.task("t", &text).await;
        let begun = Instant::now();
        service.write("m v=1i 100\nm v=2i 100\n").await;
        results(&service, 1).await;
        // A second of the points takes a second of silence.
        assert!(begun.elapsed() >= Duration::from_millis(900), "{window}");
        assert_eq!(
            service.logged().await,
            ["m sum=3i 101000000000"],
            "{window}"
        );
    }
}

// Guarantee: stream-9.
#[tokio::test(flavor = "multi_thread")]
async fn watermarks_survive_and_a_deleted_group_begins_again() {
    let before = Service::new();
    before.task("t", PERIOD).await;
    let then = seconds() - 20;
    before.write(&format!("m,h=a v=1 {then}\n")).await;
    results(&before, 1).await;
    let saved = before.engine.checkpoint().await;
    let after = Service::new();
    after.engine.restore(saved);
    after.task("t", PERIOD).await;
    after.write(&format!("m,h=a v=1 {then}\n")).await;
    until(&after, "barrier2", "late", 1).await;

    let deleting = Service::new();
    let text = PERIOD.replace("(20ms)", "(20ms).delete(TRUE)");
    deleting.task("t", &text).await;
    for count in 1..=2 {
        deleting.write(&format!("m,h=a v=1 {then}\n")).await;
        results(&deleting, count).await;
    }
    assert_eq!(counter(&deleting, "t", "barrier2", "late"), 0);
}
