//! The measurements of all intervals and zones add up to the totals.

use crate::scene::{plan, run, topology};
use corsair_arch::{LoadText, Plan, Scale, Slice};
use std::time::Duration;

const SERVICES: &str = r#"{"name": "db", "package": "store", "count": 3, "regions": 1, "concurrency": 2,
     "service_time": {"exponential": "10ms"}},
    {"name": "ps", "package": "store", "count": 1, "regions": 1, "processors": 2,
     "service_time": "4ms", "faults": [{"kind": "kill", "at": "10s", "for": "5s"}]},
    {"name": "app", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["db"]},
    {"name": "other", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["ps"]},
    {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]},
    {"name": "api", "package": "denominator", "regions": 0, "dependencies": ["other"]}"#;

// Guarantee: arch-10.
#[test]
fn slices_add_up_to_the_totals_by_zone_and_time() {
    let mut topology = topology(SERVICES, Scale::default());
    let load = r#"{"rate": [{"at": "0s", "rate": 100}, {"at": "10s", "rate": 300}],
        "arrivals": "poisson", "requests": {"common": 1}}"#;
    LoadText::read(load).unwrap().apply(&mut topology).unwrap();
    let plan = Plan {
        duration: Duration::from_secs(20),
        drain: Duration::from_secs(5),
        interval: Some(Duration::from_secs(1)),
        ..plan()
    };
    let ran = run(topology, &plan);
    let timeline = ran.totals.timeline.as_ref().unwrap();
    for (number, name) in [(4, "www"), (5, "api")] {
        let (entry, slices) = (&ran.totals.entries[name], timeline.of_service(number));
        assert_eq!(slices.len(), 20);
        let sum = |of: fn(&Slice) -> u64| slices.iter().map(of).sum::<u64>();
        assert_eq!(sum(|slice| slice.requests), entry.requests, "{name}");
        assert_eq!(sum(|slice| slice.errors), entry.errors + entry.unanswered());
        let before: u64 = slices[..10].iter().map(|slice| slice.requests).sum();
        assert!((900..1_100).contains(&before), "{before}");
    }
    // The second instance is down for five seconds, and requests fail only then.
    let failed: Vec<usize> = (0..20)
        .filter(|&at| timeline.of_service(5)[at].errors > 0)
        .collect();
    assert_eq!(failed, [10, 11, 12, 13, 14, 15][..failed.len()]);
    assert!(failed.len() >= 5);
    // Each zone has an instance with a third of the work.
    assert_eq!(
        timeline
            .slices
            .keys()
            .filter(|(service, _)| *service == 0)
            .count(),
        3
    );
    let db = ran.service("db");
    let slices = timeline.of_service(0);
    let used: f64 = slices.iter().filter_map(Slice::utilisation).sum();
    // Six slots for one second each.
    let busy = db.busy as f64 / 1e9 / 6.0;
    assert!((used / busy - 1.0).abs() < 0.01, "{used} {busy}");
    let queue: f64 = slices
        .iter()
        .map(|slice| slice.queue(timeline.interval))
        .sum();
    let queued = db.queued as f64 / 1e9;
    assert!((queue / queued - 1.0).abs() < 0.01, "{queue} {queued}");
    // Two processors, and a hundred requests per second with 4 ms of work.
    let shared = timeline.of_service(1);
    let shared = shared[..10].iter().filter_map(Slice::utilisation);
    let shared: f64 = shared.sum();
    assert!((shared / 10.0 / 0.2 - 1.0).abs() < 0.1, "{shared}");
    // The median of a slice agrees with the median of the run.
    let whole = ran.totals.entries["www"].percentile(0.5).time.as_secs_f64();
    let slice = slices_middle(&timeline.of_service(4));
    assert!((slice / whole - 1.0).abs() < 0.3, "{slice} {whole}");
}

/// Returns the median of the slices' medians.
fn slices_middle(slices: &[Slice]) -> f64 {
    let medians = slices.iter().filter_map(|slice| slice.percentile(0.5));
    let mut medians: Vec<f64> = medians.map(|time| time.as_secs_f64()).collect();
    medians.sort_by(f64::total_cmp);
    medians[medians.len() / 2]
}

#[test]
fn a_run_that_keeps_its_time_is_the_same_run() {
    let with = |interval| {
        let plan = Plan { interval, ..plan() };
        run(topology(SERVICES, Scale::default()), &plan)
    };
    let (without, with) = (with(None), with(Some(Duration::from_millis(100))));
    assert_eq!(without.report.digest, with.report.digest);
    assert!(without.totals.timeline.is_none());
}

// Guarantee: arch-10.
#[test]
fn requests_that_have_not_ended_are_in_their_slices_with_their_age() {
    let stuck = SERVICES.replace(
        r#""faults": [{"kind": "kill", "at": "10s", "for": "5s"}]"#,
        r#""faults": [{"kind": "pause", "at": "3s"}]"#,
    );
    let plan = Plan {
        duration: Duration::from_secs(6),
        interval: Some(Duration::from_secs(1)),
        ..plan()
    };
    let ran = run(topology(&stuck, Scale::default()), &plan);
    let (entry, timeline) = (&ran.totals.entries["api"], ran.totals.timeline.unwrap());
    let slices = timeline.of_service(5);
    assert!(entry.unanswered() > 150, "{entry:?}");
    for (at, slice) in slices.iter().enumerate() {
        assert!((50..85).contains(&slice.requests), "{at}: {slice:?}");
        let slowest = slice.percentile(0.99).unwrap();
        if at < 3 {
            assert_eq!(slice.errors, 0);
            assert!(slowest < Duration::from_millis(20), "{at}: {slowest:?}");
        } else {
            // All requests fail, and count with their age at the end, half a second after the load ends.
            assert_eq!(slice.errors, slice.requests, "{at}");
            let least = Duration::from_secs(6 - at as u64 - 1);
            assert!(slowest >= least, "{at}: {slowest:?}");
        }
    }
    let unanswered: u64 = slices.iter().map(|slice| slice.errors).sum();
    assert_eq!(unanswered, entry.unanswered());
}
