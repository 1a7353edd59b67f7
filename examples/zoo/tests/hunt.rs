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

/// Two programs whose violations are found at the end of a run and before it; `ci/hunt.sh` shrinks all.
const SHRUNK: [&str; 2] = ["failover", "vote"];

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
        ..Hunt::default()
    };
    hunt(subject, &settings).unwrap()
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
fn bugs_are_found_shrunk_and_replayed_on_any_number_of_workers() {
    let mut subjects = common();
    subjects.retain(|subject| SHRUNK.contains(&subject.name()));
    are_found_shrunk_and_replayed(&subjects);
}

// Guarantee: hunt-2, hunt-3.
#[test]
#[ignore = "takes minutes: ci/hunt.sh runs it"]
fn every_bug_is_found_shrunk_and_replayed_on_any_number_of_workers() {
    are_found_shrunk_and_replayed(&common());
}

fn are_found_shrunk_and_replayed(subjects: &[Box<dyn Subject>]) {
    let twins = corsair_zoo::all(false);
    std::thread::scope(|scope| {
        for subject in subjects {
            let twin = twins.iter().find(|twin| twin.name() == subject.name());
            scope.spawn(move || is_found_shrunk_and_replayed(&**subject, &**twin.unwrap()));
        }
    });
}

fn is_found_shrunk_and_replayed(subject: &dyn Subject, twin: &dyn Subject) {
    let name = subject.name();
    let found = failure(subject);
    let shrunk = shrink(subject, &found).unwrap();
    let (seed, plan) = (shrunk.failure.seed, &shrunk.failure.plan);
    // With fewer faults, a run may have more events.
    let size = (plan.faults.len(), shrunk.failure.events);
    assert!(size <= (found.plan.faults.len(), found.events), "{name}");
    // A violation that is found at the end of a run needs the time to recover.
    if plan.until.is_some() || ["failover", "half_open"].contains(&name) {
        assert!(shrunk.failure.events * 4 <= found.events, "{name}");
    }
    // The fixed twin passes the run that shows the bug.
    let passed = twin.run(seed, plan, 1).unwrap();
    assert_eq!(passed.properties.violated(), Vec::<&str>::new(), "{name}");
    for index in 0..plan.faults.len() {
        let mut fewer = plan.clone();
        fewer.faults.remove(index);
        let result = subject.run(seed, &fewer, 1).unwrap();
        let violated = result.properties.violated();
        assert!(
            !violated.contains(&found.property.as_str()),
            "{name}: {fewer:?}"
        );
    }
    let path = std::env::temp_dir().join(format!("corsair-{}-{name}.json", std::process::id()));
    shrunk.replay(subject).save(subject, &path).unwrap();
    let replay = Replay::load(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for number in 0..20 {
        let result = replay.run(subject, 1 + number % 4).unwrap();
        assert_eq!(result.digest, shrunk.digest, "{name}");
    }
}

/// The number of runs near a failure within which it has to be found with another seed; most need fewer than ten.
const MOST_NEAR: u64 = 100;

// Guarantee: hunt-10.
#[test]
fn a_failure_is_found_again_near_its_faults_when_its_seed_means_another_run() {
    let twins = corsair_zoo::all(false);
    for subject in common() {
        let (subject, name) = (&*subject, subject.name());
        let found = failure(subject);
        let replay = Replay {
            program: name.to_owned(),
            property: found.property.clone(),
            seed: found.seed,
            plan: found.plan,
        };
        let settings = Hunt {
            seed: 0xbeef,
            runs: MOST_NEAR,
            time: Duration::from_secs(3600),
            ..Hunt::default()
        };
        let near = replay.search(subject, &settings, |_| {}).unwrap();
        let missing = || panic!("{name}: {}", near.properties);
        assert_eq!(
            near.failure.unwrap_or_else(missing).property,
            replay.property,
            "{name}"
        );
        let twin = twins.iter().find(|twin| twin.name() == name).unwrap();
        let passed = replay.search(&**twin, &settings, |_| {}).unwrap();
        assert_eq!(passed.failure, None, "{name}");
    }
}

// Guarantee: hunt-2.
#[test]
fn a_replay_that_does_not_violate_its_property_is_not_written() {
    let all = corsair_zoo::all(false);
    let subject = all.iter().find(|subject| subject.name() == "wal").unwrap();
    let replay = Replay {
        program: "wal".to_owned(),
        property: "acknowledged writes are read".to_owned(),
        seed: 1,
        plan: FaultPlan::calm(3_000),
    };
    let path = std::env::temp_dir().join(format!("corsair-{}-passes.json", std::process::id()));
    let error = replay.save(&**subject, &path).unwrap_err().to_string();
    assert!(error.contains("does not violate the property"), "{error}");
    assert!(!path.exists());
    let missing = path.join("missing").join("file.json");
    let error = replay.save(&**subject, &missing).unwrap_err().to_string();
    assert!(error.contains("file.json.unverified: "), "{error}");
    let error = Replay::load(&missing).unwrap_err().to_string();
    assert!(error.contains("file.json: "), "{error}");
}

// Guarantee: hunt-7.
#[test]
fn the_fixed_twins_raise_no_alarm_and_reach_their_states() {
    raise_no_alarm_and_reach_their_states(64);
}

// Guarantee: hunt-7.
#[test]
#[ignore = "takes minutes: ci/hunt.sh runs it"]
fn the_fixed_twins_raise_no_alarm_in_thousands_of_runs() {
    raise_no_alarm_and_reach_their_states(MOST_RUNS);
}

fn raise_no_alarm_and_reach_their_states(runs: u64) {
    for subject in corsair_zoo::all_and_further(false) {
        let hunted = search(&*subject, 2, runs, 0);
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
    let mut subjects = corsair_zoo::all(true);
    subjects.truncate(4);
    // Runs branch after the first 32, which only a search that finds nothing is sure to reach.
    subjects.extend(corsair_zoo::all(false).into_iter().take(2));
    for subject in &subjects {
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
            r#"{"time": 100, "faults": [{"crash": {"nodes": [0, 9], "at": 1, "down": 1}}]}"#,
            "the fault crash names node 9",
        ),
        (
            r#"{"time": 100, "faults": [{"partition": {"from": 1, "until": 2, "side": [5]}}]}"#,
            "the fault partition names node 5",
        ),
        (
            r#"{"time": 100, "faults": [{"partition": {"from": 1, "until": 2, "side": [0], "others": [7]}}]}"#,
            "the fault partition names node 7",
        ),
        (
            r#"{"time": 100, "faults": [{"pause": {"from": 1, "until": 2, "nodes": [63]}}]}"#,
            "63 is not the index of a node",
        ),
        (
            r#"{"time": 100, "faults": [{"partition": {"from": 1, "until": 2, "side": [1], "every": 0}}]}"#,
            "flaps every 0 ms",
        ),
        (
            r#"{"time": 9000, "faults": [{"partition": {"from": 1, "until": 9000, "side": [1], "every": 1}}]}"#,
            "flaps every 1 ms",
        ),
        (
            r#"{"time": 100, "faults": [{"skew": {"from": 1, "until": 2, "nodes": [1], "rate": 0}}]}"#,
            "has the rate 0",
        ),
        (
            r#"{"time": 100, "faults": [{"slow": {"from": 1, "until": 2, "nodes": [1], "by": 101}}]}"#,
            "the fault slow is at 101 ms",
        ),
        (
            r#"{"time": 100, "absent": [{"node": 7, "from": 1, "until": 2}]}"#,
            "the fault absence names node 7",
        ),
        (
            r#"{"time": 100, "only": [{"sent": 7, "from": 1, "to": 8}]}"#,
            "the fault message names node 8",
        ),
        (
            r#"{"time": 100, "faults": [{"quake": {}}]}"#,
            "unknown variant `quake`",
        ),
        (r#"{"time": 0}"#, "time is 0 ms"),
        (
            r#"{"time": 100, "faults": [{"loss": {"share": 1001}}]}"#,
            "loss has the share 1001",
        ),
        (r#"{"time": 100, "lossy": 1}"#, "unknown field `lossy`"),
        (
            r#"{"time": 100, "faults": [{"crash": {"nodes": [0], "at": 4294967295, "down": 4294967295}}]}"#,
            "after the end",
        ),
        (
            r#"{"time": 100, "faults": [{"late": {"share": 1000, "by": 4294967295}}]}"#,
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
        events: 0,
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
