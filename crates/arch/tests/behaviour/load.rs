//! Loads have the specified number of requests, at the specified times, of the specified kinds.

use crate::scene::{Ran, plan, run, topology};
use corsair_arch::{LoadText, Plan, Scale, Topology};
use std::time::Duration;

const STORE: &str = r#"{"name": "db", "package": "store", "count": 1, "regions": 1},
    {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}"#;

fn with_load(services: &str, load: &str, plan: &Plan) -> Ran {
    let mut topology = topology(services, Scale::default());
    LoadText::read(load).unwrap().apply(&mut topology).unwrap();
    run(topology, plan)
}

fn arrivals(ran: &Ran) -> u64 {
    ran.entry().requests + ran.entry().puts
}

#[test]
fn a_constant_rate_brings_as_many_requests_as_it_says() {
    let ran = with_load(STORE, "250/s", &plan());
    assert_eq!(arrivals(&ran), 499, "the one at the very end is not made");
    let kinds = &ran.entry().kinds;
    assert_eq!(kinds.len(), 3);
    assert_eq!(kinds["write"].puts, ran.entry().puts);
}

// Guarantee: arch-4.
#[test]
fn random_arrivals_have_the_mean_and_the_variance_of_their_distribution() {
    let long = Plan {
        duration: Duration::from_secs(200),
        ..plan()
    };
    for (load, deviation) in [("poisson 500/s", 316.0), ("uniform 500/s", 182.6)] {
        let many = arrivals(&with_load(STORE, load, &long)) as f64;
        assert!((many - 100_000.0).abs() < 4.0 * deviation, "{load}: {many}");
        assert!((many - 100_000.0).abs() > 1.0, "{load} is not random");
    }
}

// Guarantee: arch-4.
#[test]
fn a_profile_steps_ramps_and_ends() {
    // 100 requests in the first half second, 125 in the next, in which the rate grows to 300/s, and then none.
    let ran = with_load(STORE, "200/s, 500ms..1s 300/s, 1s 0/s", &plan());
    let many = arrivals(&ran);
    assert!((224..=226).contains(&many), "{many}");
}

#[test]
fn the_instances_of_an_entry_point_share_its_load() {
    let services = STORE.replace(
        r#""package": "denominator", "regions": 0"#,
        r#""package": "denominator", "regions": 1, "count": 3"#,
    );
    for load in ["300/s", "users 30 think 100ms"] {
        let (one, three) = (
            arrivals(&with_load(STORE, load, &plan())),
            arrivals(&with_load(&services, load, &plan())),
        );
        assert!(one.abs_diff(three) <= 30, "{load}: {one} {three}");
    }
}

#[test]
fn users_wait_for_answers_and_think() {
    // A request takes two milliseconds and a user thinks for eight. Users do not wait for puts.
    let only_reads = r#"{"users": 10, "think": "8ms", "requests": {"read": 1}}"#;
    let ran = with_load(STORE, only_reads, &plan());
    let many = ran.entry().requests;
    assert!((1_990..=2_010).contains(&many), "{many}");
    assert_eq!(ran.entry().puts, 0);
    let slow = STORE.replace(
        r#""regions": 1}"#,
        r#""regions": 1, "service_time": "90ms"}"#,
    );
    let ran = with_load(&slow, only_reads, &plan());
    assert!(
        (190..=200).contains(&ran.entry().requests),
        "ten in a tenth of a second"
    );
}

#[test]
fn users_without_a_thought_or_an_answer_do_not_stop_time() {
    for load in [
        r#"{"users": 3, "requests": {"write": 1}}"#,
        r#"{"users": 3, "requests": {"read": 1}}"#,
    ] {
        let short = Plan {
            duration: Duration::from_millis(50),
            ..plan()
        };
        assert!(arrivals(&with_load(STORE, load, &short)) > 60);
        let gone = STORE.replace(
            r#""regions": 1}"#,
            r#""regions": 1, "faults": [{"kind": "kill", "at": "0s"}]}"#,
        );
        let plan = Plan {
            poll: Duration::from_millis(1),
            ..short
        };
        assert!(with_load(&gone, load, &plan).entry().unrouted > 10);
    }
}

#[test]
fn recorded_arrivals_come_in_at_their_times() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("seen.csv");
    std::fs::write(
        &file,
        "time,kind\n0.5,read\n100ms,write\n0.5,read\n1.5,common\n9,read\n",
    )
    .unwrap();
    let ran = with_load(STORE, file.to_str().unwrap(), &plan());
    let kinds = &ran.entry().kinds;
    assert_eq!(kinds["read"].requests, 2);
    assert_eq!((kinds["write"].puts, kinds["common"].requests), (1, 1));
}

#[test]
fn a_definition_says_what_comes_in_at_which_entry_point() {
    let text = r#"{"arch": "x", "load": {"www": {"rate": 100, "requests": {"common": 1}}}, "services": [
        {"name": "db", "package": "store", "count": 1, "regions": 1},
        {"name": "api", "package": "denominator", "dependencies": ["db"]},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    let checked = corsair_arch::read_text(text, "x.json").unwrap();
    let ran = run(
        corsair_arch::Topology::new(&checked, Scale::default()).unwrap(),
        &plan(),
    );
    assert_eq!(ran.totals.entries["www"].requests, 199);
    assert!(ran.totals.entries["api"].puts > 0);
    let refusal = |text: &str| {
        corsair_arch::read_text(text, "x.json")
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal(&text.replacen("\"www\"", "\"wwww\"", 1)),
        "x.json:1: the load is for 'wwww', which is not an entry point; did you mean www?"
    );
    assert_eq!(
        refusal(&text.replacen("100", "-5", 1)),
        "x.json:1: the load of 'www': a rate of -5 is not possible; give 0 to 1000000"
    );
    let load = LoadText::read(r#"{"wwww": {"rate": 1}}"#).unwrap();
    let mut topology = corsair_arch::Topology::new(&checked, Scale::default()).unwrap();
    assert_eq!(
        load.apply(&mut topology).unwrap_err().to_string(),
        "'wwww' is not an entry point; did you mean www?"
    );
}

/// Returns a topology whose load has a mix of kinds, random arrivals and a number of keys.
fn mixed() -> Topology {
    let text = r#"{"arch": "x",
        "load": {"www": {"rate": 100, "arrivals": "poisson", "requests": {"db.get": 1}}},
        "services": [
        {"name": "db", "package": "service", "count": 1, "regions": 1, "endpoints": [
            {"name": "get", "steps": [{"work": "1ms"}]}, {"name": "scan", "steps": [{"work": "2ms"}]}]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}]}"#;
    let checked = corsair_arch::read_text(text, "x.json").unwrap();
    Topology::new(&checked, Scale::default()).unwrap()
}

// Guarantee: arch-4.
#[test]
fn a_rate_changes_the_rate_and_nothing_else() {
    let kinds = |load: &str| {
        let mut topology = mixed();
        LoadText::read(load).unwrap().apply(&mut topology).unwrap();
        let ran = run(topology, &plan());
        let kinds = ran.entry().kinds.iter();
        let made: Vec<(String, u64)> = kinds
            .map(|(kind, of)| (kind.clone(), of.requests))
            .collect();
        made
    };
    for load in [
        "poisson 300/s",
        "300/s",
        "users 3",
        r#"{"rate": 300}"#,
        r#"{"www": {"rate": 300}}"#,
    ] {
        let made = kinds(load);
        assert_eq!(made.len(), 1, "{load}: {made:?}");
        assert_eq!(made[0].0, "db.get", "{load}");
    }
    // The arrivals remain Poisson arrivals; constant arrivals would give exactly 599 requests.
    assert_ne!(kinds("300/s")[0].1, 599);
    assert_eq!(kinds("constant 300/s")[0].1, 599);
    assert_eq!(
        kinds(r#"{"rate": 300, "requests": {"db.scan": 1}}"#)[0].0,
        "db.scan"
    );
}
