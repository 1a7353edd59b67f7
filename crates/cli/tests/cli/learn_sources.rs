//! `corsair learn` from Jaeger, from Prometheus, and from services that send spans.

use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A server that answers GET requests; it keeps their paths.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let paths = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let first = lines.next().unwrap().unwrap();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                let path = first.split(' ').nth(1).unwrap().to_owned();
                paths.lock().unwrap().push(path.clone());
                let (status, body) = answer(&path);
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(body.as_bytes());
            }
        });
        Server { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The value of a parameter of a query.
fn parameter<'a>(path: &'a str, name: &str) -> &'a str {
    let (_, query) = path.split_once('?').unwrap_or((path, ""));
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == name)
        .map_or("", |(_, value)| value)
}

/// A trace as Jaeger gives it, of front and cart, that begins at a time in microseconds. Every tenth is of another
/// operation of cart, which takes 4 ms instead of 1.
fn trace(number: u64, at: u64) -> Value {
    let (operation, work) = match number % 10 {
        0 => ("list", 4_000),
        _ => ("get", 1_000),
    };
    let span = |id: &str, parent: &str, process: &str, kind: &str, from: u64, lasted: u64| {
        let references = match parent {
            "" => json!([]),
            _ => {
                json!([{"refType": "CHILD_OF", "traceID": format!("{number:032x}"), "spanID": parent}])
            }
        };
        json!({"traceID": format!("{number:032x}"), "spanID": id, "operationName": operation, "references": references,
            "startTime": at + from, "duration": lasted, "processID": process, "logs": [], "warnings": null,
            "tags": [{"key": "span.kind", "type": "string", "value": kind}]})
    };
    json!({"traceID": format!("{number:032x}"), "spans": [
        span("000000000000000a", "", "p1", "server", 0, 9_000),
        span("000000000000000b", "000000000000000a", "p1", "client", 1_000, work + 2_000),
        span("000000000000000c", "000000000000000b", "p2", "server", 2_000, work)],
        "processes": {"p1": {"serviceName": "front", "tags": []}, "p2": {"serviceName": "cart", "tags": []}},
        "warnings": null})
}

/// The query API of Jaeger with a trace every ten milliseconds before now, the newest first.
fn jaeger(traces: u64) -> Server {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let newest = now.as_micros() as u64 - 1_000_000;
    Server::start(move |path| {
        if path.starts_with("/api/services") {
            return (200, json!({"data": ["front", "cart"], "total": 2, "limit": 0, "offset": 0, "errors": null}).to_string());
        }
        let number = |name| parameter(path, name).parse::<u64>().unwrap();
        let is_known = ["front", "cart"].contains(&parameter(path, "service"));
        let found = (0..traces).map(|number| (number, newest - number * 10_000));
        let found =
            found.filter(|(_, at)| is_known && (number("start")..=number("end")).contains(at));
        let found: Vec<Value> = found
            .take(number("limit") as usize)
            .map(|(number, at)| trace(number + 1, at))
            .collect();
        (
            200,
            json!({"data": found, "total": 0, "limit": 0, "offset": 0, "errors": null}).to_string(),
        )
    })
}

#[test]
fn traces_are_read_from_jaeger_page_by_page_and_counted_once() {
    let jaeger = jaeger(2_000);
    let report = Terminal::new().json(&format!(
        "learn --jaeger {} --service front --service cart --resamples 0",
        jaeger.address
    ));
    assert_eq!(
        (&report["traces"], &report["spans"]),
        (&json!(2_000), &json!(6_000)),
        "{report}"
    );
    let rate = report["definition"]["load"]["www"]["rate"]
        .as_f64()
        .unwrap();
    assert!((rate - 100.0).abs() < 1.0, "{rate}");
    let asked = jaeger.asked();
    assert_eq!(asked.len(), 4, "{asked:?}");
    let (start, end) = (parameter(&asked[0], "start"), parameter(&asked[0], "end"));
    let span = end.parse::<u64>().unwrap() - start.parse::<u64>().unwrap();
    assert_eq!(span, 3_600_000_000);
}

#[test]
fn what_jaeger_does_not_have_is_explained() {
    let jaeger = jaeger(20);
    let refuse = |args: &str| Terminal::new().refuse(&format!("learn {args}"));
    for (args, expected) in [
        (
            format!("--jaeger {} --service shop", jaeger.address),
            "there is no service 'shop'; it has front, cart",
        ),
        (
            format!(
                "--jaeger {} --service front --lookback 100ms",
                jaeger.address
            ),
            "there are no traces of 'front' in this time",
        ),
        (
            "--jaeger 127.0.0.1:1 --service x".to_owned(),
            "--jaeger http://127.0.0.1:1: ",
        ),
        (
            "--jaeger ftp://x --service x".to_owned(),
            "is not an address; write for example http://localhost:16686",
        ),
        (
            "--jaeger http:// --service x".to_owned(),
            "is not an address",
        ),
        (
            format!("--jaeger {} --service x --limit 0", jaeger.address),
            "--limit: 0 is out of range",
        ),
        (
            format!("--jaeger {} --service x --lookback 0s", jaeger.address),
            "--lookback: give a time above 0s",
        ),
    ] {
        let said = refuse(&args);
        assert!(said.contains(expected), "{args}: {said}");
    }
    for (status, body, expected) in [
        (
            500,
            "out of memory\nand more",
            "was answered with 500 Internal Server Error: out of memory",
        ),
        (200, "<html>", "the answer is not Jaeger's"),
        (
            200,
            r#"{"data": null, "errors": [{"code": 400, "msg": "no index"}]}"#,
            "no index",
        ),
        (
            200,
            r#"{"data": [{"traceID": "1", "spans": [{"traceID": "x", "spanID": "1"}]}]}"#,
            "the trace id 'x' is not an identifier",
        ),
    ] {
        let server = Server::start(move |_| (status, body.to_owned()));
        let said = refuse(&format!("--jaeger {} --service x", server.address));
        assert!(said.contains(expected), "{said}");
    }
}

/// Prometheus with a rate that doubles in the middle, and processors by service.
fn prometheus() -> Server {
    Server::start(|path| {
        let number = |name| parameter(path, name).parse::<f64>().unwrap();
        let (start, end, step) = (number("start"), number("end"), number("step"));
        let series = |labels: Value, value: &dyn Fn(f64) -> f64| {
            let times = (0..)
                .map(|place| start + f64::from(place) * step)
                .take_while(|at| *at <= end);
            let values: Vec<Value> = times.map(|at| json!([at, value(at).to_string()])).collect();
            json!({"metric": labels, "values": values})
        };
        let result = match parameter(path, "query") {
            "rate" => json!([series(json!({}), &|at| if at < (start + end) / 2.0 {
                40.0
            } else {
                80.0
            })]),
            "cpu" => json!([
                series(json!({"service": "cart"}), &|_| 0.1),
                series(json!({"service": "other"}), &|_| 5.0)
            ]),
            "none" => json!([]),
            "zero" => json!([series(json!({}), &|_| 0.0)]),
            _ => {
                return (
                    400,
                    r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.to_owned(),
                );
            }
        };
        (
            200,
            json!({"status": "success", "data": {"resultType": "matrix", "result": result}})
                .to_string(),
        )
    })
}

#[test]
fn rates_and_processor_times_are_read_from_prometheus() {
    let (jaeger, prometheus) = (jaeger(500), prometheus());
    let terminal = Terminal::new();
    let learn = format!(
        "learn --jaeger {} --service front --prometheus {}",
        jaeger.address, prometheus.address
    );
    let report = terminal.json(&format!("{learn} --rate rate --cpu cpu"));
    let rate = report["definition"]["load"]["www"]["rate"]
        .as_array()
        .unwrap();
    assert!(rate.len() > 50, "{rate:?}");
    assert_eq!(
        (&rate[0]["rate"], &rate[rate.len() - 1]["rate"]),
        (&json!(40.0), &json!(80.0))
    );
    let numbers = report["numbers"].as_array().unwrap();
    let cart = numbers
        .iter()
        .find(|number| number["name"] == "cart processor")
        .unwrap();
    // A tenth of a processor at a hundred requests a second.
    let (value, least) = (
        cart["value"].as_f64().unwrap(),
        cart["least"].as_f64().unwrap(),
    );
    assert!((value - 0.001).abs() < 1e-4 && least <= value, "{cart}");
    assert!(
        !numbers
            .iter()
            .any(|number| number["name"] == "other processor")
    );
    let remarks = report["remarks"].to_string();
    assert!(
        remarks.contains("cart uses 1.") || remarks.contains("cart uses 0.99"),
        "{remarks}"
    );
    // The two operations work for 1.3 ms in the mean, as often as they are called.
    assert!(remarks.contains("77 % of its work"), "{remarks}");
    for (query, expected) in [
        ("--rate none", "--rate: 'none' has no values in this time"),
        ("--rate zero", "--rate: the rate is always 0"),
        ("--rate cpu", "--rate: the query has 2 series; sum them"),
        ("--rate wrong", "parse error"),
        ("--cpu rate", "--cpu: no label names a learned service"),
        ("", "--prometheus needs --rate or --cpu"),
    ] {
        let said = terminal.refuse(&format!("{learn} {query}"));
        assert!(said.contains(expected), "{query}: {said}");
    }
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_without_the_receiver_says_how_to_get_it() {
    let said = Terminal::new().refuse("learn --listen :4318");
    assert!(
        said.contains("cargo run --features otlp -- learn --listen"),
        "{said}"
    );
}

#[cfg(feature = "otlp")]
mod receiver {
    use super::*;
    use crate::terminal::signal;
    use std::process::{Child, Stdio};

    const SHOP: &str = r#"{"arch": "shop", "services": [
        {"name": "db", "package": "service", "count": 1, "regions": 1,
         "endpoints": [{"name": "get", "steps": [{"work": "5ms"}]}]},
        {"name": "web", "package": "service", "count": 1, "regions": 1,
         "endpoints": [{"name": "page", "steps": [{"work": "2ms"}, {"call": "db.get"}]}]},
        {"name": "www", "package": "denominator", "dependencies": ["web"]}],
        "load": {"www": {"rate": 100, "requests": {"page": 1}}}}"#;

    /// Starts a recording, and returns the address on which it listens.
    fn listen(
        terminal: &Terminal,
        args: &str,
    ) -> (Child, String, BufReader<std::process::ChildStderr>) {
        let mut command = terminal.command(&format!("learn --listen 127.0.0.1:0 {args}"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        let address = first
            .split(" at ")
            .nth(1)
            .and_then(|rest| rest.split(';').next());
        let address = address.unwrap_or_else(|| panic!("{first}")).to_owned();
        (child, address, said)
    }

    #[test]
    fn a_recording_by_http_ends_with_ctrl_c_and_is_learned_from() {
        let terminal = Terminal::new();
        terminal.write("json_arch/shop_arch.json", SHOP);
        let (child, address, _said) = listen(&terminal, "--format json");
        let run = terminal.json(&format!("-a shop -d 10 --epoch now --otlp {address}"));
        signal("-INT", &child);
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["spans"], 2 * run["spans"].as_u64().unwrap());
        assert_eq!(report["requests"][0]["kind"], "web.page");
    }

    #[test]
    fn of_many_traces_a_sample_is_kept_and_rates_are_those_of_all() {
        let terminal = Terminal::new();
        terminal.write("json_arch/shop_arch.json", SHOP);
        let (child, address, _said) = listen(&terminal, "--format json --per-kind 200");
        terminal.json(&format!("-a shop -d 30 --epoch now --otlp {address}"));
        signal("-INT", &child);
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["traces"], 200);
        let rate = report["definition"]["load"]["www"]["rate"]
            .as_f64()
            .unwrap();
        assert!((rate / 100.0 - 1.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn a_recording_without_spans_ends_by_itself_and_says_so() {
        let terminal = Terminal::new();
        let said = terminal.run("learn --listen 127.0.0.1:0 --for 200ms");
        assert_eq!(said.code, Some(2));
        assert!(
            said.stderr.contains("no spans were received"),
            "{}",
            said.stderr
        );
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let said = terminal.refuse(&format!("learn --listen {}", taken.local_addr().unwrap()));
        assert!(said.contains("give another address"), "{said}");
        let said = terminal.refuse("learn --listen nowhere");
        assert!(said.contains("is not an address"), "{said}");
    }
}
