//! Tests that shared processors, rate limits and caches of keys are learned back from the traces of known systems, and
//! that learned definitions predict other loads and sizes.

use crate::scene::{p99, simulated, write_flows_of};
use corsair::Random;
use corsair_arch::{LearnReport, Recording, ServiceDefinition, learn, read_text};
use corsair_observe::FlowFormat;
use serde_json::{Value, json};
use std::path::Path;

/// A page that calls a database of this description at a rate.
fn definition(database: &str, rate: f64) -> String {
    format!(
        r#"{{"arch": "x", "network": {{"same_zone": "100us", "same_region": "100us"}}, "services": [
        {{"name": "db", "package": "service", "regions": 1, {database},
          "endpoints": [{{"name": "get", "steps": [{{"work": {{"exponential": "5ms"}}}}]}}]}},
        {{"name": "web", "package": "service", "count": 1, "regions": 1,
          "endpoints": [{{"name": "page", "steps": [{{"call": "db.get"}}]}}]}},
        {{"name": "www", "package": "denominator", "dependencies": ["web"]}}],
        "load": {{"www": {{"rate": {rate}, "arrivals": "poisson", "requests": {{"page": 1}}}}}}}}"#
    )
}

/// Learns from the traces of a definition, which `change` may change.
fn learned_from(definition: &str, seconds: u64, change: impl Fn(&mut Value, bool)) -> LearnReport {
    let directory = tempfile::tempdir().unwrap();
    let checked = read_text(definition, "x").unwrap();
    let file = write_flows_of(&checked, directory.path(), FlowFormat::Otlp, seconds, 1);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut changed = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for resource in line["resourceSpans"].as_array_mut().unwrap() {
            let is_db = resource["resource"]["attributes"][0]["value"]["stringValue"] == "db";
            for span in resource["scopeSpans"][0]["spans"].as_array_mut().unwrap() {
                change(span, is_db);
            }
        }
        changed.push_str(&format!("{line}\n"));
    }
    std::fs::write(&file, changed).unwrap();
    let found = learn(&[file], "x").unwrap();
    let mut services = found.definition.services.iter();
    assert!(services.all(|service| service.faults.is_empty()));
    found
}

fn service<'a>(learned: &'a LearnReport, name: &str) -> &'a ServiceDefinition {
    let mut services = learned.definition.services.iter();
    services.find(|one| one.name == name).unwrap()
}

// Guarantee: arch-18.
#[test]
fn shared_processors_are_counted_and_their_work_is_that_of_a_processor_alone() {
    // Half a processor looks like one that takes twice as long.
    for (processors, counted, rate) in [(1.0, 1.0, 80.0), (2.0, 2.0, 160.0), (0.5, 1.0, 40.0)] {
        let limits = format!(r#""count": 1, "processors": {processors}"#);
        let found = learned_from(&definition(&limits, rate), 120, |_, _| {});
        let db = service(&found, "db");
        assert_eq!((db.processors, db.concurrency), (Some(counted), None));
        assert_eq!(service(&found, "web").processors, None);
        // At twice the load, where requests share the processors with more others.
        let mut other = found.definition.clone();
        for load in other.load.values_mut() {
            load.rate = Some(serde_json::from_value(json!(rate * 2.0)).unwrap());
        }
        let (learned, true_one) = (p99(&other.to_text()), p99(&definition(&limits, rate * 2.0)));
        assert!(
            (learned / true_one - 1.0).abs() < 0.15,
            "{processors}: {learned} instead of {true_one}"
        );
    }
}

#[test]
fn requests_that_do_not_share_processors_or_wait_for_slots_have_no_processors() {
    for limits in [r#""count": 1"#, r#""count": 2, "concurrency": 1"#] {
        let found = learned_from(&definition(limits, 150.0), 60, |_, _| {});
        assert_eq!(service(&found, "db").processors, None, "{limits}");
    }
}

/// Marks the refused requests of the database as HTTP instrumentation does: the status is 429 on both sides, and an error
/// only for the client.
fn mark_refused(span: &mut Value, is_db: bool) {
    let has_failed = span["status"]["code"] == 2;
    let is_client = span["kind"] == 3;
    if has_failed && (is_db || is_client) {
        span["attributes"] =
            json!([{"key": "http.response.status_code", "value": {"intValue": "429"}}]);
        if !is_client {
            span["status"] = json!({});
        }
    }
}

// Guarantee: arch-18.
#[test]
fn a_rate_limit_is_learned_from_the_requests_that_it_refused() {
    for (count, rate, burst) in [(1i64, 100.0, 10.0), (1, 100.0, 1.0), (2, 60.0, 5.0)] {
        let limits =
            format!(r#""count": {count}, "rate_limit": {{"rate": {rate}, "burst": {burst}}}"#);
        let offered = 1.2 * rate * count as f64;
        let found = learned_from(&definition(&limits, offered), 120, mark_refused);
        let db = service(&found, "db");
        let limit = db
            .rate_limit
            .unwrap_or_else(|| panic!("{limits}: {:?}", found.remarks));
        assert!(
            (limit.rate / rate - 1.0).abs() < 0.02,
            "{limits}: {limit:?}"
        );
        assert_eq!(limit.burst.unwrap_or(1.0), burst, "{limits}: {limit:?}");
        assert_eq!(db.error_rate, None);
        assert_eq!(db.count, count);
        // At twice the load, more requests are refused.
        let mut other = found.definition.clone();
        for load in other.load.values_mut() {
            load.rate = Some(serde_json::from_value(json!(offered * 2.0)).unwrap());
        }
        let failing = |text: &str| {
            let ran = simulated(text, 60);
            ran.entry().errors as f64 / ran.entry().requests as f64
        };
        let (learned, true_one) = (
            failing(&other.to_text()),
            failing(&definition(&limits, offered * 2.0)),
        );
        assert!(
            (learned - true_one).abs() < 0.02,
            "{learned} instead of {true_one}"
        );
    }
}

#[test]
fn a_rate_limit_that_no_refused_request_shows_is_not_invented() {
    // No request is refused.
    let wide = r#""count": 1, "rate_limit": {"rate": 500, "burst": 100}"#;
    let found = learned_from(&definition(wide, 100.0), 30, mark_refused);
    assert_eq!(service(&found, "db").rate_limit, None);
    // Requests are refused at random.
    let failing = r#""count": 1, "error_rate": 0.1"#;
    let found = learned_from(&definition(failing, 100.0), 60, mark_refused);
    let db = service(&found, "db");
    assert_eq!(db.rate_limit, None);
    assert!(
        (db.error_rate.unwrap() - 0.1).abs() < 0.02,
        "{:?}",
        db.error_rate
    );
    assert!(
        found
            .remarks
            .iter()
            .any(|remark| remark.contains("no rate limit explains which")),
        "{:?}",
        found.remarks
    );
}

/// A cache of keys as a program would have it: a list of keys, the least recently used one first.
struct TrueCache {
    size: usize,
    ttl: f64,
    keys: Vec<(u32, f64)>,
}

impl TrueCache {
    fn look_up(&mut self, key: u32, now: f64) -> bool {
        let known = self.keys.iter().position(|(known, _)| *known == key);
        let stored = known.map(|place| self.keys.remove(place).1);
        let fresh = stored.filter(|stored| now - stored < self.ttl);
        if self.keys.len() == self.size {
            self.keys.remove(0);
        }
        self.keys.push((key, fresh.unwrap_or(now)));
        fresh.is_some()
    }
}

/// The traces of requests whose keys have popularities of an exponent, and the hit rate of the second half.
fn look_ups(cache: (usize, f64), keys: u32, skew: f64, with_keys: bool) -> (String, f64) {
    let mut random = Random::new(9);
    let mut unit = move || (random.below(1 << 24) as f64 + 0.5) / f64::from(1 << 24);
    let mut shares: Vec<f64> = (1..=keys).map(|rank| f64::from(rank).powf(-skew)).collect();
    for place in 1..shares.len() {
        shares[place] += shares[place - 1];
    }
    let mut cache = TrueCache {
        size: cache.0,
        ttl: cache.1,
        keys: Vec::new(),
    };
    let (mut now, mut lines, mut hits, requests) = (1.0, String::new(), 0, 20_000);
    for trace in 1..=requests {
        now -= unit().ln() / 200.0;
        let drawn = unit() * shares[shares.len() - 1];
        let key = shares.partition_point(|&share| share < drawn) as u32;
        let hit = cache.look_up(key, now);
        hits += u32::from(hit && trace > requests / 2);
        let span = |id: u32, parent: u32, kind: &str, from: f64, lasts: f64| {
            let (service, name) = if id == 3 {
                ("db", "get")
            } else {
                ("web", "page")
            };
            let tags = match id == 1 && with_keys {
                true => json!({"user.id": key.to_string()}),
                false => json!({}),
            };
            json!({"traceId": format!("{trace:x}"), "id": id.to_string(), "kind": kind, "name": name,
                "parentId": (parent > 0).then(|| parent.to_string()), "tags": tags,
                "timestamp": (from * 1e6) as u64, "duration": (lasts * 1e6) as u64,
                "localEndpoint": {"serviceName": service}})
        };
        let mut spans = vec![span(1, 0, "SERVER", now, if hit { 0.001 } else { 0.006 })];
        if !hit {
            spans.push(span(2, 1, "CLIENT", now + 0.001, 0.005));
            spans.push(span(3, 2, "SERVER", now + 0.0012, 0.0046));
        }
        lines.push_str(&format!("{}\n", json!(spans)));
    }
    (lines, f64::from(hits) / f64::from(requests / 2))
}

fn learned_cache(traces: &str, directory: &Path, key: Option<&str>) -> LearnReport {
    let file = directory.join("traces.jsonl");
    std::fs::write(&file, traces).unwrap();
    let recording = Recording::read_with_key(&[file], key).unwrap();
    recording
        .learn("x", &corsair_arch::LearnOptions::default())
        .unwrap()
}

/// The hit rate of a learned definition when its cache is full.
fn hit_rate(text: &str) -> f64 {
    let [before, all] = [50, 150].map(|seconds| {
        let ran = simulated(text, seconds);
        ["db", "web"].map(|name| ran.service(name).requests as f64)
    });
    1.0 - (all[0] - before[0]) / (all[1] - before[1])
}

// Guarantee: arch-18.
#[test]
fn a_cache_is_learned_from_keys_and_predicts_the_hit_rate_of_other_sizes() {
    let directory = tempfile::tempdir().unwrap();
    for (keys, skew, size) in [(5_000, 0.9, 500), (2_000, 0.0, 800)] {
        let (traces, recorded) = look_ups((size, f64::INFINITY), keys, skew, true);
        let found = learned_cache(&traces, directory.path(), Some("user.id"));
        let step = &service(&found, "web").endpoints[0].steps;
        let step = step.iter().find(|step| step.cache.is_some());
        let step = step.unwrap_or_else(|| panic!("{:?}", found.remarks));
        let cache = step.cache.clone().unwrap();
        assert!(step.miss[0].call.is_some() && step.miss[0].probability.is_none());
        assert_eq!(cache.size.unwrap() as usize, size);
        assert_eq!(cache.ttl, None);
        assert!((cache.skew.unwrap_or(0.0) - skew).abs() < 0.06, "{cache:?}");
        assert!(
            (cache.keys.unwrap() as f64 / f64::from(keys) - 1.0).abs() < 0.2,
            "{cache:?}"
        );
        let text = found.definition.to_text();
        assert!(
            (hit_rate(&text) - recorded).abs() < 0.02,
            "{} {recorded}",
            hit_rate(&text)
        );
        for other in [size / 4, size * 2] {
            let (_, true_one) = look_ups((other, f64::INFINITY), keys, skew, true);
            let text = text.replace(&format!("\"size\":{size}"), &format!("\"size\":{other}"));
            let predicted = hit_rate(&text);
            assert!(
                (predicted - true_one).abs() < 0.03,
                "{other}: {predicted} {true_one}"
            );
        }
    }
}

// Guarantee: arch-18.
#[test]
fn the_time_to_live_of_a_cache_is_learned_from_keys() {
    let directory = tempfile::tempdir().unwrap();
    let (traces, recorded) = look_ups((10_000, 3.0), 400, 0.0, true);
    let found = learned_cache(&traces, directory.path(), Some("user.id"));
    let steps = &service(&found, "web").endpoints[0].steps;
    let cache = steps.iter().find_map(|step| step.cache.clone());
    let cache = cache.unwrap_or_else(|| panic!("{:?}", found.remarks));
    assert_eq!(cache.size, None, "{cache:?}");
    assert!(
        (cache.ttl.unwrap().nanos() as f64 / 3e9 - 1.0).abs() < 0.01,
        "{cache:?}"
    );
    let predicted = hit_rate(&found.definition.to_text());
    assert!(
        (predicted - recorded).abs() < 0.02,
        "{predicted} {recorded}"
    );
}

#[test]
fn without_keys_a_cache_is_a_probability_and_this_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (traces, _) = look_ups((500, f64::INFINITY), 5_000, 0.9, false);
    let found = learned_cache(&traces, directory.path(), None);
    let steps = &service(&found, "web").endpoints[0].steps;
    assert!(
        steps.iter().any(|step| step.probability.is_some()),
        "{steps:?}"
    );
    assert!(
        found
            .remarks
            .iter()
            .any(|remark| remark.contains("record the keys")),
        "{:?}",
        found.remarks
    );
}
