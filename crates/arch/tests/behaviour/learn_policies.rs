//! Tests that policies of calls are learned back from the traces of a known definition, with their parameters.

use crate::scene::write_flows_of;
use corsair_arch::{Balance, CallPolicy, LearnOptions, LearnReport, learn_with};
use corsair_observe::FlowFormat;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A page that calls a database under a policy.
fn definition(policy: &str, database: &str, page: &str) -> String {
    format!(
        r#"{{"arch": "x", "network": {{"same_zone": "100us", "same_region": "100us"}}, "services": [
        {{"name": "db", "package": "service", "count": 1, "regions": 1 {database}}},
        {{"name": "web", "package": "service", "count": 1, "regions": 1, "calls": {{"db": {policy}}},
          "endpoints": [{{"name": "page", "steps": [{page}]}}]}},
        {{"name": "www", "package": "denominator", "dependencies": ["web"]}}],
        "load": {{"www": {{"rate": 100, "arrivals": "poisson", "requests": {{"page": 1}}}}}}}}"#
    )
}

const WORK: &str =
    r#", "endpoints": [{"name": "get", "steps": [{"work": {"exponential": "5ms"}}]}]"#;
const FAILING: &str = r#", "error_rate": 0.05, "endpoints": [{"name": "get", "steps": [{"work": {"exponential": "5ms"}}]}]"#;
const PAGE: &str = r#"{"work": "2ms"}, {"call": "db.get"}, {"work": "1ms"}"#;

fn recorded(definition: &str, directory: &Path, seconds: u64, seed: u64) -> PathBuf {
    let checked = corsair_arch::read_text(definition, "x").unwrap();
    let file = write_flows_of(&checked, directory, FlowFormat::Otlp, seconds, seed);
    let named = directory.join(format!("traces-{seed}.jsonl"));
    std::fs::rename(file, &named).unwrap();
    named
}

fn learned_from(file: &Path) -> LearnReport {
    let options = LearnOptions {
        resamples: 10,
        ..LearnOptions::default()
    };
    let found = learn_with(&[file.to_owned()], "x", &options).unwrap();
    let mut services = found.definition.services.iter();
    assert!(services.all(|service| service.faults.is_empty()));
    found
}

fn learned(definition: &str) -> LearnReport {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(definition, directory.path(), 60, 0);
    learned_from(&file)
}

fn policy(learned: &LearnReport) -> CallPolicy {
    let web = learned
        .definition
        .services
        .iter()
        .find(|one| one.name == "web");
    web.unwrap().calls.get("db").cloned().unwrap_or_default()
}

/// Requires that a number is near a value, and that its interval nearly contains the value.
fn near(learned: &LearnReport, name: &str, value: f64, tolerance: f64) {
    let name = format!("web calls db {name}");
    let number = learned.numbers.iter().find(|one| one.name == name);
    let number = number.unwrap_or_else(|| panic!("{name} is not among {:#?}", learned.numbers));
    assert!(
        (number.value / value - 1.0).abs() <= tolerance,
        "{number:?}, expected {value}"
    );
    let (least, most) = number.between;
    let slack = value * tolerance;
    assert!(
        least - slack <= value && value <= most + slack,
        "{number:?}, expected {value}"
    );
}

/// The steps of the page: work, one call, work.
fn calls_once(learned: &LearnReport) {
    let web = learned
        .definition
        .services
        .iter()
        .find(|one| one.name == "web");
    let steps = &web.unwrap().endpoints[0].steps;
    let calls = steps.iter().filter(|step| step.call.is_some());
    assert_eq!(calls.count(), 1, "{steps:#?}");
    assert!(
        steps.iter().all(|step| step.probability.is_none()),
        "{steps:#?}"
    );
}

// Guarantee: arch-18.
#[test]
fn retries_after_failures_are_learned_with_their_waits() {
    let policy_text = r#"{"retries": {"most": 2, "backoff": "8ms", "factor": 3, "jitter": 0.5}}"#;
    let found = learned(&definition(
        policy_text,
        &FAILING.replace("0.05", "0.25"),
        PAGE,
    ));
    near(&found, "retries", 2.0, 0.0);
    near(&found, "backoff", 0.008, 0.05);
    near(&found, "jitter", 0.5, 0.15);
    let retries = policy(&found).retries.unwrap();
    assert!((retries.factor.unwrap() - 3.0).abs() <= 0.3, "{retries:?}");
    assert!(policy(&found).timeout.is_none() && policy(&found).hedge.is_none());
    calls_once(&found);
}

// Guarantee: arch-18.
#[test]
fn a_time_out_with_retries_is_learned_although_late_answers_are_recorded() {
    let policy_text =
        r#"{"timeout": "12ms", "retries": {"most": 3, "backoff": "4ms", "factor": 1}}"#;
    let found = learned(&definition(policy_text, FAILING, PAGE));
    near(&found, "timeout", 0.012, 0.02);
    near(&found, "backoff", 0.004, 0.05);
    assert!(
        policy(&found).retries.unwrap().most >= 2,
        "{:?}",
        policy(&found)
    );
    assert!(policy(&found).hedge.is_none());
    calls_once(&found);
}

// Guarantee: arch-18.
#[test]
fn a_time_out_alone_is_learned_from_requests_that_end_before_their_calls() {
    let found = learned(&definition(r#"{"timeout": "12ms"}"#, WORK, PAGE));
    near(&found, "timeout", 0.012, 0.02);
    assert!(policy(&found).retries.is_none() && policy(&found).hedge.is_none());
}

/// Ends the spans of clients that last longer than a time-out with a failure, as the SDKs of OpenTelemetry do.
fn given_up(text: &str, timeout: u64) -> String {
    let mut changed = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for resource in line["resourceSpans"].as_array_mut().unwrap() {
            let is_web = resource["resource"]["attributes"][0]["value"]["stringValue"] == "web";
            for span in resource["scopeSpans"][0]["spans"].as_array_mut().unwrap() {
                let nanos = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
                let (begin, end) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano"));
                if is_web && span["kind"] == 3 && end - begin > timeout {
                    span["endTimeUnixNano"] = json!((begin + timeout).to_string());
                    span["status"] = json!({"code": 2});
                }
            }
        }
        changed.push_str(&format!("{line}\n"));
    }
    changed
}

// Guarantee: arch-18.
#[test]
fn a_time_out_is_learned_from_clients_that_end_their_spans_with_it() {
    let policy_text = r#"{"timeout": "12ms", "retries": {"most": 2}}"#;
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(
        &definition(policy_text, WORK, PAGE),
        directory.path(),
        60,
        0,
    );
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, given_up(&text, 12_000_000)).unwrap();
    let found = learned_from(&file);
    near(&found, "timeout", 0.012, 0.02);
    assert_eq!(policy(&found).retries.unwrap().most, 2);
    let db = found
        .definition
        .services
        .iter()
        .find(|one| one.name == "db")
        .unwrap();
    assert_eq!(db.error_rate, None, "the server did not fail");
    calls_once(&found);
}

// Guarantee: arch-18.
#[test]
fn hedges_are_learned_and_are_not_retries() {
    let found = learned(
        &definition(r#"{"hedge": {"after": "9ms"}}"#, WORK, PAGE).replacen(
            "\"count\": 1",
            "\"count\": 2",
            1,
        ),
    );
    near(&found, "hedge", 0.009, 0.02);
    assert!(
        policy(&found).retries.is_none() && policy(&found).timeout.is_none(),
        "{:?}",
        policy(&found)
    );
    calls_once(&found);
}

// Guarantee: arch-18.
#[test]
fn connections_are_counted_where_calls_wait_for_them() {
    let found = learned(
        &definition(r#"{"connections": {"most": 3}}"#, WORK, PAGE)
            .replace("\"rate\": 100", "\"rate\": 400"),
    );
    near(&found, "connections", 3.0, 0.0);
    assert_eq!(policy(&found).connections.unwrap().connect, None);
    // The wait is not work.
    let web = found
        .numbers
        .iter()
        .find(|one| one.name == "web.page work")
        .unwrap();
    assert!((web.value - 0.003).abs() < 1e-4, "{web:?}");
}

/// Calls that wait for one of three connections within their client's span.
fn waiting_inside() -> String {
    let mut random = corsair::Random::new(4);
    let mut unit = move || (random.below(1 << 24) as f64 + 0.5) / f64::from(1 << 24);
    let (mut now, mut free) = (1e9, [0.0f64; 3]);
    let mut lines = String::new();
    for trace in 1..=6_000 {
        now += -unit().ln() / 400.0 * 1e9;
        free.sort_by(f64::total_cmp);
        let begin = now.max(free[0]) + 100_000.0;
        let end = begin - unit().ln() * 5e6;
        free[0] = end + 100_000.0;
        let span = |service: &str, id: u32, parent: &str, kind: &str, from: f64, to: f64| {
            format!(
                r#"{{"traceId": "{trace:x}", "id": "{id}", "parentId": "{parent}", "kind": "{kind}", "name": "get",
                "timestamp": {}, "duration": {}, "localEndpoint": {{"serviceName": "{service}"}}}}"#,
                (from / 1e3) as u64,
                ((to - from) / 1e3) as u64
            )
            .replace('\n', " ")
        };
        let all = [
            span("web", 1, "", "SERVER", now, end + 200_000.0),
            span("web", 2, "1", "CLIENT", now, end + 100_000.0),
            span("db", 3, "2", "SERVER", begin, end),
        ];
        lines.push_str(&format!("[{}]\n", all.join(",")));
    }
    lines
}

// Guarantee: arch-18.
#[test]
fn connections_are_counted_where_clients_wait_within_their_spans() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("traces.jsonl");
    std::fs::write(&file, waiting_inside()).unwrap();
    let found = learned_from(&file);
    near(&found, "connections", 3.0, 0.0);
    assert_eq!(policy(&found).connections.unwrap().connect, None);
    // The wait is not latency.
    let db = found
        .definition
        .services
        .iter()
        .find(|one| one.name == "db")
        .unwrap();
    let latency = db.latency.as_ref().unwrap().sampler().median();
    assert!(latency < 200_000, "{latency}");
}

/// Four instances with connections of this policy, and a remark about connections if there is one.
fn with_connections(policy: &str) -> (LearnReport, Option<String>) {
    let definition = definition(policy, WORK, PAGE)
        .replace("\"rate\": 100", "\"rate\": 1600")
        .replace(
            r#""web", "package": "service", "count": 1"#,
            r#""web", "package": "service", "count": 4"#,
        );
    let directory = tempfile::tempdir().unwrap();
    let found = learned_from(&recorded(&definition, directory.path(), 10, 0));
    let mut remarks = found.remarks.iter();
    let remark = remarks.find(|remark| remark.contains("a new connection"));
    let remark = remark.cloned();
    (found, remark)
}

// Guarantee: arch-18.
#[test]
fn the_time_to_open_a_connection_is_learned_with_the_number_of_connections() {
    let (found, remark) = with_connections(r#"{"connections": {"most": 3, "connect": "10ms"}}"#);
    let connections = policy(&found).connections.unwrap();
    assert_eq!(connections.most, 3);
    let connect = connections.connect.unwrap();
    assert!(
        (connect.0.as_secs_f64() / 10e-3 - 1.0).abs() < 0.02,
        "{connect:?}"
    );
    assert_eq!(remark, None);
    // The service's latency does not include this time.
    let mut services = found.definition.services.iter();
    let db = services.find(|one| one.name == "db").unwrap();
    assert_eq!(json!(db.latency), json!("100us"));
}

#[test]
#[ignore = "takes many seconds; ci/gate.sh runs it"]
fn the_time_to_open_a_connection_is_reported_if_their_number_is_unknown() {
    let (found, remark) = with_connections(r#"{"connections": {"most": 1000, "connect": "10ms"}}"#);
    assert_eq!(policy(&found), CallPolicy::default());
    assert!(remark.is_some_and(|remark| remark.contains("take 10.0 ms longer")));
    let (_, remark) = with_connections("{}");
    assert_eq!(remark, None);
}

#[test]
fn calls_without_a_policy_get_none_and_the_unknown_is_named() {
    let sequences = r#"{"work": "1ms"}, {"call": "db.get", "times": 3, "fallback": []}, {"parallel": [[{"call": "db.get"}], [{"call": "db.get"}]], "fallback": []}"#;
    for page in [PAGE, sequences] {
        for database in [WORK, FAILING] {
            let found = learned(&definition("{}", database, page));
            assert_eq!(policy(&found), CallPolicy::default(), "{page} {database}");
            let unseen = &found.unseen[0];
            assert_eq!(
                (unseen.caller.as_str(), unseen.called.as_str()),
                ("web", "db")
            );
            let named: Vec<&str> = unseen.policies.iter().map(|one| one.policy).collect();
            let retries: &[&str] = if database == WORK { &["retries"] } else { &[] };
            let expected = [
                &["timeout"],
                retries,
                &["connections", "hedge", "rate_limit"],
            ]
            .concat();
            assert_eq!(named, expected);
            let timeout = unseen.policies[0].beyond;
            assert!((0.02..0.2).contains(&timeout), "{timeout}");
        }
    }
}

// Guarantee: arch-18.
#[test]
fn what_traces_do_not_show_is_taken_from_a_definition_and_what_they_show_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let shown = definition(r#"{"timeout": "12ms", "retries": {"most": 2}}"#, WORK, PAGE);
    let file = recorded(&shown, directory.path(), 30, 0);
    let configured = directory.path().join("configured.json");
    let text =
        r#"{"timeout": "99s", "retries": {"most": 9, "budget": {"share": 0.1}}, "bulkhead": 40}"#;
    std::fs::write(
        &configured,
        definition(text, &format!(", \"concurrency\": 50{WORK}"), PAGE),
    )
    .unwrap();
    let mut found = learned_from(&file);
    found.take_configured(&configured).unwrap();
    let policy = policy(&found);
    assert_eq!(policy.bulkhead, Some(40));
    assert!(
        (policy.timeout.unwrap().nanos() as f64 / 12e6 - 1.0).abs() < 0.02,
        "{policy:?}"
    );
    let retries = policy.retries.unwrap();
    assert_eq!((retries.most, retries.budget.unwrap().share), (2, 0.1));
    let db = found
        .definition
        .services
        .iter()
        .find(|one| one.name == "db")
        .unwrap();
    assert_eq!(db.concurrency, Some(50));
    assert!(
        found
            .resampled
            .iter()
            .all(|one| one.services[0].concurrency == Some(50))
    );
    // Bad files are explained.
    for (text, expected) in [
        ("{", "configured.json"),
        (
            r#"{"arch": "x", "services": [{"name": "other", "package": "service"}]}"#,
            "has none of the learned services, which are db, web",
        ),
    ] {
        std::fs::write(&configured, text).unwrap();
        let said = found.take_configured(&configured).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

// Guarantee: arch-18.
#[test]
fn the_intervals_of_two_recordings_of_one_system_overlap() {
    let directory = tempfile::tempdir().unwrap();
    let policy_text = r#"{"timeout": "20ms", "retries": {"most": 2, "backoff": "3ms"}}"#;
    let text = definition(policy_text, &format!(", \"concurrency\": 2{FAILING}"), PAGE);
    let [one, two] = [1, 2].map(|seed| {
        let file = recorded(&text, directory.path(), 60, seed);
        let options = LearnOptions {
            resamples: 40,
            ..LearnOptions::default()
        };
        learn_with(&[file], "x", &options).unwrap()
    });
    assert!(one.numbers.len() >= 6, "{:#?}", one.numbers);
    let mut apart = Vec::new();
    for number in &one.numbers {
        let other = two.numbers.iter().find(|other| other.name == number.name);
        let other = other.unwrap_or_else(|| panic!("{} is missing", number.name));
        let slack = 1e-3 * number.value;
        if number.between.0 > other.between.1 + slack || other.between.0 > number.between.1 + slack
        {
            apart.push((number.clone(), other.clone()));
        }
    }
    assert!(apart.is_empty(), "{apart:#?}");
    // Predictions have intervals, too, and they contain the other recording.
    let judged = one.judge(&corsair::Config::default()).unwrap();
    let other = two.judge(&corsair::Config::default()).unwrap();
    for (quantile, other) in judged[0].quantiles.iter().zip(&other[0].quantiles) {
        let (least, most) = quantile.between.unwrap();
        assert!(least < most, "{quantile:?}");
        if quantile.part < 0.99 {
            let measured = other.recorded;
            assert!(
                least.mul_f64(0.97) <= measured && measured <= most.mul_f64(1.03),
                "{quantile:?} {measured:?}"
            );
        }
    }
}

// Guarantee: arch-18.
#[test]
fn the_choice_of_instances_is_learned() {
    for (name, balance) in [
        ("round_robin", Some(Balance::RoundRobin)),
        ("least_requests", Some(Balance::LeastRequests)),
        ("two_choices", Some(Balance::TwoChoices)),
        ("random", None),
    ] {
        let one = definition(&format!(r#"{{"balance": "{name}"}}"#), WORK, PAGE);
        let three = one.replacen(r#""count": 1"#, r#""count": 3"#, 1);
        assert_eq!(policy(&learned(&three)).balance, balance, "{name}");
    }
}
