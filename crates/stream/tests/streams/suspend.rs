//! An engine that is stopped and started again resumes its windows and loses nothing that it accepted.

use crate::http::Service;
use crate::program::{Server, terminal};
use crate::sinks::{Hung, Stuck};
use axum::Router;
use axum::routing::post;
use corsair_stream::engine::{EngineSnapshot, TaskOptions};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Stops a service and starts another with the same tasks from its saved state.
async fn restarted(service: Service, deadline: Duration) -> (Service, Vec<String>) {
    let saved = service.engine.suspend(deadline).await;
    let logged = service.log.lines();
    let tasks = service.engine.statuses();
    assert!(service.engine.close().await.unwrap().is_ok());
    let saved = EngineSnapshot::from_bytes(&saved.to_bytes()).unwrap();
    let next = Service::new();
    next.engine.restore(saved);
    for task in tasks {
        let added = next
            .engine
            .add(&task.name, &task.text, TaskOptions::default());
        added.await.unwrap();
    }
    (next, logged)
}

const LONG: Duration = Duration::from_secs(60);

// Guarantee: stream-8.
#[tokio::test]
async fn a_window_that_a_stop_cuts_fires_no_alert_and_is_whole_after_the_next_start() {
    let service = Service::new();
    let text = "stream | from('m') | groupBy('host') | window(10s, every 10s) | count(v)
                | alert().crit(count < 3) | log()";
    service.task("t", text).await;
    service
        .write("m,host=a v=1 1\nm,host=a v=1 2\nm,host=b v=1 2\n")
        .await;
    let (service, logged) = restarted(service, LONG).await;
    assert!(logged.is_empty(), "{logged:?}");
    service
        .write("m,host=a v=1 3\nm,host=a v=1 11\nm,host=b v=1 12\n")
        .await;
    service.engine.settle().await;
    let logged = service.log.lines();
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0].contains("m,host=b count=1i"), "{logged:?}");
}

// Guarantee: stream-8.
#[tokio::test]
async fn overlapping_windows_go_on_as_if_nothing_had_happened() {
    let lines: Vec<String> = (1..60).map(|at| format!("m v={at}i {at}\n")).collect();
    let text = "stream | from('m') | window(20s, every 5s) | sum(v) | log()";
    let whole = Service::new();
    whole.task("t", text).await;
    whole.write(&lines.concat()).await;
    let whole = whole.logged().await;
    for cut in [1, 7, 20, 33, 58] {
        let service = Service::new();
        service.task("t", text).await;
        service.write(&lines[..cut].concat()).await;
        let (service, mut logged) = restarted(service, LONG).await;
        service.write(&lines[cut..].concat()).await;
        for line in &mut logged {
            *line = line.split_once(' ').unwrap().1.to_owned();
        }
        logged.extend(service.logged().await);
        assert_eq!(logged, whole, "cut at {cut}");
    }
}

#[tokio::test]
async fn points_without_a_partner_and_levels_of_alerts_are_kept() {
    let service = Service::new();
    let join = "var a = stream | from('a') | groupBy('h')
                var b = stream | from('b') | groupBy('h')
                a | join(b).as('a', 'b') | log('joined')";
    service.task("join", join).await;
    service
        .task(
            "alert",
            "stream | from('m') | alert().crit(v > 10).stateChangesOnly().levelField('level').previousField('previous') | log('alert')",
        )
        .await;
    service
        .write("a,h=x v=1i 1\na,h=x v=2i 2\nm v=11 1\n")
        .await;
    let (service, logged) = restarted(service, LONG).await;
    assert_eq!(logged.len(), 1, "the alert: {logged:?}");
    service
        .write("b,h=x v=3i 1\nb,h=x v=4i 2\nm v=12 2\nm v=1 3\n")
        .await;
    let mut logged = service.logged().await;
    logged.sort();
    assert_eq!(logged.len(), 3, "{logged:?}");
    assert!(logged[0].contains("a.v=1i,b.v=3i"), "{logged:?}");
    assert!(logged[1].contains("a.v=2i,b.v=4i"), "{logged:?}");
    assert!(
        logged[2].contains("level=\"OK\",previous=\"CRITICAL\""),
        "{logged:?}"
    );
}

// Guarantee: stream-8.
#[tokio::test]
async fn a_derivative_goes_on_from_the_point_before_the_stop() {
    let service = Service::new();
    let text = "stream | from('m') | groupBy('h') | derivative('v') | log()";
    service.task("t", text).await;
    service.write("m,h=a v=1 1\nm,h=b v=5 1\n").await;
    let (service, logged) = restarted(service, LONG).await;
    assert!(logged.is_empty(), "{logged:?}");
    service.write("m,h=a v=7 4\n").await;
    assert_eq!(service.logged().await, ["m,h=a v=2.0 4000000000"]);
}

#[tokio::test]
async fn a_stop_does_not_lower_the_rate_of_points() {
    let service = Service::new();
    let text = "stream | from('m') | stats(200ms) | derivative('emitted').unit(200ms) | log()";
    service.task("t", text).await;
    let points: String = (0..100).map(|at| format!("m v=1 {at}\n")).collect();
    service.write(&points).await;
    let rates = |service: &Service| -> Vec<f64> {
        let rate = |line: String| -> f64 {
            let rate = line.split_once("emitted=").and_then(|(_, rest)| {
                let (rate, _) = rest.split_once([',', ' '])?;
                rate.parse().ok()
            });
            rate.unwrap_or_else(|| panic!("{line}"))
        };
        service.log.lines().into_iter().map(rate).collect()
    };
    while rates(&service).is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stop = Duration::from_secs(3);
    let saved = service.engine.suspend(LONG).await.to_bytes();
    assert!(service.engine.close().await.unwrap().is_ok());
    tokio::time::sleep(stop).await;
    let service = Service::new();
    service
        .engine
        .restore(EngineSnapshot::from_bytes(&saved).unwrap());
    service.task("t", text).await;
    service.write(&points).await;
    while rates(&service).len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Over the stop a hundred points would be at most 100 × 200 ms ÷ 3 s.
    let lowered = |rate: &f64| *rate > 0.0 && *rate <= 100.0 * 0.2 / 3.0;
    let rates = rates(&service);
    assert!(!rates.iter().any(lowered), "{rates:?}");
}

// Guarantee: stream-8.
#[tokio::test]
async fn a_stream_that_falls_silent_during_a_stop_is_dead_after_it() {
    let service = Service::new();
    let text = "stream | from('m') | groupBy('h') | deadman(0.0, 50ms) | log()";
    service.task("t", text).await;
    service.write("m,h=a v=1 1\n").await;
    service.engine.settle().await;
    let (service, _) = restarted(service, LONG).await;
    for _ in 0..6_000 {
        let lines = service.log.lines();
        if lines.iter().any(|line| line.contains("stats,h=a ")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the line was never logged: {:?}", service.log.lines());
}

// Guarantee: stream-8.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_hung_receiver_has_not_taken_when_time_is_up_is_posted_after_the_next_start() {
    let hung = Hung::new();
    let service = Service::with(|options| options.sink_memory = 500);
    let text = format!("stream | from('m') | http_post('{}')", hung.1);
    service.task("t", &text).await;
    for at in 0..50 {
        service.write(&format!("m v={at}i {at}\n")).await;
    }
    let saved = service.engine.suspend(Duration::from_millis(50)).await;
    let address = hung
        .1
        .trim_start_matches("http://")
        .trim_end_matches("/hook")
        .to_owned();
    drop(hung);
    // The next start finds a receiver that listens at the same address.
    let received = Arc::new(Mutex::new(String::new()));
    let receive = {
        let received = received.clone();
        move |body: String| async move { received.lock().unwrap().push_str(&body) }
    };
    let listener = tokio::net::TcpListener::bind(&address).await.unwrap();
    let routes = Router::new().route("/hook", post(receive));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let next = Service::new();
    next.engine.restore(saved);
    next.task("t", &text).await;
    next.engine.drain().await;
    let received = received.lock().unwrap();
    for at in 0..50 {
        let value = format!("{},{at}]", at * 1_000_000_000_i64);
        assert!(received.contains(&value), "{value} is not in {received}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_a_stuck_log_has_not_taken_are_logged_after_the_next_start() {
    let stuck = Stuck::default();
    let log = stuck.clone();
    let service = Service::with(|options| options.log = Arc::new(Mutex::new(log)));
    service.task("t", "stream | from('m') | log()").await;
    for at in 0..20 {
        service.write(&format!("m v={at}i {at}\n")).await;
    }
    let saved = service.engine.suspend(Duration::from_millis(50)).await;
    stuck.release();
    let next = Service::new();
    next.engine.restore(saved);
    next.task("t", "stream | from('m') | log()").await;
    let logged = next.logged().await;
    assert_eq!(logged.len(), 20, "{logged:?}");
}

#[tokio::test]
async fn what_was_saved_of_another_text_is_left_out() {
    let service = Service::new();
    service
        .task(
            "t",
            "stream | from('m') | window(10s, every 10s) | sum(v) | log()",
        )
        .await;
    service.write("m v=1i 1\n").await;
    let saved = service.engine.suspend(LONG).await;
    assert_eq!(saved.points(), 1);
    let next = Service::new();
    next.engine.restore(saved);
    next.task(
        "t",
        "stream | from('m') | window(20s, every 20s) | sum(v) | log()",
    )
    .await;
    next.write("m v=2i 2\n").await;
    assert_eq!(next.logged().await, ["m sum=2i 20000000000"]);
}

#[tokio::test]
async fn what_was_saved_for_a_task_that_is_not_there_is_saved_again() {
    let service = Service::new();
    service
        .task(
            "t",
            "stream | from('m') | window(10s, every 10s) | sum(v) | log()",
        )
        .await;
    service.write("m v=1i 1\n").await;
    let saved = service.engine.suspend(LONG).await;
    let without = Service::new();
    without.engine.restore(saved);
    let saved = without.engine.suspend(LONG).await;
    assert_eq!(saved.points(), 1);
}

// Guarantee: stream-8.
#[cfg(unix)]
#[test]
fn a_task_that_was_added_after_others_were_deleted_keeps_its_state() {
    let terminal = terminal();
    let mut server = Server::start(&terminal, "--data data");
    for name in ["a", "b", "c", "t"] {
        let text = "stream | from('m') | window(10s, every 10s) | sum(v) | http_out('sums')";
        let task = serde_json::json!({ "name": name, "text": text }).to_string();
        let added = server.post("/tasks", &task);
        assert!(added.starts_with("HTTP/1.1 201"), "{added}");
        if name != "t" {
            let deleted = server.send("DELETE", &format!("/tasks/{name}"), "");
            assert!(deleted.starts_with("HTTP/1.1 204"), "{deleted}");
        }
    }
    server.post("/write?db=db&precision=s", "m v=1i 1\n");
    assert_eq!(server.end("-TERM").2, Some(0));
    let server = Server::start(&terminal, "--data data");
    server.post("/write?db=db&precision=s", "m v=2i 2\nm v=0i 11\n");
    let begun = std::time::Instant::now();
    loop {
        let sums = server.get("/tasks/t/sums");
        if sums.contains("[[10000000000,3]]") {
            break;
        }
        assert!(begun.elapsed().as_secs() < 20, "{sums}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
