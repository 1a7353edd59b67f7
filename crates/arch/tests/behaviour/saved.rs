//! Runs that are saved and resumed elsewhere end exactly like uninterrupted runs.

use corsair::{Config, Report, Snapshot, Time};
use corsair_arch::live::Live;
use corsair_arch::{
    Architecture, Branch, EntryTotals, Plan, Scale, Topology, Totals, read, read_text, simulate,
    step,
};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// Returns an architecture by its name, in a number of regions.
fn named(name: &str, regions: u32) -> Topology {
    let percent = 100;
    let scale = Scale { regions, percent };
    if name == "migration" {
        let (checked, scale) = step(8, scale).unwrap();
        return Topology::new(&checked, scale).unwrap();
    }
    let checked = match name {
        "everything" => read_text(include_str!("everything_arch.json"), name).unwrap(),
        _ => read(name, Path::new("nowhere")).unwrap(),
    };
    Topology::new(&checked, scale).unwrap()
}

fn plan() -> Plan {
    Plan {
        duration: Duration::from_millis(800),
        warm_up: Duration::from_millis(100),
        interval: Some(Duration::from_millis(100)),
        ..Plan::default()
    }
}

fn config(workers: usize) -> Config {
    Config {
        seed: 7,
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    }
}

/// Returns all results at the end of a run as text.
fn results_text(topology: &Topology, (report, totals): (Report, Totals)) -> String {
    let entry = |entry: &EntryTotals| {
        let times = entry.times.iter().chain(entry.ages.iter());
        let times: Vec<_> = times
            .map(|(bounds, count)| (*bounds.end(), count))
            .collect();
        let kinds: Vec<_> = entry.kinds.iter().map(|(n, e)| (n, e.requests)).collect();
        format!(
            "{} {} {} {} {} {times:?} {kinds:?}",
            entry.requests, entry.puts, entry.errors, entry.missing, entry.unrouted
        )
    };
    let entries: Vec<_> = totals.entries.iter().map(|(n, e)| (n, entry(e))).collect();
    let services = topology.services.iter();
    let services: Vec<_> = services.map(|s| (s.name.clone(), false)).collect();
    let timeline = totals.timeline.unwrap();
    format!(
        "{:016x} {} {:?} {} {} {entries:#?} {:#?} {}",
        report.digest.unwrap(),
        report.delivered(),
        report.outcome,
        totals.dropped,
        totals.goodbyes,
        totals.services,
        timeline.csv(&services, &topology.places),
    )
}

fn without_a_stop(topology: &Topology) -> (Duration, String) {
    let executor = corsair::Executor::Virtual;
    let ran = simulate(executor, &config(1), topology.clone(), &plan()).unwrap();
    (ran.0.time.elapsed(), results_text(topology, ran))
}

fn saved_at(topology: &Topology, at: Duration) -> Snapshot {
    let mut live = Live::new(&config(2), topology.clone(), &plan()).unwrap();
    live.simulation().run_until(Time::ZERO.after(at));
    live.simulation().snapshot().unwrap()
}

fn resume(topology: &Topology, workers: usize, snapshot: &Snapshot) -> Live {
    Live::resume(&config(workers), topology.clone(), &plan(), snapshot).unwrap()
}

// Guarantee: core-74.
#[test]
fn what_was_saved_at_any_time_comes_to_the_same_end_with_any_number_of_workers() {
    for (name, regions) in [
        ("netflixoss", 1),
        ("netflix", 2),
        ("lamp", 1),
        ("riak", 1),
        ("storage", 1),
        ("container", 1),
        ("migration", 2),
        ("everything", 1),
    ] {
        let topology = named(name, regions);
        let (end, expected) = without_a_stop(&topology);
        for part in [0.0, 0.01, 0.2, 0.45, 0.7, 0.93, 0.99] {
            let at = end.mul_f64(part);
            let snapshot = saved_at(&topology, at);
            let workers = if part == 0.45 { [1, 4] } else { [2, 3] };
            for workers in workers {
                let ran = resume(&topology, workers, &snapshot).finish().unwrap();
                assert_eq!(
                    results_text(&topology, ran),
                    expected,
                    "{name} at {at:?} on {workers}"
                );
            }
        }
    }
}

// Guarantee: core-74.
#[test]
fn a_run_that_is_saved_again_and_again_is_the_same() {
    for name in ["everything", "netflixoss"] {
        let topology = named(name, 1);
        let (end, expected) = without_a_stop(&topology);
        let mut live = Live::new(&config(1), topology.clone(), &plan()).unwrap();
        for number in 1..60 {
            live.simulation()
                .run_until(Time::ZERO.after(end * number / 60));
            let snapshot = live.simulation().snapshot().unwrap();
            live = resume(&topology, 1 + number as usize % 3, &snapshot);
        }
        assert_eq!(
            results_text(&topology, live.finish().unwrap()),
            expected,
            "{name}"
        );
    }
}

// Guarantee: core-74.
#[test]
fn a_saved_run_is_none_of_another_architecture() {
    let snapshot = saved_at(&named("netflixoss", 1), Duration::from_millis(300));
    let resumed = Live::resume(&config(1), named("lamp", 1), &plan(), &snapshot);
    let said = resumed.unwrap_err().to_string();
    assert!(said.contains("part"), "{said}");
}

// Guarantee: core-75.
#[test]
fn a_branch_that_changes_nothing_is_the_run_that_was_saved() {
    let topology = named("everything", 1);
    let (end, expected) = without_a_stop(&topology);
    let snapshot = saved_at(&topology, end / 2);
    let branch = |seed| {
        let branch = Branch {
            topology: topology.clone(),
            seed,
            load_percent: None,
            counts_from_here: false,
        };
        let branched = Architecture::branch(&config(2), &topology, &branch, &plan(), &snapshot);
        let (branch, snapshot) = branched.unwrap();
        let live = Live::hold(branch, snapshot).unwrap();
        results_text(&topology, live.finish().unwrap())
    };
    assert_eq!(branch(None), expected);
    assert_ne!(branch(Some(1)), expected);
    assert_eq!(branch(Some(1)), branch(Some(1)));
}

#[test]
fn work_and_queues_follow_the_rules_of_a_branch_at_once() {
    let of = |fields: &str, users: u32| {
        let text = format!(
            r#"{{"arch": "branched", "services": [
                {{"name": "db", "package": "store", "count": 1, "regions": 1, "service_time": "10s", {fields}}},
                {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}],
                "load": {{"www": {{"users": {users}, "requests": {{"common": 1}}}}}}}}"#
        );
        let checked = read_text(&text, "branched").unwrap();
        Topology::new(&checked, Scale::default()).unwrap()
    };
    // The times in seconds that the longest request takes without a branch, and with one 5 s after the first request.
    for (users, before, after, expected) in [
        // Half a processor does 2.5 s of the work, a whole one the rest.
        (
            1,
            r#""processors": 0.5"#,
            r#""processors": 1"#,
            [20.0, 12.5],
        ),
        (
            1,
            r#""processors": 1"#,
            r#""processors": 0.5"#,
            [10.0, 15.0],
        ),
        (2, r#""processors": 1"#, r#""processors": 2"#, [20.0, 12.5]),
        (
            2,
            r#""processors": 1"#,
            r#""processors": 2, "time_slice": "1s""#,
            [20.0, 12.5],
        ),
        // The second request waits for the first until there is another slot.
        (
            2,
            r#""concurrency": 1"#,
            r#""concurrency": 2"#,
            [20.0, 15.0],
        ),
    ] {
        let plan = Plan {
            duration: Duration::from_secs(9),
            warm_up: Duration::ZERO,
            drain: Duration::from_secs(60),
            patience: Duration::from_secs(60),
            ..plan()
        };
        let (saved, changed) = (of(before, users), of(after, users));
        let at = Duration::from_millis(5_100);
        let longest = |branch: Option<Topology>| {
            let mut live = Live::new(&config(2), saved.clone(), &plan).unwrap();
            live.simulation().run_until(Time::ZERO.after(at));
            if let Some(topology) = branch {
                let snapshot = live.simulation().snapshot().unwrap();
                let branch = Branch {
                    topology,
                    seed: None,
                    load_percent: None,
                    counts_from_here: false,
                };
                let branched = Architecture::branch(&config(1), &saved, &branch, &plan, &snapshot);
                let (branch, snapshot) = branched.unwrap();
                live = Live::hold(branch, snapshot).unwrap();
            }
            let (_, totals) = live.finish().unwrap();
            let entries = totals.entries.values();
            let longest = entries.filter_map(|entry| entry.times.greatest()).max();
            longest.unwrap() as f64 / 1e9
        };
        for (found, expected) in [longest(None), longest(Some(changed))].iter().zip(expected) {
            assert!(
                (found - expected).abs() < 0.2,
                "{after}: {found} {expected}"
            );
        }
    }
}
