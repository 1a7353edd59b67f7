//! Services that call themselves.

use crate::scene::{plan, run, run_with_graph, topology, write_flows};
use crate::service::{run_load, service};
use corsair_arch::{Plan, Scale, learn, read_text};
use corsair_observe::FlowFormat;
use std::time::Duration;

/// Returns a service whose endpoint get works for 2 ms and calls its endpoint part, which works for 3 ms.
fn api(count: u32, more: &str) -> String {
    format!(
        r#"{{"name": "api", "package": "service", "count": {count}, "regions": 1 {more}, "endpoints": [
        {{"name": "get", "steps": [{{"work": "2ms"}}, {{"call": "api.part"}}]}},
        {{"name": "part", "steps": [{{"work": "3ms"}}]}}]}}"#
    )
}

const LOAD: &str = r#"{"rate": 100, "requests": {"common": 1}}"#;

/// Returns a plan whose last requests are answered before the run ends.
fn drained() -> Plan {
    Plan {
        drain: Duration::from_secs(2),
        ..plan()
    }
}

// Guarantee: arch-4.
#[test]
fn the_only_instance_calls_itself_over_the_network() {
    for more in [
        "",
        r#", "concurrency": 8"#,
        r#", "calls": {"api": {"connections": {"most": 1}}}"#,
        r#", "calls": {"api": {"timeout": "1s", "retries": {"most": 1}}}"#,
    ] {
        let ran = run_load(&api(1, more), LOAD, &plan());
        let (entry, called) = (ran.entry(), ran.service("api"));
        assert_eq!((entry.errors, entry.unanswered()), (0, 0), "{more}");
        assert_eq!(called.requests, 2 * entry.requests, "{more}");
        // Four trips of a millisecond, and five milliseconds of work.
        let (least, most) = ran.micros();
        assert!(least >= 8_950 && most <= 9_050, "{least} to {most}, {more}");
    }
}

#[test]
fn every_policy_chooses_among_all_instances_including_the_caller() {
    for balance in [
        "random",
        "round_robin",
        "least_requests",
        "two_choices",
        "hash",
        "zone",
    ] {
        for count in 1..=3 {
            let more = format!(r#", "calls": {{"api": {{"balance": "{balance}"}}}}"#);
            let ran = run_load(&api(count, &more), LOAD, &plan());
            let (entry, called) = (ran.entry(), ran.service("api"));
            assert_eq!(
                (entry.errors, entry.unanswered()),
                (0, 0),
                "{balance} {count}"
            );
            assert_eq!(called.requests, 2 * entry.requests, "{balance} {count}");
        }
    }
    let www = r#"{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"]}"#;
    let three = topology(&format!("{}, {www}", api(3, "")), Scale::default());
    assert_eq!(corsair_arch::connections(&three), 3 * 3 + 3);
    let (_, _, graph) = run_with_graph(three, &plan());
    assert_eq!(graph.edges.len(), 3 * 3 + 3);
}

#[test]
fn services_of_other_packages_do_not_call_themselves() {
    let services = r#"{"name": "api", "package": "monolith", "count": 3, "regions": 1, "dependencies": ["api"]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"]}"#;
    let (_, _, graph) = run_with_graph(topology(services, Scale::default()), &plan());
    assert_eq!(graph.edges.len(), 3 * 2 + 3);
}

#[test]
fn calls_of_an_instance_to_itself_use_the_processors_of_its_machine() {
    let text = format!(
        r#"{{"arch": "x", "machines": {{"box": {{"processors": 1}}}}, "load": {{"www": {LOAD}}}, "services": [{},
        {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"]}}]}}"#,
        api(1, r#", "machine": "box""#)
    );
    let checked = read_text(&text, "x").unwrap();
    let ran = run(
        corsair_arch::Topology::new(&checked, Scale::default()).unwrap(),
        &plan(),
    );
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
    assert_eq!(ran.service("box").requests, 2 * ran.entry().requests);
}

#[test]
fn a_call_of_an_instance_to_itself_survives_its_restart_as_a_failure() {
    let faults = r#", "faults": [{"kind": "kill", "at": "1004ms", "for": "100ms"}]"#;
    let ran = run_load(&api(1, faults), LOAD, &drained());
    let entry = ran.entry();
    assert!((5..20).contains(&entry.errors), "{}", entry.errors);
    assert_eq!(entry.unanswered(), 0);
}

#[test]
fn an_instance_that_waits_for_its_own_slot_times_out_or_waits_for_ever() {
    let one = |more: &str| {
        run_load(
            &api(1, &format!(r#", "concurrency": 1{more}"#)),
            LOAD,
            &drained(),
        )
    };
    let ran = one(r#", "calls": {"api": {"timeout": "5ms"}}"#);
    assert_eq!(ran.entry().unanswered(), 0);
    assert_eq!(ran.entry().errors, ran.entry().requests);
    assert!(ran.service("api").requests > ran.entry().requests);
    // Refused at once, because the queue has no capacity.
    let ran = one(r#", "queue": {"size": 0}"#);
    assert_eq!(
        (ran.entry().errors, ran.entry().unanswered()),
        (ran.entry().requests, 0)
    );
    let ran = one("");
    assert_eq!(ran.entry().unanswered(), ran.entry().requests);
}

#[test]
fn recursion_that_chance_may_end_fails_after_63_rounds() {
    let api = service("api", r#"{"call": "api", "probability": 0.99}"#, "");
    let ran = run_load(&api, LOAD, &drained());
    let (entry, called) = (ran.entry(), ran.service("api"));
    assert_eq!(entry.unanswered(), 0);
    // The 64th request of a chain fails, which 0.99^63 of all chains reach.
    let failed = entry.errors as f64 / entry.requests as f64;
    assert!((0.4..0.65).contains(&failed), "{failed}");
    assert!(called.requests <= 64 * entry.requests);
}

#[test]
fn a_pool_that_requests_certainly_exhaust_themselves_lets_none_succeed() {
    let api = |most: u32| {
        let ran = run_load(
            &format!(
                r#"{{"name": "api", "package": "service", "count": 1, "regions": 1,
                "calls": {{"api": {{"connections": {{"most": {most}}}, "timeout": "50ms"}}}}, "endpoints": [
                {{"name": "get", "steps": [{{"call": "api.mid"}}]}},
                {{"name": "mid", "steps": [{{"call": "api.end"}}]}}, {{"name": "end", "steps": []}}]}}"#
            ),
            r#"{"rate": 2, "requests": {"common": 1}}"#,
            &drained(),
        );
        assert_eq!(ran.entry().unanswered(), 0);
        (ran.entry().errors, ran.entry().requests)
    };
    let (errors, requests) = api(1);
    assert_eq!(errors, requests);
    assert_eq!(api(2).0, 0);
}

// Guarantee: arch-10.
#[test]
fn a_service_that_calls_itself_is_learned_and_runs() {
    for count in [1, 2] {
        let text = format!(
            r#"{{"arch": "x", "load": {{"www": {{"rate": 50, "arrivals": "poisson", "requests": {{"get": 1}}}}}},
            "services": [{}, {{"name": "www", "package": "denominator", "dependencies": ["api"]}}]}}"#,
            api(count, "")
        );
        let directory = tempfile::tempdir().unwrap();
        let checked = read_text(&text, "x").unwrap();
        let flows = write_flows(&checked, directory.path(), FlowFormat::Otlp, 20);
        let learned = learn(&[flows], "again").unwrap();
        let checked = read_text(&learned.definition.to_text(), "again").unwrap();
        let ran = run(
            corsair_arch::Topology::new(&checked, Scale::default()).unwrap(),
            &drained(),
        );
        let (entry, called) = (ran.entry(), ran.service("api"));
        assert_eq!((entry.errors, entry.unanswered()), (0, 0), "{count}");
        assert_eq!(called.requests, 2 * entry.requests, "{count}");
    }
}
