//! Data that a run sends to other systems or serves over HTTP, checked end to end through the flags.

use crate::collector::Collector;
use crate::terminal::Terminal;
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn collectors_get_both_sides_of_every_span_of_a_run() {
    let (zipkin, otlp) = (Collector::start(usize::MAX), Collector::start(usize::MAX));
    let run = Terminal::new().json(&format!(
        "-a lamp -d 1 --epoch now --zipkin {} --otlp http://{}",
        zipkin.address, otlp.address
    ));
    let spans = run["spans"].as_u64().unwrap();
    assert!(spans > 100 && run["incomplete_spans"] == 0, "{run}");
    assert_eq!(zipkin.spans().len() as u64, 2 * spans);
    assert_eq!(otlp.resource_spans().len() as u64, 2 * spans);
    for (collector, asked) in [(&zipkin, "/api/v2/spans"), (&otlp, "/v1/traces")] {
        let paths = collector.requests().into_iter().map(|(path, _)| path);
        assert!(paths.eq(vec![asked; collector.requests().len()]));
    }
    let www = zipkin.spans().into_iter().filter(|span| {
        let from = span["localEndpoint"]["serviceName"].as_str().unwrap();
        span["kind"] == "CLIENT" && from.ends_with(".www.denominator")
    });
    let entry = &run["entries"]["www"];
    let asked = entry["requests"].as_u64().unwrap() + entry["puts"].as_u64().unwrap();
    assert_eq!(www.count() as u64, asked);
}

// Guarantee: observe-11.
#[test]
fn a_collector_that_dies_costs_a_counted_loss_and_a_warning() {
    // The first request checks whether the collector answers.
    let zipkin = Collector::start(3);
    let flags = format!(
        "-a lamp -d 10 -kv chat:1ms --epoch now --format json --zipkin {}",
        zipkin.address
    );
    let said = Terminal::new().run(&flags);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let run: Value = serde_json::from_str(&said.stdout).unwrap();
    let spans = run["spans"].as_u64().unwrap();
    let lost = spans - zipkin.spans().len() as u64 / 2;
    let warning = format!(
        "corsair: the Zipkin collector at http://{}/api/v2/spans: {lost} of {spans} spans were lost: ",
        zipkin.address
    );
    assert!(lost > 0 && lost < spans, "{lost} of {spans}");
    assert!(said.stderr.starts_with(&warning), "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
}

// Guarantee: observe-10.
#[test]
fn an_address_where_nobody_is_ends_the_command_before_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let terminal = Terminal::new();
    for flag in ["--zipkin", "--otlp", "-k"] {
        let said = terminal.refuse(&format!("-a lamp -j -c {flag} {nobody}"));
        assert!(said.starts_with(flag), "{said}");
        assert!(said.contains("cannot be reached"), "{said}");
    }
    let nobody = nobody.to_string();
    let mut databases = vec![(nobody.as_str(), nobody.as_str())];
    // Without the variable, or with an empty one, spigo's default address is used. A database may be running there.
    if TcpStream::connect("localhost:7474").is_err() {
        databases.push(("", "localhost:7474"));
    }
    for (url, at) in databases {
        let mut command = terminal.command("-a lamp -j -n");
        let refused = command.env("NEO4JURL", url).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        let begins = format!("corsair: -n: Neo4j at http://{at}/");
        assert!(said.starts_with(&begins), "{said}");
    }
    // The run did not start, so there are no files.
    for file in ["json/lamp.json", "json_metrics/lamp_flow.json"] {
        assert!(!terminal.path(file).exists(), "{file}");
    }
}

/// Returns the rows that a database has received, with their statements, in order.
fn rows(database: &Collector) -> Vec<(String, Value)> {
    let mut rows = Vec::new();
    for (path, body) in database.requests() {
        assert_eq!(path, "/db/neo4j/tx/commit");
        for statement in body["statements"].as_array().unwrap() {
            let text = statement["statement"].as_str().unwrap();
            let list = statement["parameters"]["rows"].as_array();
            rows.extend(
                list.into_iter()
                    .flatten()
                    .map(|row| (text.to_owned(), row.clone())),
            );
        }
    }
    rows
}

#[test]
fn the_database_gets_flows_with_the_graph_if_they_are_collected() {
    let database = Collector::start(usize::MAX);
    let terminal = Terminal::new();
    let run = terminal.json(&format!(
        "-a lamp -d 1 -n -c --neo4jurl {}",
        database.address
    ));
    let (mut nodes, mut flows) = (HashSet::new(), 0);
    for (statement, row) in rows(&database) {
        if statement.contains("MERGE (n:Corsair") {
            nodes.insert(row["node"].clone());
        }
        if statement.contains("CREATE (a)-[f:`") {
            flows += 1;
            assert!(
                nodes.contains(&row["source"]) && nodes.contains(&row["target"]),
                "{row}"
            );
            assert_eq!(row["trace"].as_str().map(str::len), Some(16), "{row}");
            assert!(
                row["lasted"].is_u64() || statement.contains("`Put`"),
                "{row}"
            );
        }
    }
    assert_eq!(run["spans"], flows);
    assert!(flows > 100);

    let database = Collector::start(usize::MAX);
    terminal.json(&format!("-a lamp -d 1 -n --neo4jurl {}", database.address));
    let rows = rows(&database);
    assert!(rows.iter().all(|(text, _)| !text.contains("CREATE (a)")) && rows.len() > 20);
    let said = terminal.refuse("-a lamp --neo4jurl localhost:7474");
    assert!(
        said.starts_with("--neo4jurl: the flag has no effect without -n"),
        "{said}"
    );
}

/// Returns the answer of an HTTP address to a request for `/metrics`.
fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Returns the value of the first line that begins with `begins`.
fn value(text: &str, begins: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(begins))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn times_are_served_while_a_live_run_goes_on() {
    let terminal = Terminal::new();
    let mut command = terminal.command("-a lamp -d 2 --executor tokio --metrics 127.0.0.1:0");
    let mut run = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(run.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let address = first
        .trim()
        .strip_prefix("corsair: serving times at http://")
        .and_then(|rest| rest.strip_suffix("/metrics"))
        .unwrap_or_else(|| panic!("{first}"));
    let responses =
        "corsair_time_seconds_count{arch=\"lamp\",service=\"webserver-elb\",metric=\"response\"} ";
    let counted = loop {
        let text = scrape(address);
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        match value(&text, responses) {
            Some(count) if count > 0.0 => break count,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let later = loop {
        match value(&scrape(address), responses) {
            Some(count) if count > counted => break count,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(run.try_wait().unwrap().is_none(), "the run has ended");
    let mut summary = String::new();
    stdout.read_to_string(&mut summary).unwrap();
    assert!(run.wait().unwrap().success());
    assert!(summary.contains("corsair: lamp complete"), "{summary}");
    assert!(later > 0.0 && TcpStream::connect(address).is_err());
}
