//! Faults: kill, pause, slow, partition, at a time, for a while, to a share.

use crate::scene::{Ran, plan, run_services};

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
    assert!((0.4..0.6).contains(&part), "{part}");
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
