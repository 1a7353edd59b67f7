//! Traces as third-party systems record them: incomplete, without span kinds, or with addresses instead of names.

use corsair::{Config, Random};
use corsair_arch::{LearnReport, learn};
use serde_json::{Value, json};

fn learned(text: &str) -> LearnReport {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("traces.json");
    std::fs::write(&file, text).unwrap();
    learn(&[file], "x").unwrap()
}

fn names(learned: &LearnReport) -> Vec<&str> {
    let services = learned.definition.services.iter();
    services.map(|service| service.name.as_str()).collect()
}

/// A span of OTLP: its service, ids, kind, name, times in microseconds, and the address of its peer.
struct Span<'a> {
    service: &'a str,
    trace: u64,
    id: u64,
    parent: u64,
    kind: u8,
    name: &'a str,
    from: u64,
    to: u64,
    port: Option<u16>,
}

fn otlp(spans: &[Span<'_>]) -> String {
    let spans = spans.iter().map(|span| {
        let parent = match span.parent {
            0 => String::new(),
            parent => format!("{parent:016x}"),
        };
        let mut attributes = Vec::new();
        if let Some(port) = span.port {
            attributes
                .push(json!({"key": "server.address", "value": {"stringValue": "127.0.0.1"}}));
            attributes.push(json!({"key": "server.port", "value": {"intValue": port.to_string()}}));
        }
        json!({"resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": span.service}}]},
            "scopeSpans": [{"spans": [{
                "traceId": format!("{:032x}", span.trace), "spanId": format!("{:016x}", span.id),
                "parentSpanId": parent, "kind": span.kind, "name": span.name,
                "startTimeUnixNano": (span.from * 1_000).to_string(),
                "endTimeUnixNano": (span.to * 1_000).to_string(),
                "attributes": attributes}]}]})
    });
    let spans: Vec<Value> = spans.collect();
    json!({"resourceSpans": spans}).to_string()
}

/// Returns a web service that calls another; every `lost`-th server span of the called service is missing.
fn web_and_stock(lost: u64) -> Vec<Span<'static>> {
    let (mut random, mut spans, mut now) = (Random::new(5), Vec::new(), 1_000_000);
    for trace in 1..=600u64 {
        now += 5_000 + u64::from(random.below(10_000));
        let work = 400 + u64::from(random.below(100));
        let span = |service, id, parent, kind, name, from: u64, to: u64| Span {
            service,
            trace,
            id: trace * 10 + id,
            parent: if parent == 0 { 0 } else { trace * 10 + parent },
            kind,
            name,
            from: now + from,
            to: now + to,
            port: None,
        };
        spans.push(span("web", 1, 0, 2, "page", 0, work + 100));
        let call = span("web", 2, 1, 3, "GET", 50, work + 60);
        spans.push(Span {
            port: Some(9001),
            ..call
        });
        if !trace.is_multiple_of(lost) {
            spans.push(span("stock", 3, 2, 2, "count", 100, work + 10));
        }
    }
    spans
}

// Guarantee: arch-16.
#[test]
fn a_request_from_outside_without_a_client_takes_as_long_as_its_server_says() {
    let learned = learned(&otlp(&web_and_stock(1_000)));
    for kind in learned.judge(&Config::default()).unwrap() {
        let (recorded, simulated) = (kind.quantiles[0].recorded, kind.quantiles[0].simulated);
        // Each trip takes the minimum travel time, which adds 20 µs in total.
        let longer = simulated.as_secs_f64() - recorded.as_secs_f64();
        assert!((-10e-6..35e-6).contains(&longer), "{kind:#?}");
    }
}

// Guarantee: arch-16.
#[test]
fn a_call_whose_server_is_missing_is_of_the_service_that_answers_there() {
    let found = learned(&otlp(&web_and_stock(7)));
    assert_eq!(names(&found), ["stock", "web", "www"]);
    // If no service ever answers at the address, the call counts as the caller's work.
    let found = learned(&otlp(&web_and_stock(1)));
    assert_eq!(names(&found), ["web", "www"]);
    assert!(
        found
            .remarks
            .iter()
            .any(|said| said.starts_with("600 calls go to services without a name")),
        "{:?}",
        found.remarks
    );
}

// Guarantee: arch-16.
#[test]
fn jaegers_spans_without_a_kind_are_distinguished_by_their_services() {
    let spans: Vec<Value> = web_and_stock(1_000)
        .iter()
        .map(|span| {
            json!({"traceID": format!("{:x}", span.trace), "spanID": format!("{:x}", span.id),
            "operationName": span.name, "startTime": span.from, "duration": span.to - span.from,
            "references": match span.parent { 0 => json!([]), parent => json!([
                {"refType": "CHILD_OF", "spanID": format!("{parent:x}")}]) },
            "processID": span.service, "tags": []})
        })
        .collect();
    let processes = json!({"web": {"serviceName": "web"}, "stock": {"serviceName": "stock"}});
    let text = json!({"data": [{"spans": spans, "processes": processes}]}).to_string();
    let found = learned(&text);
    assert_eq!(names(&found), ["stock", "web", "www"]);
    let steps = &found.definition.services[1].endpoints[0].steps;
    assert!(steps.iter().any(|step| step.call.is_some()), "{steps:?}");
}

// Guarantee: arch-16.
#[test]
fn compressed_files_are_read() {
    use std::io::Write;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("traces.json.gz");
    let text = otlp(&web_and_stock(1_000));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    std::fs::write(&file, gzip.finish().unwrap()).unwrap();
    assert_eq!(learn(std::slice::from_ref(&file), "x").unwrap().traces, 600);
    // A truncated file, or a file that is not gzip, is refused with a sentence.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let said = learn(std::slice::from_ref(&file), "x")
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("cannot read ") && said.contains("cut off"),
        "{said}"
    );
    std::fs::write(&file, b"\x1f\x8bno gzip at all").unwrap();
    let said = learn(&[file], "x").unwrap_err().to_string();
    assert!(said.contains("is not gzip"), "{said}");
}

// Guarantee: arch-16.
#[test]
fn requests_in_the_middle_of_which_the_recording_began_make_no_entry_point() {
    let mut spans = web_and_stock(1_000);
    // The first five requests have a client whose span was not recorded.
    for span in spans
        .iter_mut()
        .filter(|span| span.trace <= 5 && span.parent == 0)
    {
        span.parent = 7;
    }
    let found = learned(&otlp(&spans));
    assert_eq!(
        found.definition.load.len(),
        1,
        "{:?}",
        found.definition.load
    );
    assert!(
        found
            .remarks
            .iter()
            .any(|said| said.starts_with("5 requests whose callers are missing")),
        "{:?}",
        found.remarks
    );
    // If all requests have such a client, the clients are outside.
    for span in spans.iter_mut().filter(|span| span.parent == 0) {
        span.parent = 7;
    }
    assert_eq!(names(&learned(&otlp(&spans))), ["stock", "web", "www"]);
}
