//! Tests that the search finds the bugs, shrinks them to necessary faults, and raises no alarm on
//! the fixed twins.

use corsair_hunt::{Cause, Failure, FaultPlan, Hunt, Hunted, Replay, Subject};
use corsair_hunt::{explain, hunt, hunt_with, shrink};
use std::time::Duration;

/// The number of runs within which each bug has to be found; far more than the median.
const MOST_RUNS: u64 = 2_000;
/// Bugs that take more runs than a test has time for: `ci/hunt.sh` looks for them.
const RARE: [&str; 5] = [
    "priority",
    "raft_commit",
    "raft_membership",
    "raft_read",
    "recovery",
];

/// Returns the programs whose bugs are found quickly.
fn common() -> Vec<Box<dyn Subject>> {
    let mut all = corsair_zoo::all(true);
    all.retain(|subject| !RARE.contains(&subject.name()));
    all
}

fn search(subject: &dyn Subject, seed: u64, runs: u64, threads: usize) -> Hunted {
    let settings = Hunt {
        seed,
        runs,
        time: Duration::from_secs(3600),
        threads,
        shard: 0,
    };
    hunt(subject, &settings).unwrap()
}

/// Returns the number of faults in a plan.
fn faults(plan: &FaultPlan) -> usize {
    let kinds = [plan.loss, plan.duplicates, plan.late];
    let kinds = kinds.iter().filter(|part| **part > 0).count();
    plan.partitions.len() + plan.crashes.len() + plan.delays.len() + kinds
}

fn failure(subject: &dyn Subject) -> Failure {
    let hunted = search(subject, 1, MOST_RUNS, 0);
    let missing = || {
        panic!(
            "{} in {} runs:\n{}",
            subject.name(),
            hunted.runs,
            hunted.properties
        )
    };
    hunted.failure.clone().unwrap_or_else(missing)
}

// Guarantee: hunt-2, hunt-3.
#[test]
fn every_bug_is_found_shrunk_and_replayed_on_any_number_of_workers() {
    for subject in common() {
        let subject = &*subject;
        let found = failure(subject);
        let shrunk = shrink(subject, &found).unwrap();
        let plan = &shrunk.failure.plan;
        assert!(faults(plan) <= faults(&found.plan), "{}", subject.name());
        // The fixed twin passes the run that shows the bug.
        let twins = corsair_zoo::all(false);
        let twin = twins
            .iter()
            .find(|twin| twin.name() == subject.name())
            .unwrap();
        let passed = twin.run(shrunk.failure.seed, plan, 1).unwrap();
        assert_eq!(
            passed.properties.violated(),
            Vec::<&str>::new(),
            "{}",
            subject.name()
        );
        for index in 0..plan.crashes.len() {
            let mut fewer = plan.clone();
            fewer.crashes.remove(index);
            let result = subject.run(shrunk.failure.seed, &fewer, 1).unwrap();
            let violated = result.properties.violated();
            assert!(!violated.contains(&found.property.as_str()), "{fewer:?}");
        }
        let replay = Replay {
            program: subject.name().to_owned(),
            property: found.property.clone(),
            seed: shrunk.failure.seed,
            plan: plan.clone(),
        };
        let replay = Replay::from_json(&replay.to_json()).unwrap();
        for workers in 1..=4 {
            let result = replay.run(subject, workers).unwrap();
            assert_eq!(result.digest, shrunk.digest, "{}", subject.name());
        }
    }
}

// Guarantee: hunt-7.
#[test]
fn the_fixed_twins_raise_no_alarm_and_reach_their_states() {
    for subject in corsair_zoo::all(false)
        .into_iter()
        .chain(corsair_zoo::further(false))
    {
        let hunted = search(&*subject, 2, 200, 0);
        let name = subject.name();
        assert_eq!(hunted.failure, None, "{name}\n{}", hunted.properties);
        assert_eq!(
            hunted.properties.never_reached(),
            Vec::<&str>::new(),
            "{name}"
        );
    }
}

// Guarantee: hunt-1.
#[test]
fn a_search_does_not_depend_on_the_number_of_threads() {
    for subject in corsair_zoo::all(true).iter().take(4) {
        let one = search(&**subject, 5, 200, 1);
        for threads in 2..=4 {
            assert_eq!(
                search(&**subject, 5, 200, threads),
                one,
                "{}",
                subject.name()
            );
        }
    }
}

// Guarantee: hunt-4.
#[test]
fn a_plan_that_fits_no_node_is_refused() {
    let all = corsair_zoo::all(false);
    let subject = &*all[0];
    let refused = |text: &str| {
        let plan: FaultPlan = match serde_json::from_str(text) {
            Ok(plan) => plan,
            Err(error) => return error.to_string(),
        };
        subject.run(0, &plan, 1).unwrap_err().to_string()
    };
    for (plan, said) in [
        (
            r#"{"time": 100, "crashes": [{"node": 9, "at": 1, "down": 1}]}"#,
            "names node 9",
        ),
        (
            r#"{"time": 100, "partitions": [{"from": 1, "until": 2, "side": 32, "one_way": false}]}"#,
            "names node 5",
        ),
        (r#"{"time": 0}"#, "time is 0 ms"),
        (r#"{"time": 100, "loss": 1001}"#, "loss is 1001"),
        (r#"{"time": 100, "lossy": 1}"#, "unknown field `lossy`"),
        (
            r#"{"time": 100, "crashes": [{"node": 0, "at": 4294967295, "down": 4294967295}], "lateness": 4294967295, "late": 1000}"#,
            "after the end",
        ),
    ] {
        let error = refused(plan);
        assert!(error.contains(said), "{plan} → {error}");
    }
}

// Guarantee: hunt-5.
#[test]
fn an_explanation_names_the_necessary_faults_and_draws_the_messages() {
    let all = corsair_zoo::all(true);
    let wal = all.iter().find(|subject| subject.name() == "wal").unwrap();
    let shrunk = shrink(&**wal, &failure(&**wal)).unwrap();
    let explanation = explain(&**wal, &shrunk.failure).unwrap();
    assert!(!explanation.faults.is_empty());
    assert!(explanation.faults.iter().all(|(_, necessary)| *necessary));
    let crash = |cause: &Cause| *cause == Cause::Crash;
    assert!(explanation.steps.iter().any(|step| crash(&step.cause)));
    // The steps before the crash are the same with and without the crash.
    let index = explanation.divergence.unwrap();
    assert!(index > 0 && crash(&explanation.steps[index].cause));
    let messages = explanation
        .steps
        .iter()
        .filter_map(|step| match step.cause {
            Cause::Message { sent, .. } => Some((sent, step.at)),
            _ => None,
        });
    assert!(messages.clone().count() > 2);
    assert!(
        messages
            .into_iter()
            .all(|(sent, at)| at - sent >= 1_000_000)
    );
    let text = explanation.text();
    for part in [
        "✗ crash",
        "(necessary)",
        "Write",
        "▶",
        "differs from a run that passes",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let svg = explanation.svg();
    assert!(svg.contains("node 1") && svg.ends_with("</svg>\n"));
}

// Guarantee: hunt-5.
#[test]
fn a_passing_run_is_not_explained() {
    let all = corsair_zoo::all(false);
    let failure = Failure {
        property: "acknowledged writes are read".to_owned(),
        seed: 1,
        plan: FaultPlan::calm(3_000),
        delivered: 0,
    };
    let wal = all.iter().find(|subject| subject.name() == "wal").unwrap();
    let error = explain(&**wal, &failure).unwrap_err().to_string();
    assert!(error.contains("does not violate the property"), "{error}");
}

// Guarantee: hunt-6.
#[test]
fn a_search_reports_its_progress_and_shards_draw_other_runs() {
    let all = corsair_zoo::all(false);
    let first = |shard| {
        let (mut runs, mut covered) = (Vec::new(), 0);
        let settings = Hunt {
            runs: 96,
            shard,
            ..Hunt::default()
        };
        let progress = |hunted: &Hunted| {
            assert!(hunted.covered >= covered);
            covered = hunted.covered;
            runs.push(hunted.runs);
        };
        let vote = all.iter().find(|subject| subject.name() == "vote").unwrap();
        let hunted = hunt_with(&**vote, &settings, progress).unwrap();
        assert_eq!(runs, [32, 64, 96]);
        assert!(covered > 0);
        hunted.properties
    };
    assert_ne!(first(0), first(1));
}
