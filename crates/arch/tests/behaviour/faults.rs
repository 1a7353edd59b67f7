//! Faults: kill, pause, slow, partition, at a time, for a while, to a share.

use crate::scene::{Ran, plan, run_services};
use corsair_arch::Plan;
use std::time::Duration;

/// One store behind one entry point, with a fault.
fn with(fault: &str) -> Ran {
    run_services(
        &format!(
            r#"{{"name": "db", "package": "store", "count": 1, "regions": 1, "faults": [{fault}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
        ),
        &plan(),
    )
}

#[test]
fn requests_to_a_killed_instance_are_refused_until_it_is_forgotten() {
    let ran = with(r#"{"kind": "kill", "at": "1s"}"#);
    let entry = ran.entry();
    // It is the only one, so that half of all requests fail: refused, then with nobody to ask.
    let part = entry.errors as f64 / entry.requests as f64;
    // Which of two hundred arrivals are requests is drawn.
    assert!((0.35..0.65).contains(&part), "{part}");
    assert!(ran.totals.dropped > 0);
}

#[test]
fn a_paused_instance_answers_when_it_goes_on() {
    let ran = with(r#"{"kind": "pause", "at": "500ms", "for": "400ms"}"#);
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
    let (shortest, longest) = ran.micros();
    assert!(shortest < 2_100);
    assert!((380_000..=403_000).contains(&longest), "{longest}");
}

#[test]
fn a_slow_instance_is_slow_by_its_factor_while_it_lasts() {
    let ran = with(r#"{"kind": "slow", "at": "500ms", "for": "500ms", "factor": 20}"#);
    let (shortest, longest) = ran.micros();
    // The way to it is a millisecond as before, the way back twenty.
    assert!((1_990..=2_010).contains(&shortest), "{shortest}");
    assert!((20_900..=21_100).contains(&longest), "{longest}");
    let slow = ran.entry().times.iter_recorded();
    let slow: u64 = slow
        .filter(|value| value.value_iterated_to() > 10_000_000)
        .map(|v| v.count_at_value())
        .sum();
    let part = slow as f64 / ran.entry().requests as f64;
    assert!((0.2..0.3).contains(&part), "{part}");
}

#[test]
fn what_a_partition_swallows_is_given_up_after_a_while() {
    let ran = with(r#"{"kind": "partition", "at": "500ms", "for": "500ms"}"#);
    let entry = ran.entry();
    let part = entry.errors as f64 / entry.requests as f64;
    assert!((0.2..0.3).contains(&part), "{part}");
    let (_, longest) = ran.micros();
    assert!((300_000..=303_000).contains(&longest), "{longest}");
    assert!(ran.totals.dropped >= entry.errors);
    assert_eq!(entry.unanswered(), 0);
}

#[test]
fn faults_of_one_kind_may_overlap() {
    let ran = with(
        r#"{"kind": "pause", "at": "500ms", "for": "400ms"},
        {"kind": "pause", "at": "700ms", "for": "400ms"}"#,
    );
    let (_, longest) = ran.micros();
    assert!((580_000..=603_000).contains(&longest), "{longest}");
}

/// One store behind one entry point, with work, slots and a fault; a request every `chat`.
fn busy(fields: &str, fault: &str, chat: Duration) -> Ran {
    let plan = Plan { chat, ..plan() };
    run_services(
        &format!(
            r#"{{"name": "db", "package": "store", "count": 1, "regions": 1, {fields},
            "faults": [{fault}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
        ),
        &plan,
    )
}

#[test]
fn a_paused_instance_leaves_its_queue_and_its_work_as_they_are() {
    // Nine of ten milliseconds are work. What is queued and in work when the pause begins cannot
    // be answered before it ends.
    let ran = busy(
        r#""service_time": "9ms", "concurrency": 1"#,
        r#"{"kind": "pause", "at": "500ms", "for": "400ms"}"#,
        Duration::from_millis(10),
    );
    let slow = ran.entry().times.iter_recorded();
    let slow: Vec<u64> = slow
        .filter(|value| value.value_iterated_to() > 100_000_000)
        .map(|value| value.count_at_value())
        .collect();
    // Forty requests, two thirds of which are answered, wait for it, and those after them queue up.
    assert!(slow.iter().sum::<u64>() > 20, "{slow:?}");
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
}

#[test]
fn work_takes_as_much_longer_as_a_pause_lasts() {
    let ran = busy(
        r#""service_time": "200ms""#,
        r#"{"kind": "pause", "at": "500ms", "for": "400ms"}"#,
        Duration::from_millis(50),
    );
    // One way each of a millisecond, and what was begun before the pause has its rest after it.
    let (shortest, longest) = ran.micros();
    assert!((201_000..=203_000).contains(&shortest), "{shortest}");
    assert!((600_000..=603_000).contains(&longest), "{longest}");
    let times = &ran.entry().times;
    let between = times.count_between(210_000_000, 599_000_000);
    // What arrives during the pause begins after it, and waits for less than all of it.
    assert!((3..=8).contains(&between), "{between}");
}

#[test]
fn a_killed_instance_answers_nothing_that_it_was_working_on() {
    let ran = busy(
        r#""service_time": "100ms""#,
        r#"{"kind": "kill", "at": "500ms", "for": "1s"}"#,
        Duration::from_millis(10),
    );
    let entry = ran.entry();
    assert_eq!(entry.unanswered(), 0);
    // Found or missing values took a tenth of a second; whatever was in work was refused earlier.
    let early = entry.times.count_between(0, 101_000_000);
    assert!(early >= 5, "{early}");
    assert_eq!(early + entry.unrouted, entry.errors, "{entry:?}");
}

#[test]
fn a_killed_instance_refuses_those_for_whom_it_was_asking_others() {
    let ran = run_services(
        r#"{"name": "db", "package": "store", "count": 1, "regions": 1, "service_time": "300ms"},
        {"name": "app", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["db"],
         "faults": [{"kind": "kill", "at": "500ms", "for": "200ms"}]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]}"#,
        &plan(),
    );
    let entry = ran.entry();
    assert_eq!(entry.unanswered(), 0);
    // A request that is answered takes four milliseconds more than its work in the store.
    let early = entry.times.count_between(0, 303_000_000);
    assert!(early >= 15, "{early}");
    assert_eq!(early + entry.unrouted, entry.errors);
}

#[test]
fn a_request_for_which_there_is_no_instance_fails_once() {
    let ran = with(r#"{"kind": "kill", "at": "0s"}"#);
    let entry = ran.entry();
    assert!(entry.unrouted > 50, "{entry:?}");
    assert_eq!((entry.errors, entry.unanswered()), (entry.requests, 0));
}

#[test]
fn a_share_is_a_decimal_number() {
    let services = |share: f64| {
        format!(
            r#"{{"name": "db", "package": "store", "count": 100, "regions": 1,
            "faults": [{{"kind": "kill", "at": "100ms", "share": {share}}}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
        )
    };
    for (share, killed) in [(0.07, 7), (0.071, 8), (0.29, 29), (0.58, 58), (0.001, 1)] {
        let topology = crate::scene::topology(&services(share), corsair_arch::Scale::default());
        let (_, text, _) = crate::scene::run_with_graph(topology, &plan());
        let done = crate::scene::lines(&text, "done", "\"exit\":\"killed\"");
        assert_eq!(done, killed, "{share}");
    }
}
