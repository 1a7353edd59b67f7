//! Tests of `stats` and `deadman`: reports about missing points.

use crate::http::Service;
use std::time::{Duration, Instant};

/// Keeps writing `lines` until a logged line satisfies `is`, and returns it.
async fn until(service: &Service, lines: &str, is: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        if let Some(line) = service.log.lines().into_iter().find(|line| is(line)) {
            return line;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it never comes");
        if !lines.is_empty() {
            service.write(lines).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// Guarantee: stream-5.
#[tokio::test]
async fn a_stream_that_falls_silent_is_dead_and_alive_again_with_its_points() {
    let service = Service::new();
    let text = "stream | from('m') | groupBy('h')
        | deadman(0.0, 20ms).levelField('l').messageField('m').stateChangesOnly() | log()";
    service.task("watch", text).await;
    service.write("m,h=a v=1 1\n").await;
    let dead = until(&service, "", |line| line.contains("stats,h=a ")).await;
    assert!(dead.contains("l=\"CRITICAL\""), "{dead}");
    assert!(
        dead.contains("h=a:groupBy1 for task 'watch' is dead: 0.000 points/20ms."),
        "{dead}"
    );
    let alive = until(&service, "m,h=a v=1 1\n", |line| line.contains("l=\"OK\"")).await;
    assert!(alive.contains("is alive: "), "{alive}");
}

// Guarantee: stream-5.
#[tokio::test]
async fn a_stream_that_has_never_had_a_point_is_dead() {
    let service = Service::new();
    let text = "stream | from('m') | deadman(0.0, 10ms).id('x').message('{{ .ID }} {{ .Level }}').messageField('m') | log()";
    service.task("watch", text).await;
    let dead = until(&service, "", |line| line.contains("stats ")).await;
    assert!(dead.contains("m=\"x CRITICAL\""), "{dead}");
    assert!(dead.contains("emitted=0.0"), "{dead}");
}

#[tokio::test]
async fn more_conditions_must_hold_beside_the_silence() {
    let service = Service::new();
    for (name, condition) in [("never", "FALSE"), ("always", "TRUE")] {
        let text =
            format!("stream | from('m') | deadman(0.0, 10ms, lambda: {condition}) | log('{name}')");
        service.task(name, &text).await;
    }
    for _ in 0..3 {
        until(&service, "", |line| line.starts_with("always ")).await;
        service.log.clear();
    }
    assert!(
        service
            .log
            .lines()
            .iter()
            .all(|line| !line.starts_with("never "))
    );
}

// Guarantee: stream-5.
#[tokio::test]
async fn a_clock_that_strikes_faster_than_its_node_works_keeps_no_point_waiting() {
    let service = Service::new();
    let text = "stream | from('m') | groupBy('h') | stats(1ms)";
    service.task("t", text).await;
    for second in 1..10 {
        // A row for each of that many groups takes longer than a millisecond.
        let lines: String = (0..5_000)
            .map(|at| format!("m,h={at} v=1 {second}\n"))
            .collect();
        service.write(&lines).await;
        let settled = tokio::time::timeout(Duration::from_secs(60), service.engine.settle());
        settled.await.expect("the points go their way");
    }
}

#[tokio::test]
async fn stats_count_the_points_of_each_group_and_pass_none_on() {
    let service = Service::new();
    let text = "stream | from('m') | groupBy('h') | stats(10ms).align() | http_out('x')";
    service.task("t", text).await;
    service
        .write("m,h=a v=1 1\nm,h=b v=1 1\nm,h=b v=1 2\n")
        .await;
    let begun = Instant::now();
    loop {
        let (_, shown) = service.get("/tasks/t/x").await;
        let series = shown["series"].as_array().unwrap();
        let of = |host: &str| series.iter().find(|series| series["tags"]["h"] == host);
        if let (Some(a), Some(b)) = (of("a"), of("b")) {
            assert_eq!(a["columns"], serde_json::json!(["time", "emitted"]));
            assert_eq!(
                (&a["values"][0][1], &b["values"][0][1]),
                (&1.into(), &2.into())
            );
            // Times are those of the wall clock, at multiples of the interval.
            let time = a["values"][0][0].as_i64().unwrap();
            assert!(
                time > 1_700_000_000_000_000_000 && time % 10_000_000 == 0,
                "{time}"
            );
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{shown}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_task_with_a_clock_ends_when_the_engine_is_closed() {
    for executor in [
        corsair::Executor::Tokio,
        corsair::Executor::Threads,
        corsair::Executor::Pool,
    ] {
        let service = Service::on(executor);
        let text = "stream | from('m') | stats(10ms) | log()";
        service.task("ticks", text).await;
        service
            .task(
                "rests",
                "stream | from('m') | deadman(0.0, 300d) | log('x')",
            )
            .await;
        until(&service, "", |line| line.contains("emitted=0i")).await;
        assert!(
            service.engine.close().await.unwrap().is_ok(),
            "{executor:?}"
        );
    }
}
