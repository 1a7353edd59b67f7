//! Tests that repeated pauses of instances are learned back from the traces of known systems, and that no pause is
//! learned where none was.

use crate::scene::{p99, write_flows_of};
use corsair::{Config, Random};
use corsair_arch::{Fault, FaultKind, LearnOptions, LearnReport, learn, learn_with, read_text};
use corsair_observe::FlowFormat;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The work of the paused service without its pauses, in milliseconds.
const WORK: f64 = 4.0;

/// A page that calls an interface, which calls a database. The interface has `count` instances of two slots, these faults,
/// and this work in milliseconds, at this utilisation.
fn definition(count: usize, faults: &str, work: &str, utilisation: f64) -> String {
    let rate = utilisation * count as f64 * 2.0 * 1e3 / WORK;
    format!(
        r#"{{"arch": "x", "network": {{"same_zone": "100us", "same_region": "100us"}}, "services": [
        {{"name": "db", "package": "service", "count": 1, "regions": 1,
          "endpoints": [{{"name": "get", "steps": [{{"work": {{"exponential": "1ms"}}}}]}}]}},
        {{"name": "api", "package": "service", "count": {count}, "regions": 1, "concurrency": 2, "faults": [{faults}],
          "endpoints": [{{"name": "list", "steps": [{{"work": {work}}}]}}]}},
        {{"name": "web", "package": "service", "count": 1, "regions": 1,
          "endpoints": [{{"name": "page", "steps": [
            {{"work": "500us"}}, {{"call": "api.list"}}, {{"call": "db.get"}}]}}]}},
        {{"name": "www", "package": "denominator", "dependencies": ["web"]}}],
        "load": {{"www": {{"rate": {rate}, "arrivals": "poisson", "requests": {{"page": 1}}}}}}}}"#
    )
}

const EXPONENTIAL: &str = r#"{"exponential": "4ms"}"#;
const PAUSES: &str = r#"{"kind": "pause", "at": "130ms", "for": "20ms", "every": "400ms"}"#;

fn recorded(definition: &str, directory: &Path, seconds: u64, seed: u64) -> PathBuf {
    let checked = read_text(definition, "x").unwrap();
    write_flows_of(&checked, directory, FlowFormat::Otlp, seconds, seed)
}

fn learned_from(definition: &str, seconds: u64, seed: u64) -> LearnReport {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(definition, directory.path(), seconds, seed);
    learned_with_intervals(file)
}

fn learned_with_intervals(file: PathBuf) -> LearnReport {
    let options = LearnOptions {
        resamples: 10,
        ..LearnOptions::default()
    };
    learn_with(&[file], "x", &options).unwrap()
}

/// Returns the services with faults.
fn faults(learned: &LearnReport) -> Vec<(&str, &[Fault])> {
    let services = learned.definition.services.iter();
    services
        .filter(|service| !service.faults.is_empty())
        .map(|service| (service.name.as_str(), &service.faults[..]))
        .collect()
}

/// Returns a learned number whose interval contains it.
fn number(learned: &LearnReport, name: &str) -> f64 {
    let found = learned.numbers.iter().find(|one| one.name == name);
    let found = found.unwrap_or_else(|| panic!("{name}: {:?}", learned.numbers));
    assert!((found.between.0..=found.between.1).contains(&found.value));
    found.value
}

fn millis(time: Option<corsair_arch::TimeSpan>) -> f64 {
    time.unwrap().0.as_secs_f64() * 1e3
}

/// Checks that one service has a pause of 20 ms every 400 ms.
fn pauses_of_api(learned: &LearnReport) -> &Fault {
    let found = faults(learned);
    let [("api", [pause])] = &found[..] else {
        panic!("{found:?} {:?}", learned.remarks);
    };
    assert_eq!(pause.kind, FaultKind::Pause);
    let lasting = millis(pause.lasting);
    assert!((lasting / 20.0 - 1.0).abs() < 0.1, "{lasting} ms");
    pause
}

// Guarantee: arch-18.
#[test]
#[ignore = "takes many seconds; ci/gate.sh runs it"]
fn repeated_pauses_are_learned_and_are_not_work() {
    for count in [1, 3] {
        let found = learned_from(&definition(count, PAUSES, EXPONENTIAL, 0.3), 60, 1);
        let pause = pauses_of_api(&found);
        let every = millis(pause.every);
        assert!((every / 400.0 - 1.0).abs() < 0.01, "{every} ms");
        assert_eq!(pause.share, None);
        assert_eq!(number(&found, "api pause"), millis(pause.lasting) / 1e3);
        let work = number(&found, "api.list work") * 1e3;
        assert!((work / WORK - 1.0).abs() < 0.03, "{work} ms");
        let mut other = found.definition.clone();
        for load in other.load.values_mut() {
            let Some(corsair_arch::Rate::Constant(rate)) = &mut load.rate else {
                panic!("{load:?}");
            };
            *rate *= 2.0;
        }
        let (learned, true_one) = (
            p99(&other.to_text()),
            p99(&definition(count, PAUSES, EXPONENTIAL, 0.6)),
        );
        assert!(
            (learned / true_one - 1.0).abs() < 0.04,
            "{count}: {learned} instead of {true_one}"
        );
    }
}

#[test]
fn callers_that_wait_for_a_paused_service_do_not_pause() {
    let plain = definition(1, PAUSES, EXPONENTIAL, 0.3);
    let web = r#""name": "web", "package": "service", "count": 1"#;
    for change in [
        r#", "concurrency": 2"#,
        r#", "calls": {"api": {"connections": {"most": 2}}}"#,
    ] {
        let text = plain.replace(web, &format!("{web}{change}"));
        assert_ne!(text, plain);
        pauses_of_api(&learned_from(&text, 60, 1));
    }
}

fn unit(random: &mut Random) -> f64 {
    (f64::from(random.below(1 << 24)) + 0.5) / f64::from(1 << 24)
}

/// The traces of this number of seconds with this rate of requests to each instance with 64 slots. Each instance has pauses
/// of 20 ms at these times in nanoseconds. As most instrumentation does, a paused instance records the beginnings of requests
/// when the pause has ended.
fn traces(pauses: &[Vec<u64>], seconds: f64, rate: f64) -> String {
    let mut random = Random::new(4);
    let mut lines = String::new();
    for (instance, pauses) in pauses.iter().enumerate() {
        let (mut now, mut free) = (0.0, [0u64; 64]);
        let resumed = |time: u64| {
            let paused = pauses
                .iter()
                .find(|&&from| (from..from + 20_000_000).contains(&time));
            paused.map_or(time, |from| from + 20_000_000)
        };
        while now < seconds {
            now -= unit(&mut random).ln() / rate;
            let sent = 1_000_000_000 + (now * 1e9) as u64;
            let begin = resumed(sent + 100_000);
            free.sort_unstable();
            let from = begin.max(free[0]);
            let mut end = from + (-unit(&mut random).ln() * WORK * 1e6) as u64;
            for &pause in pauses.iter().filter(|&&pause| pause >= from) {
                end += if pause < end { 20_000_000 } else { 0 };
            }
            free[0] = end;
            let trace = format!("{:x}{:x}", instance + 1, sent);
            let span = |id: &str, parent: Option<&str>, service: &str, from: u64, to: u64| {
                json!({"traceId": trace, "id": format!("{trace}{id}"), "name": "list",
                    "parentId": parent.map(|parent| format!("{trace}{parent}")),
                    "kind": if parent.is_some() { "SERVER" } else { "CLIENT" },
                    "timestamp": from / 1_000, "duration": (to - from) / 1_000,
                    "localEndpoint": {"serviceName": service, "ipv4": format!("10.0.0.{}", instance + 1)}})
            };
            let spans = [
                span("1", None, "www", sent, end + 100_000),
                span("2", Some("1"), "api", begin, end),
            ];
            lines.push_str(&format!("{}\n", json!(spans)));
        }
    }
    lines
}

/// The pauses of three instances, with these times in between, in milliseconds.
fn own_pauses(between: impl Fn(&mut Random) -> f64) -> Vec<Vec<u64>> {
    let mut random = Random::new(5);
    let mut of_instance = || {
        let mut now = 1_000.0 + 400.0 * unit(&mut random);
        let mut pauses = Vec::new();
        while now < 61_000.0 {
            pauses.push((now * 1e6) as u64);
            now += between(&mut random);
        }
        pauses
    };
    (0..3).map(|_| of_instance()).collect()
}

/// Learns from the traces of instances with these pauses. Checks the pause, the work and the response times, to this
/// tolerance.
fn learned_from_own_pauses(traces: &str, tolerance: f64) -> LearnReport {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("traces.jsonl");
    std::fs::write(&file, traces).unwrap();
    let found = learned_with_intervals(file);
    pauses_of_api(&found);
    let work = number(&found, "api.list work") * 1e3;
    assert!((work / WORK - 1.0).abs() < 0.04, "{work} ms");
    for kind in found.judge(&Config::default()).unwrap() {
        let p99 = kind.quantiles.iter().find(|one| one.part == 0.99).unwrap();
        let ratio = p99.simulated.as_secs_f64() / p99.recorded.as_secs_f64();
        assert!((ratio - 1.0).abs() < tolerance, "{kind:?}");
    }
    found
}

#[test]
#[ignore = "takes many seconds; ci/gate.sh runs it"]
fn pauses_of_instances_at_their_own_times_are_learned() {
    let pauses = own_pauses(|random| 380.0 + 40.0 * unit(random));
    let found = learned_from_own_pauses(&traces(&pauses, 60.0, 150.0), 0.1);
    let pause = pauses_of_api(&found);
    assert_eq!(pause.share, Some(1.0 / 3.0));
    assert_eq!(pause.probability, None);
    let every = number(&found, "api pause every") * 1e3;
    assert!((every / 400.0 - 1.0).abs() < 0.02, "{every} ms");
}

#[test]
#[ignore = "takes many seconds; ci/gate.sh runs it"]
fn pauses_at_irregular_times_are_learned_without_a_period() {
    let pauses = own_pauses(|random| 40.0 - 360.0 * unit(random).ln());
    // The number of random pauses in the recording and in the simulation has a standard error of 8 %.
    let found = learned_from_own_pauses(&traces(&pauses, 15.0, 1_200.0), 0.2);
    let pause = pauses_of_api(&found);
    // The instances that pause are drawn each time, so a probability of almost 1 is irregular for an instance.
    assert!(pause.probability.is_some(), "{pause:?}");
    let every = number(&found, "api pause every") * 1e3;
    assert!((every / 400.0 - 1.0).abs() < 0.25, "{every} ms");
    let mut remarks = found.remarks.iter();
    assert!(
        remarks.any(|remark| remark.contains("irregular times")),
        "{:?}",
        found.remarks
    );
}

/// Returns every tenth trace.
fn tenth(otlp: &str) -> String {
    let mut kept = String::new();
    for line in otlp.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        for resource in line["resourceSpans"].as_array_mut().unwrap() {
            let spans = resource["scopeSpans"][0]["spans"].as_array_mut().unwrap();
            spans.retain(|span| {
                let trace = span["traceId"].as_str().unwrap();
                let number = u64::from_str_radix(&trace[16..], 16).unwrap();
                number.wrapping_mul(0x9e37_79b9_7f4a_7c15) < u64::MAX / 10
            });
        }
        kept.push_str(&format!("{line}\n"));
    }
    kept
}

/// Learns from 72 systems if `CORSAIR_GATE` is `whole`, otherwise from 6 of them.
// Guarantee: arch-18.
#[test]
fn no_pause_is_learned_where_none_was() {
    let is_whole = std::env::var("CORSAIR_GATE").is_ok_and(|form| form == "whole");
    let bursts = r#"[{"at": "0s", "rate": 50}, {"at": "5s", "rate": 400}, {"at": "6s", "rate": 50},
        {"at": "10s", "rate": 400}, {"at": "11s", "rate": 50}, {"at": "15s", "rate": 400}, {"at": "16s", "rate": 50},
        {"at": "20s", "rate": 400}, {"at": "21s", "rate": 50}]"#;
    let rare = r#"{"percentiles": {"0": "1ms", "97": "4ms", "97.5": "60ms", "100": "61ms"}}"#;
    let heavy = r#"{"lognormal": {"median": "1ms", "sigma": 1.7}}"#;
    let poisson = r#""arrivals": "poisson""#;
    let constant = r#""arrivals": "constant""#;
    let mut wrong = Vec::new();
    for seed in 0..if is_whole { 2 } else { 1 } {
        let systems = [
            (3, EXPONENTIAL, 0.3),
            (1, EXPONENTIAL, 0.9),
            (3, heavy, 0.4),
            (1, heavy, 0.6),
            (1, rare, 0.4),
            (2, "\"4ms\"", 0.7),
        ];
        for (number, (count, work, utilisation)) in systems.into_iter().enumerate() {
            let plain = definition(count, "", work, utilisation);
            let rate = plain.find("\"rate\": ").unwrap() + 8;
            let end = rate + plain[rate..].find(',').unwrap();
            let bursty = format!("{}{bursts}{}", &plain[..rate], &plain[end..]);
            let shared = plain.replace("\"concurrency\": 2", "\"processors\": 2");
            let unlimited = plain.replace("\"concurrency\": 2,", "");
            let one = plain.replace("\"concurrency\": 2", "\"concurrency\": 1");
            let one = one.replacen(&plain[rate..end], &format!("{}", 120 * count), 1);
            let even = plain.replace(poisson, constant);
            for (what, text) in [plain, bursty, shared, unlimited, one, even]
                .into_iter()
                .enumerate()
                .filter(|(what, _)| is_whole || *what == number)
            {
                let directory = tempfile::tempdir().unwrap();
                let file = recorded(&text, directory.path(), 25, seed);
                let case = format!("{seed} {count} {work} {utilisation} {what}");
                let mut learn_all = |what: &str| {
                    let found = learn(std::slice::from_ref(&file), "x").unwrap();
                    let pauses = faults(&found);
                    if !pauses.is_empty() {
                        wrong.push(format!("{case}, {what}: {pauses:?}"));
                    }
                };
                learn_all("all traces");
                let sampled = tenth(&std::fs::read_to_string(&file).unwrap());
                std::fs::write(&file, sampled).unwrap();
                learn_all("a tenth");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
