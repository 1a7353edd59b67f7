//! Tests with a real Neo4j database, which `ci/observe.sh` starts.

use crate::command::{Said, command};
use crate::fleet::{Fleet, config};
use corsair::Executor;
use corsair_observe::{Clock, Neo4j, Observer, Settings};
use serde_json::{Value, json};

const FLEET: Fleet = Fleet {
    clients: 1_500,
    servers: 1_000,
    requests: 1,
};

/// Returns the result of a statement: one row with one number.
fn number(database: &Neo4j, statement: &str) -> u64 {
    let url = format!("{}/db/neo4j/tx/commit", database.url);
    let body = json!({"statements": [{"statement": statement}]}).to_string();
    let mut answer = ureq::post(url)
        .header("content-type", "application/json")
        .send(body.as_bytes())
        .unwrap();
    let answer: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
    assert_eq!(answer["errors"], json!([]));
    answer["results"][0]["data"][0]["row"][0].as_u64().unwrap()
}

#[test]
#[ignore = "needs a database: ci/observe.sh"]
fn the_graph_is_in_the_database_once_however_often_it_is_run() {
    let database = Neo4j::from_environment();
    for _ in 0..2 {
        let config = config(2);
        let observer = Observer::start(Settings {
            neo4j: Some(database.clone()),
            ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
        });
        let observer = observer.unwrap();
        FLEET.run(Executor::Virtual, &config, &observer);
        let observed = observer.finish().unwrap();
        assert!(observed.losses.is_empty(), "{:?}", observed.losses);
        let count = |statement| number(&database, statement);
        let nodes = "MATCH (n:Corsair {arch: 'fleet'}) RETURN count(n)";
        assert_eq!(count(nodes), 2_500);
        let edges = "MATCH (:client)-[e:CONN]->(:server) RETURN count(e)";
        assert_eq!(count(edges), 1_500);
        let done = "MATCH (n:Corsair {arch: 'fleet', exit: 'normal'}) RETURN count(n)";
        assert_eq!(count(done), 2_500);
        let known = "MATCH (n:client {name: 'client07', zone: 'zoneB', package: 'karyon'}) \
                     WHERE n.ip STARTS WITH '54.221.' AND n.timestamp STARTS WITH '1970-01-01T' \
                     RETURN count(n)";
        assert_eq!(count(known), 1);
    }
}

#[test]
#[ignore = "needs a database and the command: ci/observe.sh"]
fn the_command_writes_the_graph_of_an_architecture_as_its_file_has_it() {
    let database = Neo4j::from_environment();
    let out = tempfile::tempdir().unwrap();
    let flags = format!("-a netflixoss -d 2 -j -n --out {}", out.path().display());
    let Said { summary, stderr } = command(&flags).output().into();
    assert_eq!(stderr, "");
    let text = std::fs::read_to_string(out.path().join("json/netflixoss.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let events = file["graph"].as_array().unwrap();
    let events = |key: &str| {
        events
            .iter()
            .filter(|event| event.get(key).is_some())
            .count() as u64
    };
    let count = |statement| number(&database, statement);
    let nodes = count("MATCH (n:Corsair {arch: 'netflixoss'}) RETURN count(n)");
    assert_eq!(
        (nodes, Some(nodes)),
        (events("node"), summary["instances"].as_u64())
    );
    let edges = count("MATCH (:Corsair {arch: 'netflixoss'})-[e:CONN]->() RETURN count(e)");
    assert_eq!(edges, events("edge") - events("forget"));
    let killed = "MATCH (n:homepage {arch: 'netflixoss', exit: 'killed'}) RETURN count(n)";
    assert_eq!(count(killed), 1);
}

#[test]
#[ignore = "needs a database and the command: ci/observe.sh"]
fn the_command_writes_the_flows_that_it_collects() {
    let database = Neo4j::from_environment();
    let out = tempfile::tempdir().unwrap();
    let flags = format!("-a lamp -d 2 -n -c --out {}", out.path().display());
    let Said { summary, stderr } = command(&flags).output().into();
    assert_eq!(stderr, "");
    let text = std::fs::read_to_string(out.path().join("json_metrics/lamp_flow.json")).unwrap();
    let spans: Vec<Value> = serde_json::from_str(&text).unwrap();
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).count() as u64;
    let count = |statement: &str| number(&database, statement);
    for kind in ["GetRequest", "Put"] {
        let flows =
            format!("MATCH (:Corsair {{arch: 'lamp'}})-[f:{kind}]->(:Corsair) RETURN count(f)");
        assert_eq!(count(&flows), named(kind), "{kind}");
    }
    assert_eq!(
        named("GetRequest") + named("Put") + named("Replicate"),
        summary["spans"]
    );
    // A request of the entry point is found together with all requests that it has caused.
    let trace = spans[0]["traceId"].as_str().unwrap();
    let of_trace = spans.iter().filter(|span| span["traceId"] == trace).count() as u64;
    let flows = format!("MATCH ()-[f {{arch: 'lamp', trace: '{trace}'}}]->() RETURN count(f)");
    assert_eq!(count(&flows), of_trace);
    let first = "MATCH (:denominator)-[f:GetRequest {arch: 'lamp'}]->(:Corsair) RETURN count(f)";
    assert_eq!(count(&first.replace("denominator", "www")), {
        let begins = |span: &&Value| span.get("parentId").is_none() && span["name"] == "GetRequest";
        spans.iter().filter(begins).count() as u64
    });
}
