//! Services whose calls fail, are slow, or are too frequent.

use crate::scene::{Ran, plan};
use crate::service::{run_load, service};
use corsair_arch::Plan;
use std::time::Duration;

/// Returns an api that calls db by this policy.
fn api(policy: &str) -> String {
    let calls = format!(r#", "calls": {{"db": {{{policy}}}}}"#);
    service("api", r#"{"call": "db"}"#, &calls)
}

const STEADY: &str = r#"{"rate": 100, "requests": {"common": 1}}"#;

fn ran(policy: &str, db: &str) -> Ran {
    run_load(&format!("{}, {db}", api(policy)), STEADY, &plan())
}

fn millis(ran: &Ran) -> u64 {
    let (least, most) = ran.micros();
    assert!(most - least < 100, "{least} to {most} µs");
    (least + 500) / 1000
}

fn seconds(seconds: u64) -> Plan {
    Plan {
        duration: Duration::from_secs(seconds),
        ..plan()
    }
}

// Guarantee: arch-5.
#[test]
fn an_attempt_that_takes_too_long_is_given_up() {
    let db = service("db", r#"{"work": "50ms"}"#, "");
    let ran = ran(r#""timeout": "20ms""#, &db);
    assert_eq!(ran.entry().errors, ran.entry().requests);
    assert_eq!(millis(&ran), 22);
    assert_eq!(ran.service("api").timeouts, ran.entry().requests);
    // The abandoned work is still done.
    assert_eq!(ran.service("db").requests, ran.entry().requests);
}

#[test]
fn a_time_out_that_is_not_reached_changes_nothing() {
    let db = service("db", r#"{"work": "10ms"}"#, "");
    let ran = ran(r#""timeout": "20ms", "retries": {"most": 3}"#, &db);
    assert_eq!((millis(&ran), ran.service("api").retries), (14, 0));
}

#[test]
fn what_fails_is_tried_again_after_waits_that_grow() {
    let db = service("db", r#"{"work": "50ms"}"#, "");
    let ran = ran(
        r#""timeout": "20ms", "retries": {"most": 2, "backoff": "10ms"}"#,
        &db,
    );
    // Two trips to api, three attempts of 20 ms, and waits of 10 and 20 ms.
    assert_eq!(millis(&ran), 92);
    assert_eq!(ran.service("api").retries, 2 * ran.entry().requests);
    assert_eq!(ran.service("db").requests, 3 * ran.entry().requests);
}

#[test]
fn retries_hide_failures_as_often_as_they_are_independent() {
    let db = service("db", "", r#", "error_rate": 0.2"#);
    let services = format!("{}, {db}", api(r#""retries": {"most": 2}"#));
    let ran = run_load(&services, STEADY, &seconds(200));
    let share = ran.entry().errors as f64 / ran.entry().requests as f64;
    // Within three standard deviations of 0.2³.
    assert!((share - 0.008).abs() < 0.0019, "{share}");
}

#[test]
fn a_budget_bounds_the_retries_to_its_share_of_all_calls() {
    let db = service("db", "", r#", "error_rate": 1"#);
    let ran = ran(
        r#""retries": {"most": 3, "budget": {"share": 0.1, "burst": 5}}"#,
        &db,
    );
    let calls = ran.entry().requests;
    let expected = 5 + calls / 10;
    assert!(ran.service("api").retries.abs_diff(expected) <= 1);
}

// Guarantee: arch-5.
#[test]
fn a_deadline_travels_and_nobody_works_beyond_it() {
    let services = |more: &str| {
        format!(
            "{}, {}, {}",
            api(r#""deadline": "30ms""#),
            service(
                "db",
                r#"{"work": "5ms"}, {"call": "disk"}, {"call": "disk"}"#,
                more
            ),
            service("disk", r#"{"work": "15ms"}"#, r#", "concurrency": 1"#)
        )
    };
    // Two trips to api take 2 ms, and the deadline is 30 ms. Without it, the second call of disk would be answered
    // after 1 + 5 + 2·17 ms.
    let ran = run_load(
        &services(""),
        r#"{"rate": 20, "requests": {"common": 1}}"#,
        &plan(),
    );
    assert_eq!(
        (ran.entry().errors, millis(&ran)),
        (ran.entry().requests, 32)
    );
    // Db receives the remaining time with the request, and stops waiting when it is over.
    assert_eq!(ran.service("db").timeouts, ran.entry().requests);
    // When requests queue for disk, requests past their deadline are refused, and disk does no work for them.
    let ran = run_load(&services(""), STEADY, &seconds(10));
    let disk = ran.service("disk");
    assert!(disk.refused > disk.requests / 4, "{disk:?}");
    let worked = Duration::from_nanos(disk.worked).as_millis();
    assert_eq!(worked, 15 * u128::from(disk.requests - disk.refused));
}

#[test]
fn a_second_instance_is_asked_when_the_first_takes_long() {
    let db = r#"{"name": "db", "package": "service", "count": 2, "regions": 1,
        "faults": [{"kind": "pause", "at": "0s", "share": 0.5}],
        "endpoints": [{"name": "get", "steps": [{"work": "3ms"}]}]}"#;
    let hedged = ran(r#""hedge": {"after": "10ms"}"#, db);
    assert_eq!((hedged.entry().errors, hedged.entry().unanswered()), (0, 0));
    let (least, most) = hedged.micros();
    assert_eq!(((least + 500) / 1000, (most + 500) / 1000), (7, 17));
    let hedges = hedged.service("api").hedges as f64;
    let share = hedges / hedged.entry().requests as f64;
    assert!((share - 0.5).abs() < 0.11, "{share}");
}

#[test]
fn a_breaker_opens_probes_and_closes() {
    let db = service(
        "db",
        r#"{"work": "1ms"}"#,
        r#", "faults": [{"kind": "pause", "at": "1s", "for": "2s"}]"#,
    );
    let policy = r#""timeout": "20ms",
        "breaker": {"failures": 0.5, "window": 10, "open": "500ms", "probes": 2}"#;
    let ran = run_load(&format!("{}, {db}", api(policy)), STEADY, &seconds(5));
    let api = ran.service("api");
    // The breaker opens when five of ten attempts time out. It opens again half a second later when the probes time
    // out: at 1.07, 1.59, 2.11 and 2.63 s. The probes at 3.13 s succeed.
    assert_eq!(api.opened, 4);
    assert!((190..=212).contains(&api.rejected), "{api:?}");
    assert_eq!(ran.entry().errors, api.rejected + api.timeouts);
    let after_it = 5 + 2 + 2 * 3;
    assert!((after_it..after_it + 3).contains(&api.timeouts), "{api:?}");
}

#[test]
fn a_bulkhead_lets_so_many_calls_through_at_once() {
    let db = service("db", r#"{"work": "50ms"}"#, "");
    let users = r#"{"users": 10, "think": "10ms", "requests": {"common": 1}}"#;
    let ran = run_load(
        &format!("{}, {db}", api(r#""bulkhead": 3"#)),
        users,
        &plan(),
    );
    assert_eq!(ran.entry().errors, ran.service("api").rejected);
    let good = ran.entry().requests - ran.entry().errors;
    // Three concurrent calls of 52 ms each, for two seconds. A free place is taken within a few milliseconds.
    assert!((98..=116).contains(&good), "{good}");
}

#[test]
fn rates_are_limited_at_the_caller_and_at_the_service() {
    let db = service("db", "", "");
    let ran_out = ran(r#""rate_limit": {"rate": 40, "burst": 4}"#, &db);
    assert!(ran_out.service("db").requests.abs_diff(84) <= 1);
    assert_eq!(ran_out.entry().errors, ran_out.service("api").rejected);
    let db = service("db", "", r#", "rate_limit": {"rate": 40, "burst": 4}"#);
    let ran_in = ran("", &db);
    let db = ran_in.service("db");
    assert!((db.requests - db.refused).abs_diff(84) <= 1, "{db:?}");
    assert_eq!(ran_in.entry().errors, db.refused);
}

#[test]
fn an_instance_that_fails_again_and_again_is_left_out_for_a_while() {
    let db = r#"{"name": "db", "package": "service", "count": 3, "regions": 1,
        "faults": [{"kind": "pause", "at": "0s", "share": 0.3}],
        "endpoints": [{"name": "get", "steps": []}]}"#;
    let ran_with = |policy: &str| {
        let services = format!("{}, {db}", api(policy));
        run_load(&services, STEADY, &seconds(10)).entry().errors
    };
    let every_third = ran_with(r#""timeout": "20ms""#);
    assert!((260..400).contains(&every_third), "{every_third}");
    let ejection = |most: &str| {
        let policy = r#""timeout": "20ms", "ejection": {"failures": 3, "for": "2s""#;
        ran_with(&format!("{policy}{most}}}"))
    };
    // Three failures for each of five ejections, and one or two requests that were in flight.
    let some = ejection("");
    assert!((15..=30).contains(&some), "{some}");
    // One of three instances is more than a fifth, so none is ejected.
    assert_eq!(ejection(r#", "most": 0.2"#), every_third);
}

#[test]
fn a_full_queue_and_patience_shed_load() {
    let db = |queue: &str| {
        service(
            "db",
            r#"{"work": "20ms"}"#,
            &format!(r#", "concurrency": 1, "queue": {{{queue}}}"#),
        )
    };
    // The capacity is fifty of a hundred requests per second.
    for queue in [r#""size": 2"#, r#""patience": "45ms""#] {
        let ran = run_load(&format!("{}, {}", api(""), db(queue)), STEADY, &seconds(10));
        let good = ran.entry().requests - ran.entry().errors;
        assert!((490..=505).contains(&good), "{queue}: {good}");
        assert_eq!(ran.entry().errors, ran.service("db").refused);
        let most = ran.micros().1 / 1000;
        assert!((50..=75).contains(&most), "{queue}: {most} ms");
    }
}

// Guarantee: arch-4.
#[test]
fn a_patience_ends_when_it_ends_and_not_when_a_slot_is_free() {
    let db = service(
        "db",
        r#"{"work": "1s"}"#,
        r#", "concurrency": 1, "queue": {"size": 4, "patience": "40ms"}"#,
    );
    let ran = run_load(&format!("{}, {db}", api("")), STEADY, &seconds(10));
    // Of 100 requests per second, nine in ten are refused after 40 ms and leave the queue.
    let half = ran.entry().percentile(0.5).time.as_millis();
    assert!((40..=45).contains(&half), "{half} ms");
    assert!(ran.service("db").longest_queue <= 4);
}

/// Runs a service near its limit, called with time-outs and retries, with a spike of two seconds.
fn metastable(budget: &str) -> Ran {
    let policy = format!(
        r#""timeout": "100ms", "retries": {{"most": 3, "backoff": "10ms", "jitter": 1 {budget}}}"#
    );
    let db = service(
        "db",
        r#"{"work": {"exponential": "10ms"}}"#,
        r#", "concurrency": 4"#,
    );
    let load = r#"{"arrivals": "poisson", "requests": {"common": 1}, "rate": [
        {"at": "0s", "rate": 280}, {"at": "10s", "rate": 900}, {"at": "12s", "rate": 280}]}"#;
    let plan = Plan {
        // Only requests that arrive long after the spike are counted.
        warm_up: Duration::from_secs(40),
        ..seconds(60)
    };
    run_load(&format!("{}, {db}", api(&policy)), load, &plan)
}

#[test]
fn a_spike_keeps_a_system_down_that_retries_and_one_with_a_budget_recovers() {
    let failed = |ran: &Ran| {
        let entry = ran.entry();
        (entry.errors + entry.unanswered()) as f64 / entry.requests as f64
    };
    let down = metastable("");
    assert!(failed(&down) > 0.9, "{}", failed(&down));
    let recovered = metastable(r#", "budget": {"share": 0.1}"#);
    assert!(failed(&recovered) < 0.01, "{}", failed(&recovered));
}

// Guarantee: arch-5.
#[test]
fn what_is_sent_is_tried_again_if_its_policy_says_so_and_nobody_waits() {
    let api = |policy: &str| {
        let calls = format!(r#", "calls": {{"mail": {{{policy}}}}}"#);
        service("api", r#"{"send": "mail"}"#, &calls)
    };
    let run = |policy: &str| {
        let mail = service("mail", r#"{"work": "5ms"}"#, r#", "error_rate": 0.5"#);
        run_load(&format!("{}, {mail}", api(policy)), STEADY, &seconds(20))
    };
    let plain = run(r#""balance": "round_robin""#);
    let (sent, mail) = (plain.entry().requests, plain.service("mail"));
    assert_eq!((millis(&plain), mail.one_way, mail.requests), (2, sent, 0));
    // Half of the attempts fail. One in eight messages fails three times.
    let again = run(r#""retries": {"most": 2, "backoff": "10ms"}"#);
    assert_eq!((millis(&again), again.entry().errors), (2, 0));
    let mail = again.service("mail");
    let attempts = mail.requests as f64 / again.entry().requests as f64;
    assert!((attempts - 1.75).abs() < 0.06, "{attempts}");
    let gone = (mail.requests - mail.errors) as f64 / again.entry().requests as f64;
    assert!((gone - 0.875).abs() < 0.03, "{gone}");
    // A rate limit prevents some messages from being sent.
    let limited = run(r#""rate_limit": {"rate": 50}"#);
    assert_eq!(limited.entry().errors, 0);
    let part = limited.service("mail").requests as f64 / limited.entry().requests as f64;
    assert!((part - 0.5).abs() < 0.02, "{part}");
    // A time-out abandons slow attempts, but the receiver still completes the work.
    let hasty = run(r#""timeout": "3ms""#);
    let api = hasty.service("api");
    // The other half fails at once, before the time-out.
    let part = api.timeouts as f64 / hasty.entry().requests as f64;
    assert!(
        (part - 0.5).abs() < 0.03 && hasty.entry().errors == 0,
        "{part}"
    );
}
