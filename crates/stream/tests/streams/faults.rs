//! Points that a node cannot process are counted and left out; the task continues.

use crate::http::Service;
use axum::http::{Method, StatusCode};
use corsair_stream::engine::TaskState;

/// Returns a counter of a node of a task.
fn counted(service: &Service, task: &str, node: &str, counter: &str) -> u64 {
    let status = service.engine.status(task).unwrap();
    let node = status.nodes.iter().find(|n| n.name == node).unwrap();
    let found = node.counters.iter().find(|(name, _)| *name == counter);
    found
        .unwrap_or_else(|| panic!("no {counter} of {node:?}"))
        .1
}

/// Runs a task with these nodes over lines, one of which has another type. Returns the logged lines
/// and the counted errors.
async fn logged(nodes: &str, lines: &str) -> (Vec<String>, u64) {
    let service = Service::new();
    let text = format!("stream | from('m') | {nodes} | log()");
    service.task("t", &text).await;
    service
        .task("healthy", "stream | from('m') | http_out('seen')")
        .await;
    service.write(lines).await;
    // A separate write without a fault.
    service.write("m v=99 99\n").await;
    service.engine.settle().await;
    let state = service.engine.status("t").unwrap().state;
    assert_eq!(state, TaskState::Running, "{nodes}");
    let status = service.engine.status("t").unwrap();
    let errors = status.nodes.iter().flat_map(|node| &node.counters);
    let errors = errors.filter(|(name, _)| *name == "errors");
    let errors = errors.map(|(_, count)| count).sum();
    (service.logged().await, errors)
}

// Guarantee: stream-6.
#[tokio::test]
async fn where_leaves_out_a_mistyped_point_and_goes_on() {
    let (logged, errors) = logged(
        "where(v > 10)",
        "m v=11 1\nm v=\"oops\" 2\nm v=9 3\nm v=t 4\nm v=12 5\n",
    )
    .await;
    let values: Vec<&str> = logged.iter().map(|line| &line[..6]).collect();
    assert_eq!(values, ["m v=11", "m v=12", "m v=99"]);
    assert_eq!(errors, 2);
}

// Guarantee: stream-6.
#[tokio::test]
async fn eval_leaves_out_a_division_by_zero_and_a_mistyped_point() {
    let (logged, errors) = logged(
        "eval(100 / n).as('q').keep()",
        "m n=5i,v=1 1\nm n=0i,v=1 2\nm n=4i,v=1 3\nm n=\"x\",v=1 4\nm n=2i,v=1 5\n",
    )
    .await;
    let found = logged.iter().filter(|line| line.contains(",q="));
    let quotients: Vec<&str> = found
        .map(|line| line.split("q=").nth(1).unwrap().split(' ').next().unwrap())
        .collect();
    assert_eq!(quotients, ["20i", "25i", "50i"]);
    // The last one is the point that ends all of these tests: it has no `n`.
    assert_eq!(errors, 3);
}

// Guarantee: stream-6.
#[tokio::test]
async fn every_aggregate_leaves_out_a_mistyped_value() {
    for (aggregate, result) in [
        ("count(v)", "count=4i"),
        ("sum(v)", "sum=6.0"),
        ("mean(v)", "mean=2.0"),
        ("min(v)", "min=1.0"),
        ("max(v)", "max=3.0"),
        ("percentile(v, 50)", "percentile=2.0"),
        ("median(v)", "median=2.0"),
        ("spread(v)", "spread=2.0"),
        ("stddev(v)", "stddev=1.0"),
    ] {
        let (logged, errors) = logged(
            &format!("window(10s, every 10s) | {aggregate}"),
            "m v=1 1\nm v=\"oops\" 2\nm v=2 3\nm v=3 4\n",
        )
        .await;
        assert!(logged[0].contains(result), "{aggregate}: {logged:?}");
        // A string is a value that can be counted.
        let expected = u64::from(!aggregate.starts_with("count"));
        assert_eq!(errors, expected, "{aggregate}");
    }
}

// Guarantee: stream-6.
#[tokio::test]
async fn a_derivative_leaves_out_a_mistyped_value_and_a_time_that_stands_still() {
    let (logged, errors) = logged(
        "derivative('v')",
        "m v=1 1\nm v=\"oops\" 2\nm v=5 3\nm v=6 3\nm v=9 5\n",
    )
    .await;
    // From 1 to 5 in two seconds; from 6, which came last at its time, to 9 in two.
    assert_eq!(
        logged[..2],
        ["m v=2.0 3000000000", "m v=1.5 5000000000"],
        "{logged:?}"
    );
    assert_eq!((logged.len(), errors), (3, 2));
}

// Guarantee: stream-6.
#[tokio::test]
async fn a_string_that_would_be_too_long_costs_its_point_only() {
    let long = "a".repeat(600_000);
    for expression in [
        "s + s",
        "strReplace(s, 'a', 'bb', -1)",
        "strReplace(s, '', s, -1)",
        "regexReplace(/a/, s, 'bb')",
    ] {
        let (logged, errors) = logged(
            &format!("eval({expression}).as('long') | eval(strLength(long)).as('length')"),
            &format!("m s=\"aa\" 1\nm s=\"{long}\" 2\nm s=\"b\" 3\n"),
        )
        .await;
        assert_eq!(logged.len(), 2, "{expression}: {logged:?}");
        // The point that ends all of these tests has no `s`.
        assert_eq!(errors, 2, "{expression}");
    }
}

#[tokio::test]
async fn a_window_of_nothing_but_mistyped_values_makes_no_point() {
    let (logged, errors) = logged(
        "window(10s, every 10s) | mean(v)",
        "m v=\"a\" 1\nm v=\"b\" 2\n",
    )
    .await;
    assert_eq!(logged, ["m mean=99.0 100000000000"]);
    assert_eq!(errors, 2);
}

#[tokio::test]
async fn a_sum_beyond_64_bits_costs_its_window_only() {
    let most = i64::MAX;
    let (logged, errors) = logged(
        "window(10s, every 10s) | sum(n)",
        &format!("m n={most}i,v=1 1\nm n=1i,v=1 2\nm n=5i,v=1 11\nm n=6i,v=1 22\n"),
    )
    .await;
    assert_eq!(logged, ["m sum=5i 20000000000", "m sum=6i 30000000000"]);
    assert_eq!(errors, 2);
}

#[tokio::test]
async fn a_point_for_which_an_alert_has_no_answer_changes_no_level() {
    let (logged, errors) = logged(
        "alert().crit(v > 10).stateChangesOnly().levelField('level')",
        "m v=11 1\nm v=\"oops\" 2\nm v=12 3\nm v=1 4\n",
    )
    .await;
    assert_eq!(logged.len(), 3, "{logged:?}");
    assert!(logged[0].contains("level=\"CRITICAL\""), "{logged:?}");
    assert!(logged[1].contains("level=\"OK\""), "{logged:?}");
    assert_eq!(errors, 1);
}

#[tokio::test]
async fn a_condition_that_is_none_for_any_point_leaves_the_task_running() {
    let (logged, errors) = logged("where(v)", "m v=1 1\nm v=2 2\n").await;
    assert!(logged.is_empty());
    assert_eq!(errors, 3);
}

#[tokio::test]
async fn what_a_node_could_not_take_is_shown_with_the_reason() {
    let service = Service::new();
    service
        .task("t", "stream | from('m') | where(v > 10)")
        .await;
    service.write("m v=\"oops\" 1\n").await;
    service.engine.settle().await;
    assert_eq!(counted(&service, "t", "where1", "errors"), 1);
    let (status, shown) = service.request(Method::GET, "/tasks/t", "").await;
    assert_eq!(
        (status, &shown["state"]),
        (StatusCode::OK, &"running".into())
    );
    let reason = shown["nodes"][1]["last_error"].as_str().unwrap();
    assert!(reason.contains("string > "), "{reason}");
}
