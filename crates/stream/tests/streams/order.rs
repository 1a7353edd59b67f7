//! The order of points does not depend on how lines are divided into writes.

use crate::http::Service;

/// Returns the lines that a task logs if `together` lines are written in each body.
async fn logged(text: &str, lines: &[String], together: usize) -> Vec<String> {
    let service = Service::new();
    service.task("t", text).await;
    for body in lines.chunks(together) {
        service.write(&body.concat()).await;
    }
    service.logged().await
}

// Guarantee: stream-2.
#[tokio::test]
async fn a_from_without_a_measurement_gets_all_points_in_the_order_of_their_lines() {
    let measurement = |at: usize| ["cpu", "mem", "disk,host=a"][at % 7 % 3];
    let line = |at: usize| format!("{} v={at}i {at}\n", measurement(at));
    let lines: Vec<String> = (1..200).map(line).collect();
    let text = "stream | from() | window(10s, every 10s) | sum(v) | log()";
    let one_by_one = logged(text, &lines, 1).await;
    let sums = |logged: &[String]| -> Vec<String> {
        let sum = |line: &String| line.split_once("sum=").unwrap().1.to_owned();
        logged.iter().map(sum).collect()
    };
    assert_eq!(one_by_one.len(), 20);
    for together in [2, 3, 17, 1000] {
        let other = logged(text, &lines, together).await;
        assert_eq!(sums(&other), sums(&one_by_one), "{together} lines a body");
    }
}

#[tokio::test]
async fn no_point_is_late_because_another_measurement_came_first_in_the_body() {
    let service = Service::new();
    service
        .task("t", "stream | from() | window(10s, every 10s) | count(v)")
        .await;
    let lines: String = (1..100)
        .map(|at| format!("a v=1 {at}\nb v=1 {at}\n"))
        .collect();
    service.write(&lines).await;
    service.engine.settle().await;
    let status = service.engine.status("t").unwrap();
    let late = status.nodes[1]
        .counters
        .iter()
        .find(|(name, _)| *name == "late");
    assert_eq!(late.unwrap().1, 0);
}

#[tokio::test]
async fn points_in_the_gap_between_two_windows_are_not_late() {
    let service = Service::new();
    service
        .task("t", "stream | from('m') | window(2s, every 10s) | count(v)")
        .await;
    let lines: String = (1..30).map(|at| format!("m v=1 {at}\n")).collect();
    service.write(&lines).await;
    service.write("m v=1 3\n").await;
    service.engine.settle().await;
    let status = service.engine.status("t").unwrap();
    let count = |counter: &str| {
        let found = status.nodes[1]
            .counters
            .iter()
            .find(|(name, _)| *name == counter);
        found.unwrap().1
    };
    assert_eq!(count("late"), 1, "one comes after its window has gone");
    assert_eq!(count("between_windows"), 23);
}
