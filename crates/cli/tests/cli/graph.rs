//! Graph files: written by -j, read by -r.

use crate::terminal::{Terminal, refuse};
use serde_json::Value;
use std::collections::HashSet;

fn events(graph: &Value, key: &str) -> Vec<Value> {
    let all = graph["graph"].as_array().unwrap();
    all.iter()
        .filter(|event| !event[key].is_null())
        .cloned()
        .collect()
}

#[test]
fn the_graph_has_every_pirate_its_edges_and_its_end() {
    let terminal = Terminal::new();
    terminal.succeed("-a fsm -p 40 -d 2 -j");
    let graph: Value = serde_json::from_str(&terminal.read("json/fsm.json")).unwrap();
    assert_eq!(
        (&graph["arch"], &graph["version"]),
        (&"fsm".into(), &"spigo-0.4".into())
    );
    let nodes = events(&graph, "node");
    assert_eq!((nodes.len(), events(&graph, "done").len()), (40, 40));
    assert_eq!(nodes[7]["node"], "fsm.atlantic.bermuda.blackbeard7.pirate");
    assert_eq!(nodes[7]["package"], "pirate");
    assert_eq!(nodes[7]["metadata"], "IP/54.198.0.8");
    let edges = events(&graph, "edge");
    assert!(edges.len() >= 40, "{}", edges.len());
    let ends: HashSet<_> = edges
        .iter()
        .map(|e| (e["source"].to_string(), e["target"].to_string()))
        .collect();
    assert_eq!(ends.len(), edges.len(), "an edge came twice");
    assert!(ends.iter().all(|(source, target)| source != target));
    let numbers: Vec<_> = edges
        .iter()
        .map(|e| e["edge"].as_str().unwrap().to_owned())
        .collect();
    assert!((1..=edges.len()).map(|n| format!("e{n}")).eq(numbers));
}

#[test]
fn the_file_is_the_same_for_any_number_of_workers() {
    let terminal = Terminal::new();
    let files = ["--workers 1", "--workers 2 --form async", "-cpus=3 -d 3s"].map(|how| {
        terminal.succeed(&format!(
            "-a fsm -p 200 -d 3 --seed 9 -j --epoch 2016-04-17T13:38:45Z {how}"
        ));
        terminal.read("json/fsm.json").replace("-d 3s", "-d 3")
    });
    assert!(files[0].contains("\"date\":\"2016-04-17T13:38:45Z\""));
    assert!(files[0].contains("-p 200") && files[0].contains("--seed 9"));
    assert!(files[0] == files[1] && files[0] == files[2]);
}

#[test]
fn files_for_other_tools_have_the_same_pirates_and_edges() {
    let terminal = Terminal::new();
    let files = ["--workers 1", "--workers 2"].map(|how| {
        let run = format!("-a fsm -p 40 -d 2 -j -g {how}");
        assert!(terminal.succeed(&run).contains("gml/fsm.gexf"));
        ["gml/fsm.graphml", "gml/fsm.gexf"].map(|file| terminal.read(file))
    });
    assert!(files[0] == files[1], "they depend on the workers");
    let graph: Value = serde_json::from_str(&terminal.read("json/fsm.json")).unwrap();
    let edges = events(&graph, "edge").len();
    for file in &files[0] {
        assert_eq!(file.matches("<node ").count(), 40);
        assert_eq!(file.matches("<edge ").count(), edges);
        assert!(file.contains("fsm.atlantic.bermuda.blackbeard7.pirate"));
    }
}

#[test]
fn timestamps_rise_from_the_epoch_in_virtual_time() {
    let terminal = Terminal::new();
    terminal.succeed("-a fsm -p 40 -d 2 -j --out here");
    let graph: Value = serde_json::from_str(&terminal.read("here/json/fsm.json")).unwrap();
    assert_eq!(graph["date"], "1970-01-01T00:00:00Z");
    let times: Vec<jiff::Timestamp> = graph["graph"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["timestamp"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(times.is_sorted());
    assert!(*times.last().unwrap() >= "1970-01-01T00:00:02Z".parse().unwrap());
}

// Guarantee: core-85.
#[test]
fn a_run_goes_on_from_its_graph() {
    let terminal = Terminal::new();
    terminal.succeed("-a fsm -p 30 -d 0 -j");
    let first: Value = serde_json::from_str(&terminal.read("json/fsm.json")).unwrap();
    let lines = terminal.succeed("-a fsm -d 0 -r -j");
    assert!(lines.starts_with("fsm: population 30 pirates\n"), "{lines}");
    let second: Value = serde_json::from_str(&terminal.read("json/fsm.json")).unwrap();
    let ends = |graph: &Value| -> HashSet<String> {
        let edges = events(graph, "edge");
        edges
            .iter()
            .map(|edge| format!("{} {}", edge["source"], edge["target"]))
            .collect()
    };
    assert_eq!(ends(&first), ends(&second));
    assert!(!ends(&first).is_empty());
}

#[test]
fn a_graph_of_version_0_3_is_read_from_any_file() {
    let terminal = Terminal::new();
    terminal.write(
        "old.json",
        r#"{"arch":"fsm","version":"spigo-0.3","graph":[
            {"node":"anne","service":"pirate"},{"node":"bart","service":"pirate"},
            {"edge":"e1","source":"anne","target":"bart"}]}"#,
    );
    let log = terminal.succeed("-a fsm -d 0 --reload old.json -m");
    assert!(log.contains(" anne fsm NameDrop bart\n"), "{log}");
}

#[test]
fn graphs_that_cannot_be_read_are_reported_with_their_place() {
    let terminal = Terminal::new();
    let node = |name: &str| format!(r#"{{"node":"{name}","package":"pirate"}}"#);
    let edge = |a: &str, b: &str| format!(r#"{{"edge":"e","source":"{a}","target":"{b}"}}"#);
    let file = |version: &str, events: &[String]| {
        format!(
            "{{\"version\":\"{version}\",\n\"graph\":[\n{}\n]}}",
            events.join(",\n")
        )
    };
    let two = [node("a"), node("b")];
    let whole = file("spigo-0.4", &two);
    let many: Vec<String> = (0..12).map(|i| node(&format!("p{i}"))).collect();
    let popular = (1..12).map(|i| edge("p0", &format!("p{i}")));
    for (text, part) in [
        (whole[..whole.len() - 9].to_owned(), "cut off at line 4"),
        ("<graphml/>".to_owned(), "is not JSON"),
        (file("spigo-0.9", &two), "spigo-0.9"),
        (file("spigo-0.4", &[]), "no nodes"),
        (file("spigo-0.4", &two[..1]), "at least 2"),
        (
            file("spigo-0.4", &[two[0].clone(), edge("a", "c")]),
            "no node c",
        ),
        (
            file(
                "spigo-0.4",
                &[two[0].clone(), two[1].clone(), edge("a", "a")],
            ),
            "itself",
        ),
        (
            file(
                "spigo-0.4",
                &many.iter().cloned().chain(popular).collect::<Vec<_>>(),
            ),
            "more than 10 buddies",
        ),
        (whole.replace("pirate", "riak"), "fsm runs pirates only"),
    ] {
        terminal.write("json/fsm.json", &text);
        let said = terminal.refuse("-a fsm -d 0 -r");
        assert!(
            said.contains(part) && said.contains("json/fsm.json"),
            "{part}: {said}"
        );
    }
    assert!(refuse("-a fsm -r").contains("write a graph file with -j first"));
}

#[test]
fn a_failed_run_leaves_the_old_graph_and_nothing_else() {
    let terminal = Terminal::new();
    terminal.write("json/fsm.json", "old");
    assert_eq!(terminal.run("-a fsm -p 5 -d 9 --end 1s -j").code, Some(2));
    assert_eq!(terminal.read("json/fsm.json"), "old");
    assert_eq!(std::fs::read_dir(terminal.path("json")).unwrap().count(), 1);
}
