//! A definition that is learned from the traces of a known definition equals that definition.

use crate::scene::write_flows;
use corsair::Config;
use corsair_arch::{
    Distribution, LearnError, LearnOptions, LearnReport, Scale, StepDefinition, Topology, learn,
    learn_with,
};
use corsair_observe::FlowFormat;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A shop with two endpoints, sequential and parallel calls, likely and unlikely calls, two versions of a service, a
/// sent message, slots, and work from several distributions.
const SHOP: &str = r#"{
  "arch": "shop",
  "network": { "same_zone": { "uniform": ["200us", "300us"] },
               "same_region": { "uniform": ["400us", "600us"] } },
  "load": { "www": { "rate": 400, "arrivals": "poisson",
                     "requests": { "api.buy": 1, "api.list": 1 } } },
  "services": [
    { "name": "db", "package": "service", "count": 1, "regions": 1, "concurrency": 3,
      "endpoints": [{ "name": "query", "steps": [
        { "work": { "lognormal": { "median": "2ms", "sigma": 0.6 } } }] }] },
    { "name": "mail", "package": "service", "count": 2, "regions": 1,
      "endpoints": [{ "name": "confirm", "steps": [{ "work": "1ms" }] }] },
    { "name": "payment-v1", "package": "service", "count": 1, "regions": 1,
      "endpoints": [{ "name": "pay", "steps": [{ "work": { "exponential": "5ms" } }] }] },
    { "name": "payment-v2", "package": "service", "count": 1, "regions": 1,
      "endpoints": [{ "name": "pay", "steps": [{ "work": { "uniform": ["2ms", "4ms"] } }] }] },
    { "name": "prices", "package": "service", "count": 2, "regions": 1,
      "endpoints": [{ "name": "of", "steps": [
        { "work": { "lognormal": { "median": "700us", "sigma": 0.4 } } }] }] },
    { "name": "stock", "package": "service", "count": 2, "regions": 1,
      "endpoints": [{ "name": "count", "steps": [
        { "work": "500us" }, { "call": "db.query", "probability": 0.2 }] }] },
    { "name": "api", "package": "service", "count": 3, "regions": 1,
      "endpoints": [
        { "name": "buy", "steps": [
          { "work": "300us" },
          { "call": { "payment-v1.pay": 3, "payment-v2.pay": 1 } },
          { "work": { "lognormal": { "median": "1ms", "sigma": 0.3 } } },
          { "send": "mail.confirm", "probability": 0.7 },
          { "call": "db.query", "times": 2 }] },
        { "name": "list", "steps": [
          { "parallel": [[{ "call": "prices.of", "times": 3 }], [{ "call": "stock.count" }]] },
          { "work": { "lognormal": { "median": "800us", "sigma": 0.5 } } }] }] },
    { "name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"] }
  ]
}"#;

/// Returns the calls of a script without its work.
fn calls(steps: &[StepDefinition]) -> Value {
    let about = |step: &StepDefinition| {
        let lists = step.parallel.as_ref();
        let mut lists: Option<Vec<Value>> =
            lists.map(|lists| lists.iter().map(|list| calls(list)).collect());
        // The order of the lists is irrelevant.
        if let Some(lists) = &mut lists {
            lists.sort_by_key(Value::to_string);
        }
        // Weights are estimated from samples, so they are rounded.
        let part = |value: Option<f64>| value.map(|value| (value * 20.0).round() / 20.0);
        let mut targets = json!(step.call.as_ref().or(step.send.as_ref()));
        if let Value::Object(weights) = &mut targets {
            let sum: f64 = weights.values().filter_map(Value::as_f64).sum();
            for weight in weights.values_mut() {
                *weight = json!(part(weight.as_f64().map(|weight| weight / sum)));
            }
        }
        json!([
            step.send.is_some(),
            targets,
            lists,
            part(step.probability),
            step.times
        ])
    };
    let steps = steps.iter().filter(|step| step.work.is_none());
    steps.map(about).collect()
}

/// Returns the call graph of a definition: its services, their endpoints, and the calls of the endpoints.
fn graph(learned: &corsair_arch::Definition) -> Value {
    let mut services: Vec<Value> = learned
        .services
        .iter()
        .map(|service| {
            let mut endpoints: Vec<Value> = service
                .endpoints
                .iter()
                .map(|endpoint| json!([endpoint.name, calls(&endpoint.steps)]))
                .collect();
            endpoints.sort_by_key(Value::to_string);
            json!([
                service.name,
                service.count,
                service.concurrency,
                service.faults,
                endpoints
            ])
        })
        .collect();
    services.sort_by_key(Value::to_string);
    json!(services)
}

fn known() -> corsair_arch::Definition {
    let checked = corsair_arch::read_text(SHOP, "shop").unwrap();
    checked.definition().clone()
}

fn recorded(directory: &Path, format: FlowFormat, seconds: u64) -> PathBuf {
    let checked = corsair_arch::read_text(SHOP, "shop").unwrap();
    write_flows(&checked, directory, format, seconds)
}

/// Checks that the learned definition has the response times of the shop.
fn takes_as_long(learned: &LearnReport) {
    for kind in learned.judge(&Config::default()).unwrap() {
        for quantile in kind
            .quantiles
            .iter()
            .filter(|q| [0.5, 0.99].contains(&q.part))
        {
            let ratio = quantile.simulated.as_secs_f64() / quantile.recorded.as_secs_f64();
            assert!((0.95..1.05).contains(&ratio), "{kind:#?}");
        }
        assert!(kind.distance < 0.06, "{kind:#?}");
    }
}

// Guarantee: arch-10.
#[test]
fn a_known_definition_is_learned_back_from_its_otlp() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path(), FlowFormat::Otlp, 30);
    let learned = learn(&[file], "shop").unwrap();
    assert_eq!(graph(&learned.definition), graph(&known()));
    takes_as_long(&learned);
    // Remarks name the services without visible slots, and the calls that may be those after misses.
    assert_eq!(learned.remarks.len(), 2, "{:?}", learned.remarks);
    assert!(learned.remarks[1].starts_with("80 % of stock.count do not call db.query"));
    assert!(
        learned.remarks[0].starts_with("no request waited at api, mail, payment-v1"),
        "{:?}",
        learned.remarks
    );
    // The learned work has the families of distributions from which it was drawn.
    let service = |name: &str| {
        let mut services = learned.definition.services.iter();
        services.find(|service| service.name == name).unwrap()
    };
    let work = |name: &str| service(name).endpoints[0].steps[0].work.clone().unwrap();
    assert!(matches!(work("db"), Distribution::Lognormal { .. }));
    assert!(matches!(work("payment-v1"), Distribution::Exponential(_)));
    assert!(matches!(work("payment-v2"), Distribution::Uniform(..)));
    let load = &learned.definition.load["www"];
    assert_eq!(load.arrivals, Some(corsair_arch::Arrivals::Poisson));
}

// Guarantee: arch-10.
#[test]
fn zipkins_microseconds_are_enough_in_both_versions() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path(), FlowFormat::ZipkinV2, 30);
    let learned = learn(&[file], "shop").unwrap();
    assert_eq!(graph(&learned.definition), graph(&known()));
    takes_as_long(&learned);
    // Version 1 has the same times, so only the graph is compared.
    let file = recorded(directory.path(), FlowFormat::ZipkinV1, 10);
    let learned = learn(&[file], "shop").unwrap();
    assert_eq!(graph(&learned.definition), graph(&known()));
}

/// Converts OTLP to the response format of Jaeger.
fn as_jaeger(otlp: &str) -> String {
    let mut traces: std::collections::BTreeMap<String, (Vec<Value>, Value)> = Default::default();
    for line in otlp.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        for resource in request["resourceSpans"].as_array().unwrap() {
            let text = |number: usize| {
                resource["resource"]["attributes"][number]["value"]["stringValue"].clone()
            };
            let tag = json!({"key": "service.instance.id", "type": "string", "value": text(1)});
            let process = json!({"serviceName": text(0), "tags": [tag]});
            for span in resource["scopeSpans"][0]["spans"].as_array().unwrap() {
                let nanos = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
                let (begin, end) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano"));
                let kind = ["", "", "server", "client", "producer", "consumer"];
                let kind = kind[span["kind"].as_u64().unwrap() as usize];
                let trace = span["traceId"].as_str().unwrap().to_owned();
                let (spans, processes) = traces
                    .entry(trace.clone())
                    .or_insert_with(|| (Vec::new(), json!({})));
                let name = text(1).as_str().unwrap().to_owned();
                processes[&name] = process.clone();
                let references = match span["parentSpanId"].as_str() {
                    Some(id) => json!([{"refType": "CHILD_OF", "traceID": trace, "spanID": id}]),
                    None => json!([]),
                };
                spans.push(json!({
                    "traceID": trace, "spanID": span["spanId"], "operationName": span["name"],
                    "references": references, "startTime": begin / 1_000,
                    "duration": (end - begin) / 1_000, "processID": name,
                    "tags": [{"key": "span.kind", "type": "string", "value": kind}],
                }));
            }
        }
    }
    let data: Vec<Value> = traces
        .into_iter()
        .map(|(id, (spans, processes))| {
            json!({"traceID": id, "spans": spans, "processes": processes})
        })
        .collect();
    json!({"data": data}).to_string()
}

// Guarantee: arch-10.
#[test]
fn the_same_is_learned_from_jaegers_answers() {
    let directory = tempfile::tempdir().unwrap();
    // Only the graph is compared.
    let otlp = recorded(directory.path(), FlowFormat::Otlp, 10);
    let jaeger = directory.path().join("jaeger.json");
    let text = std::fs::read_to_string(otlp).unwrap();
    std::fs::write(&jaeger, as_jaeger(&text)).unwrap();
    let learned = learn(&[jaeger], "shop").unwrap();
    assert_eq!(graph(&learned.definition), graph(&known()));
}

fn said(text: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("traces.json");
    std::fs::write(&file, text).unwrap();
    let error = match learn(&[file], "x") {
        Ok(learned) => panic!("{learned:?}"),
        Err(error) => error,
    };
    let said = error.to_string();
    assert!(!matches!(error, LearnError::Simulate(_)), "{said}");
    said.replace(&directory.path().display().to_string(), "")
}

#[test]
fn what_is_no_trace_is_reported_with_its_line() {
    for (text, expected) in [
        ("", "/traces.json has no spans; give traces as OTLP/JSON"),
        ("[]", "/traces.json has no spans; give traces as OTLP/JSON"),
        (
            "{\"a\": 1}",
            "/traces.json:1: this has neither resourceSpans (OTLP)",
        ),
        (
            "[{\"traceId\": \"1\",\n\"id\": \"2\"",
            "/traces.json:2: the text is incomplete",
        ),
        (
            "[{\"traceId\": \"1\", \"id\": \"2\"}]",
            "/traces.json:1: a span has no timestamp",
        ),
        (
            "[1]",
            "/traces.json:1: invalid type: integer `1`, expected spans",
        ),
        ("traces", "/traces.json:1: this is not valid JSON"),
        // Several documents: on one line, on several, and after empty lines.
        ("[] [] [1]", "/traces.json:1: invalid type: integer `1`"),
        (
            "[]\n[\n]\n\n[] [\n1]",
            "/traces.json:6: invalid type: integer `1`",
        ),
        (
            "[][\n]\n \n\"abc}",
            "/traces.json:4: the text is incomplete",
        ),
        ("\n[]\n[]]", "/traces.json:3: this is not valid JSON"),
        ("[]\n\u{c}", "/traces.json:2: this is not valid JSON"),
        (
            "[{\"traceId\": \"1\",\n\"id\": \"xyz\", \"timestamp\": 1}]",
            "/traces.json:2: the span id 'xyz' is not an identifier; expected up to 16 hexadecimal digits",
        ),
        (
            "{\"resourceSpans\": [{\"scopeSpans\": [{\"spans\": [{\"traceId\": \"1\"}]}]}]}",
            "/traces.json:1: a span has no trace id, or no span id",
        ),
        (
            "[{\"traceId\": \"1\", \"id\": \"2\", \"kind\": \"CLIENT\", \"duration\": 5, \"timestamp\": 1}]",
            "none of 1 spans is a request to a service",
        ),
    ] {
        let said = said(text);
        assert!(said.starts_with(expected), "{text}: {said}");
    }
    let nested = "[".repeat(100_000);
    assert!(
        said(&nested).contains("recursion limit"),
        "{}",
        said(&nested)
    );
}

#[test]
fn spans_of_servers_alone_and_names_with_dots_make_a_definition() {
    // A server span below a server span, an internal span between them, a client span that names a database, and a
    // cycle.
    let span = |id: &str, parent: &str, kind: u8, name: &str, from: u64, to: u64, more: &str| {
        format!(
            r#"{{"traceId": "1", "spanId": "{id}", "parentSpanId": "{parent}", "kind": {kind},
            "name": "{name}", "startTimeUnixNano": {from}, "endTimeUnixNano": {to} {more}}}"#
        )
    };
    let resource = |service: &str, spans: &[String]| {
        format!(
            r#"{{"resource": {{"attributes": [{{"key": "service.name",
            "value": {{"stringValue": "{service}"}}}}]}}, "scopeSpans": [{{"spans": [{}]}}]}}"#,
            spans.join(",")
        )
    };
    let database = r#", "attributes": [{"key": "db.system", "value": {"stringValue": "redis"}}]"#;
    let shop = [
        span("a", "", 2, "GET /v1.0/cart", 1_000_000, 9_000_000, ""),
        span("b", "a", 1, "prepare", 2_000_000, 4_000_000, ""),
        span("e", "a", 3, "GET", 6_000_000, 8_000_000, database),
        span("f", "f", 1, "itself", 1, 2, ""),
    ];
    let stock = [span("c", "b", 2, "count", 2_500_000, 3_500_000, "")];
    let text = format!(
        r#"{{"resourceSpans": [{}, {}]}}"#,
        resource("shop.example.com", &shop),
        resource("stock", &stock)
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("traces.json");
    std::fs::write(&file, text).unwrap();
    let learned = learn(&[file], "x").unwrap();
    learned.judge(&Config::default()).unwrap();
    let names: Vec<&str> = learned
        .definition
        .services
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(names, ["redis", "shop-example-com", "stock", "www"]);
    let steps = calls(&learned.definition.services[1].endpoints[0].steps);
    assert_eq!(
        steps,
        json!([
            [false, "stock.count", null, null, null],
            [false, "redis.GET", null, null, null]
        ])
    );
}

// Guarantee: arch-10.
#[test]
fn an_architecture_of_spigos_is_learned_with_its_ring() {
    let directory = tempfile::tempdir().unwrap();
    let checked = corsair_arch::read("netflixoss", Path::new("nowhere")).unwrap();
    let flows = write_flows(&checked, directory.path(), FlowFormat::Otlp, 60);
    let learned = learn(&[flows], "learned").unwrap();
    // Ring nodes call nodes of their own zone, and are called from all zones.
    let ring = learned.definition.services.iter();
    let ring = ring
        .clone()
        .find(|service| service.name == "cassSubscriber")
        .unwrap();
    let inner = ring
        .endpoints
        .iter()
        .find(|endpoint| endpoint.name == "GetRequest-inner");
    let inner = inner.unwrap().latency.as_ref().unwrap().sampler();
    assert!(inner.median() < 300_000, "{inner:?}");
    takes_as_long(&learned);
}

/// Returns the shop's recording with only some of its traces.
fn thinned(text: &str, keep: impl Fn(u64) -> bool) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for resource in line["resourceSpans"].as_array_mut().unwrap() {
            for scope in resource["scopeSpans"].as_array_mut().unwrap() {
                scope["spans"].as_array_mut().unwrap().retain(|span| {
                    let id = span["traceId"].as_str().unwrap();
                    // The multiplication spreads neighbouring numbers.
                    keep(
                        u64::from_str_radix(&id[16..], 16)
                            .unwrap()
                            .wrapping_mul(0x9e37_79b9_7f4a_7c15),
                    )
                });
            }
        }
        kept.push_str(&format!("{line}\n"));
    }
    kept
}

// Guarantee: arch-18.
#[test]
fn of_a_tenth_of_the_traces_the_rates_of_all_are_learned() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path(), FlowFormat::Otlp, 20);
    let text = std::fs::read_to_string(&file).unwrap();
    let thin = thinned(&text, |number| number < u64::MAX / 10);
    std::fs::write(&file, &thin).unwrap();
    let rate = |file: &Path, sampled| {
        let options = LearnOptions {
            sampled,
            ..LearnOptions::default()
        };
        let learned = learn_with(&[file.to_owned()], "x", &options).unwrap();
        match &learned.definition.load.values().next().unwrap().rate {
            Some(corsair_arch::Rate::Constant(rate)) => *rate,
            other => panic!("{other:?}"),
        }
    };
    assert!((30.0..50.0).contains(&rate(&file, None)));
    assert!((300.0..500.0).contains(&rate(&file, Some(0.1))));
    // A tracestate contains the share: it rejects 0xe6666666666666 of 0x100000000000000.
    let stated = thin.replace(
        "\"traceId\"",
        "\"traceState\":\"x=y,ot=th:e6666666666666\",\"traceId\"",
    );
    std::fs::write(&file, stated).unwrap();
    assert!((300.0..500.0).contains(&rate(&file, None)));
}

// Guarantee: arch-18.
#[test]
fn resampled_recordings_say_how_sure_the_numbers_are() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path(), FlowFormat::Otlp, 20);
    let options = LearnOptions {
        resamples: 12,
        ..LearnOptions::default()
    };
    let learned = learn_with(&[file], "x", &options).unwrap();
    assert_eq!(learned.resampled.len(), 12);
    let number = |name: &str| {
        let found = learned.numbers.iter().find(|number| number.name == name);
        found
            .unwrap_or_else(|| panic!("{name}: {:?}", learned.numbers))
            .clone()
    };
    // 400 requests per second for 20 seconds have a standard error of about 4.5 per second.
    let rate = number("www rate");
    let width = rate.between.1 - rate.between.0;
    assert!((5.0..40.0).contains(&width), "{rate:?}");
    assert!(rate.between.0 < 405.0 && rate.between.1 > 395.0, "{rate:?}");
    assert_eq!(number("db concurrency").value, 3.0);
    let work = number("stock.count work");
    assert!(
        (work.value - 500e-6).abs() < 1e-6 && work.between.1 - work.between.0 < 1e-6,
        "{work:?}"
    );
}

// Guarantee: arch-18.
#[test]
fn a_part_that_is_held_out_is_compared_and_not_learned_from() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path(), FlowFormat::Otlp, 20);
    let options = LearnOptions {
        holdout: 0.25,
        ..LearnOptions::default()
    };
    let learned = learn_with(&[file], "x", &options).unwrap();
    assert!(learned.is_held_out && (14.0..16.0).contains(&learned.lasted.as_secs_f64()));
    let compared = learned.judge(&Config::default()).unwrap();
    let recorded: u64 = compared.iter().map(|kind| kind.recorded).sum();
    assert!((1_700..2_300).contains(&recorded), "{recorded}");
    assert!(
        compared.iter().all(|kind| kind.distance < 0.1),
        "{compared:#?}"
    );
}

/// Returns a text with some bytes changed, removed or doubled.
fn mutated(text: &[u8], random: &mut corsair::Random) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=random.below(4) {
        let place = random.below(text.len() as u32) as usize;
        let end = (place + random.below(40) as usize).min(text.len());
        match random.below(5) {
            0 => text[place] = random.below(256) as u8,
            1 => drop(text.drain(place..end)),
            2 => {
                let piece = text[place..end].to_vec();
                text.splice(place..place, piece);
            }
            3 => text.truncate(place.max(1)),
            _ => {
                let words: [&[u8]; 6] = [
                    b"null",
                    b"-1",
                    b"1e999",
                    b"\"\"",
                    b"[]",
                    b"18446744073709551615",
                ];
                let word = words[random.below(6) as usize];
                text.splice(place..end, word.iter().copied());
            }
        }
    }
    text
}

/// Returns the shop with two of its services on a machine.
fn shop_on_a_machine() -> String {
    let machines = r#"{ "machines": { "box": { "processors": 2.5, "faults": [
        { "kind": "slow", "at": "1s", "for": "1s", "factor": 2 }] } },"#;
    let mut text = SHOP.replacen('{', machines, 1);
    for name in ["mail", "stock"] {
        let named = format!(r#""name": "{name}","#);
        text = text.replace(&named, &format!(r#"{named} "machine": "box","#));
    }
    text
}

/// Few mutations by default; set `CORSAIR_MUTATIONS=5000` for a long test.
// Guarantee: arch-16.
#[test]
fn mutated_traces_and_definitions_are_learned_or_refused_and_never_panic() {
    let count = std::env::var("CORSAIR_MUTATIONS").ok();
    let count: u32 = count.map_or(150, |count| count.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path(), FlowFormat::Otlp, 1);
    let otlp: String = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = otlp.lines().take(30).collect();
    let otlp = lines.join("\n");
    let seeds = [
        otlp.clone(),
        as_jaeger(&format!("{}\n", otlp.lines().next().unwrap())),
        SHOP.to_owned(),
        shop_on_a_machine(),
    ];
    corsair_arch::read_text(&seeds[3], "x.json").unwrap();
    let mut random = corsair::Random::new(11);
    let (mut refused, mut taken) = (0, 0);
    for number in 0..count {
        let seed = number as usize % seeds.len();
        let text = mutated(seeds[seed].as_bytes(), &mut random);
        let result = if seed >= 2 {
            let text = String::from_utf8_lossy(&text);
            corsair_arch::read_text(&text, "x.json")
                .map(|checked| drop(Topology::new(&checked, Scale::default())))
                .map_err(|error| error.to_string())
        } else {
            std::fs::write(&file, &text).unwrap();
            learn(std::slice::from_ref(&file), "x")
                .map(drop)
                .map_err(|error| error.to_string())
        };
        match result {
            Ok(()) => taken += 1,
            Err(said) => {
                refused += 1;
                assert!(!said.is_empty() && said.len() < 2_000, "{said}");
            }
        }
    }
    assert!(refused > 0 && taken + refused == count);
}
