//! Latency, work, queues and errors agree with the definition.

use crate::scene::{plan, run_services};
use corsair_arch::Plan;
use std::time::Duration;

const WWW: &str =
    r#"{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}"#;

fn store(fields: &str) -> String {
    format!(r#"{{"name": "db", "package": "store", "count": 1, "regions": 1{fields}}}, {WWW}"#)
}

// Guarantee: arch-4.
#[test]
fn a_request_takes_its_way_there_the_work_and_its_way_back() {
    let ran = run_services(&store(r#", "service_time": "5ms""#), &plan());
    // Histograms have three digits.
    let (shortest, longest) = ran.micros();
    assert!((6_990..=7_010).contains(&shortest) && (6_990..=7_010).contains(&longest));
    let added = ran.service("db").adds();
    assert_eq!(added, 6_000_000, "its way and its work, not the way back");
}

#[test]
fn a_service_may_have_a_latency_of_its_own() {
    let ran = run_services(&store(r#", "latency": "20ms""#), &plan());
    let (shortest, longest) = ran.micros();
    assert!((39_900..=40_100).contains(&shortest) && (39_900..=40_100).contains(&longest));
}

// Guarantee: arch-4.
#[test]
fn requests_beyond_the_concurrency_queue_and_others_do_not() {
    let fast = Plan {
        chat: Duration::from_micros(800),
        duration: Duration::from_secs(60),
        ..plan()
    };
    let work = r#", "service_time": {"exponential": "600us"}"#;
    let free = run_services(&store(work), &fast);
    let queued = run_services(&store(&format!(r#"{work}, "concurrency": 1"#)), &fast);
    let wide = run_services(&store(&format!(r#"{work}, "concurrency": 8"#)), &fast);
    assert_eq!(free.service("db").longest_queue, 0);
    assert!(queued.service("db").longest_queue > 3);
    assert_eq!(wide.service("db").longest_queue, 0);
    let mean = |ran: &crate::scene::Ran| ran.entry().times.mean().unwrap();
    // Arrivals are regular (D/M/1 at a load of 3/4): σ = exp((σ - 1) / 0.75) = 0.5457, and the mean wait is σ / (1 - σ)
    // = 1.2 service times.
    let wait = (mean(&queued) - mean(&free)) / 1e6;
    assert!((0.65..0.80).contains(&wait), "{wait} ms");
    assert_eq!(queued.entry().unanswered(), 0);
}

#[test]
fn an_overloaded_service_falls_behind() {
    let fast = Plan {
        chat: Duration::from_micros(500),
        ..plan()
    };
    let ran = run_services(
        &store(r#", "service_time": "1ms", "concurrency": 1"#),
        &fast,
    );
    // Two requests per millisecond arrive and one is completed, so half of the requests wait at the end.
    assert!(ran.service("db").longest_queue > 1_500);
    assert!(ran.entry().unanswered() > 500);
}

#[test]
fn the_error_rate_is_the_part_that_fails() {
    for (rate, least, most) in [(0.0, 0.0, 0.0), (0.3, 0.2, 0.4), (1.0, 1.0, 1.0)] {
        let ran = run_services(&store(&format!(r#", "error_rate": {rate}"#)), &plan());
        let entry = ran.entry();
        let part = entry.errors as f64 / entry.requests as f64;
        assert!((least..=most).contains(&part), "{rate}: {part}");
    }
}

#[test]
fn neighbours_on_a_ring_do_not_wait_for_each_other_forever() {
    let services = r#"{"name": "db", "package": "riak", "count": 9, "regions": 1,
            "service_time": "1ms", "concurrency": 1, "dependencies": ["db"]},
        {"name": "data", "package": "staash", "count": 3, "regions": 1, "dependencies": ["db"]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["data"]}"#;
    let fast = Plan {
        chat: Duration::from_micros(500),
        ..plan()
    };
    let ran = run_services(services, &fast);
    assert!(ran.service("db").longest_queue > 1);
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
}

// Guarantee: arch-5.
#[test]
fn a_service_that_depends_on_no_other_answers_by_itself() {
    let ran = run_services(
        r#"{"name": "web", "package": "monolith", "count": 3, "regions": 1},
        {"name": "www", "package": "denominator", "dependencies": ["web"]}"#,
        &plan(),
    );
    assert!(ran.entry().requests > 50);
    assert_eq!(ran.entry().errors, 0);
    assert_eq!(ran.service("web").errors, 0);
}

#[test]
fn instances_of_one_entry_point_are_counted_together() {
    let services = |count: u32| {
        format!(
            r#"{{"name": "db", "package": "store", "count": 1, "regions": 1}},
            {{"name": "www", "package": "denominator", "count": {count}, "regions": 1,
            "dependencies": ["db"]}}"#
        )
    };
    let one = run_services(&services(1), &plan());
    let three = run_services(&services(3), &plan());
    let made = |ran: &crate::scene::Ran| ran.entry().requests + ran.entry().puts;
    assert_eq!(made(&three), 3 * made(&one));
    assert_eq!(three.entry().times.len(), three.entry().requests);
}

#[test]
fn copies_do_not_make_a_service_slow() {
    // Copies of values travel to other regions and take a second. Requests stay in the zone.
    let ran = run_services(
        r#"{"name": "db", "package": "store", "count": 6, "regions": 1, "dependencies": ["db"],
         "service_time": "2ms"},
        {"name": "app", "package": "monolith", "count": 3, "regions": 1, "dependencies": ["db"],
         "service_time": "3ms"},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]}"#,
        &plan(),
    );
    let db = ran.service("db");
    // The store that receives a value copies it to the five others.
    assert_eq!(db.one_way, 6 * ran.entry().puts);
    assert_eq!(db.requests, ran.entry().requests);
    assert_eq!(db.adds(), 3_000_000, "a way there and the work");
}

#[test]
fn queued_requests_that_all_fail_at_once_do_not_fill_the_stack() {
    // A hundred thousand requests wait for one slot. The request that holds the slot is lost with the only store. From
    // then on no store can be asked, and all requests fail in one event.
    let fast = Plan {
        chat: Duration::from_micros(5),
        patience: Duration::from_millis(900),
        duration: Duration::from_secs(1),
        drain: Duration::from_secs(2),
        ..plan()
    };
    let ran = run_services(
        r#"{"name": "db", "package": "store", "count": 1, "regions": 1,
         "faults": [{"kind": "partition", "at": "0s", "for": "300ms"}, {"kind": "kill", "at": "300ms"}]},
        {"name": "app", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["db"],
         "concurrency": 1},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]}"#,
        &fast,
    );
    assert!(ran.service("app").longest_queue > 50_000);
    assert_eq!(ran.entry().unanswered(), 0);
}
