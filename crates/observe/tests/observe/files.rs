//! Files: their contents, and that they are either complete or absent.

use crate::fleet::{Fleet, config, everything};
use corsair::Executor;
use corsair_observe::{Clock, Metric, ObserveError, Observer, Settings, graph};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::Path;

const FLEET: Fleet = Fleet {
    clients: 20,
    servers: 10,
    requests: 30,
};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_graph_can_be_read_and_has_every_node() {
    let directory = tempfile::tempdir().unwrap();
    FLEET.observed(2, directory.path());
    let path = directory.path().join("json/fleet.json");
    let read = graph::read(&path).unwrap();
    assert_eq!(read.nodes.len(), 30);
    assert_eq!(read.edges.len(), 20);
    let events = json(&path);
    let events = events["graph"].as_array().unwrap();
    let of = |key: &'static str| events.iter().filter(move |event| event.get(key).is_some());
    assert_eq!(of("done").count(), 30);
    let addresses: HashSet<&str> = of("node").filter_map(|n| n["metadata"].as_str()).collect();
    assert_eq!(addresses.len(), 30, "each node has an address of its own");
    let edges: HashSet<&str> = of("edge").filter_map(|e| e["edge"].as_str()).collect();
    let forgotten: Vec<&str> = of("forget").filter_map(|e| e["forget"].as_str()).collect();
    assert!(!forgotten.is_empty() && forgotten.iter().all(|edge| edges.contains(edge)));
    let times: Vec<&str> = events
        .iter()
        .filter_map(|e| e["timestamp"].as_str())
        .collect();
    let parse = |text: &&str| text.parse::<jiff::Timestamp>().unwrap();
    assert!(times.iter().map(parse).is_sorted());
}

// Guarantee: observe-5.
#[test]
fn every_span_has_both_ends_and_a_parent_that_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (_, observed) = FLEET.observed(2, directory.path());
    assert_eq!((observed.spans, observed.incomplete), (20 * 30 * 2, 0));
    let spans = json(&directory.path().join("json_metrics/fleet_flow.json"));
    let spans = spans.as_array().unwrap();
    assert_eq!(spans.len(), 20 * 30 * 2);
    let ids: HashMap<&str, &str> = spans
        .iter()
        .map(|span| {
            (
                span["id"].as_str().unwrap(),
                span["traceId"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(ids.len(), spans.len(), "ids are unique");
    for span in spans {
        let id = span["id"].as_str().unwrap();
        assert!(id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()));
        assert_ne!(span["traceId"], "0000000000000000");
        if let Some(parent) = span["parentId"].as_str() {
            assert_eq!(ids[parent], span["traceId"].as_str().unwrap());
        }
        let annotations = span["annotations"].as_array().unwrap();
        let values: Vec<&str> = annotations
            .iter()
            .map(|a| a["value"].as_str().unwrap())
            .collect();
        match span["name"].as_str().unwrap() {
            "GetRequest" => assert_eq!(values, ["cs", "sr", "ss", "cr"]),
            _ => assert_eq!(values, ["cs", "sr"]),
        }
        assert!(annotations.is_sorted_by_key(|a| a["timestamp"].as_u64().unwrap()));
        let known = |a: &Value| {
            a["endpoint"]["serviceName"]
                .as_str()
                .unwrap()
                .starts_with("fleet.")
        };
        assert!(annotations.iter().all(known));
    }
    let second = json(&directory.path().join("json_metrics/fleet_flow.zipkin.json"));
    assert_eq!(second.as_array().unwrap().len(), 2 * spans.len());
    let lines =
        std::fs::read_to_string(directory.path().join("json_metrics/fleet_flow.otlp.jsonl"));
    let requests: usize = lines
        .unwrap()
        .lines()
        .map(|line| {
            let request: Value = serde_json::from_str(line).unwrap();
            let resources = request["resourceSpans"].as_array().unwrap();
            let count = |r: &Value| r["scopeSpans"][0]["spans"].as_array().unwrap().len();
            resources.iter().map(count).sum::<usize>()
        })
        .sum();
    assert_eq!(requests, 2 * spans.len());
}

#[test]
fn times_are_those_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let (_, observed) = FLEET.observed(2, directory.path());
    let response = observed.times["client"]
        .histogram(Metric::Response)
        .unwrap();
    assert_eq!(response.len(), 20 * 30);
    // Two trips of 1.05 to 2.10 ms each.
    assert!(
        response.least().unwrap() >= 2 * (1 << 20) - 2048
            && response.greatest().unwrap() <= 4 * (1 << 20) + 4096
    );
    assert!(observed.times["server"].errors() > 0);
    let table = corsair_observe::percentile_table(&observed.times);
    assert!(table.contains("client   response    600"), "{table}");
    assert!(
        directory
            .path()
            .join("csv_metrics/fleet_client_resp.csv")
            .exists()
    );
    assert!(directory.path().join("json_metrics/fleet.guess").exists());
}

// Guarantee: observe-9.
#[test]
fn a_run_that_is_given_up_leaves_old_files_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("json/fleet.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "old").unwrap();
    let config = config(1);
    let clock = Clock::Virtual(config.progress.clone());
    let observer = Observer::start(everything(directory.path(), clock)).unwrap();
    FLEET.run(Executor::Virtual, &config, &observer);
    drop(observer);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    for below in ["json", "gml", "json_metrics"] {
        let left: Vec<_> = std::fs::read_dir(directory.path().join(below))
            .unwrap()
            .collect();
        assert_eq!(left.len(), usize::from(below == "json"), "{left:?}");
    }
}

// Guarantee: observe-10.
#[test]
fn what_cannot_be_written_is_reported_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("json"), "a file in the way").unwrap();
    let said = Observer::start(everything(directory.path(), Clock::Wall)).unwrap_err();
    assert!(matches!(said, ObserveError::File(_)));
    let said = said.to_string();
    assert!(
        said.starts_with("cannot write ") && said.contains("choose another place"),
        "{said}"
    );
}

// Guarantee: observe-10.
#[test]
fn a_full_disk_ends_the_run_and_is_reported() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let config = config(1);
    let out = std::fs::OpenOptions::new().write(true).open(full).unwrap();
    let observer = Observer::start(Settings {
        messages: Some(Box::new(out)),
        cancel: Some(config.cancel.clone()),
        ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
    });
    let observer = observer.unwrap();
    FLEET.run(Executor::Virtual, &config, &observer);
    let said = observer.finish().unwrap_err().to_string();
    assert!(said.contains("cannot write the log of messages"), "{said}");
}

// Guarantee: observe-7.
#[test]
fn actors_of_one_name_are_one_node() {
    use corsair::{Addr, Time};
    use corsair_observe::{Exit, GraphFormat, Node};
    let directory = tempfile::tempdir().unwrap();
    let observer = Observer::start(Settings {
        graphs: vec![GraphFormat::Json],
        out: directory.path().to_owned(),
        ..Settings::new("collapsed", Clock::Wall)
    });
    let observer = observer.unwrap();
    let recorder = observer.recorder();
    let actor = Addr::from_u32;
    let at = Time::from_nanos;
    for (number, name) in [(1, "login"), (2, "login"), (3, "store")] {
        let node = Node {
            name: name.into(),
            container: None,
            full_name: format!("{name}{number}"),
            service: name.into(),
            package: "karyon".into(),
            region: "*".into(),
            zone: "*".into(),
        };
        recorder.node(at(0), actor(number), node);
    }
    recorder.edge(at(1), actor(1), actor(3));
    recorder.edge(at(1), actor(2), actor(3));
    recorder.forget(at(2), actor(1), actor(3));
    recorder.done(at(3), actor(1), Exit::Killed);
    recorder.forget(at(4), actor(2), actor(3));
    recorder.done(at(5), actor(2), Exit::Killed);
    observer.finish().unwrap();
    let graph = json(&directory.path().join("json/collapsed.json"));
    let events: Vec<String> = graph["graph"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            let key = ["node", "edge", "forget", "done"];
            let key = key
                .into_iter()
                .find(|key| event.get(key).is_some())
                .unwrap();
            let at: jiff::Timestamp = event["timestamp"].as_str().unwrap().parse().unwrap();
            format!(
                "{} {key} {}",
                at.subsec_nanosecond(),
                event[key].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "0 node login",
        "0 node store",
        "1 edge e1",
        "4 forget e1",
        "5 done login",
    ];
    assert_eq!(events, expected);
    assert_eq!(graph["graph"][4]["exit"], "killed");
}
