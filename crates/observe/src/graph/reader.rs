//! Reads a graph file: its nodes, and the edges that are not forgotten by its end.

use super::{GraphError, READ};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The nodes and edges of a graph file.
#[derive(Debug, Default)]
pub struct GraphFile {
    /// The nodes, in the order of the file.
    pub nodes: Vec<GraphNode>,
    /// The edges by the names of their ends, without duplicates, in the order of the file.
    pub edges: Vec<(String, String)>,
    /// The nodes that were killed, in the order of the file, with the time of each since the date in the header.
    pub killed: Vec<(String, Duration)>,
}

/// A node of a graph file.
#[derive(Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// The name of the node.
    pub name: String,
    /// The package of the node.
    pub package: String,
}

/// Reads a graph file of version 0.3 or 0.4.
///
/// # Errors
/// If the file cannot be read, is not a graph file of a known version, or has no nodes. The error names the fault and
/// its position, and says how to fix it.
pub fn read(path: &Path) -> Result<GraphFile, GraphError> {
    let own = || path.to_owned();
    let text =
        std::fs::read(path).map_err(|error| GraphError::Unreadable { path: own(), error })?;
    let broken = |error: serde_json::Error| match error.classify() {
        serde_json::error::Category::Eof => GraphError::CutOff {
            path: own(),
            line: error.line(),
            column: error.column(),
        },
        serde_json::error::Category::Syntax => GraphError::NotJson { path: own(), error },
        _ => GraphError::NoGraph { path: own(), error },
    };
    let Version { version, date } = serde_json::from_slice(&text).map_err(broken)?;
    let Some(version) = version else {
        return Err(GraphError::NoVersion { path: own() });
    };
    if !READ.contains(&version.as_str()) {
        let path = own();
        return Err(GraphError::OtherVersion { path, version });
    }
    let File { graph } = serde_json::from_slice(&text).map_err(broken)?;
    if let Some((number, wrong)) = graph.wrong {
        return Err(GraphError::NoEvent {
            path: own(),
            number,
            wrong,
        });
    }
    let graph = graph.graph(date.and_then(|date| date.parse().ok()));
    if graph.nodes.is_empty() {
        return Err(GraphError::Empty { path: own() });
    }
    let mut seen = HashSet::new();
    if let Some(twice) = graph
        .nodes
        .iter()
        .find(|node| !seen.insert(node.name.as_str()))
    {
        return Err(GraphError::Twice {
            path: own(),
            name: twice.name.clone(),
        });
    }
    for (from, to) in &graph.edges {
        if let Some(missing) = [from, to]
            .into_iter()
            .find(|end| !seen.contains(end.as_str()))
        {
            return Err(GraphError::NoSuchNode {
                path: own(),
                from: from.clone(),
                to: to.clone(),
                missing: missing.clone(),
            });
        }
    }
    Ok(graph)
}

#[derive(Deserialize)]
struct Version {
    version: Option<String>,
    date: Option<String>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    graph: Events,
}

/// The events of a file in their order.
#[derive(Default)]
struct Events {
    nodes: Vec<GraphNode>,
    /// The changes of edges: the two ends of an edge, and true if it was added or false if it was forgotten.
    edges: Vec<((String, String), bool)>,
    killed: Vec<(String, Timestamp)>,
    /// The first invalid event: its number, counted from 1, and the fault.
    wrong: Option<(u64, &'static str)>,
}

/// An event, of either version.
enum Event {
    Node(GraphNode),
    Edge((String, String)),
    Forget((String, String)),
    Done,
    /// A node was killed at this time.
    Killed(String, Timestamp),
}

/// The keys that any event can have.
#[derive(Deserialize)]
struct Keys<'a> {
    node: Option<String>,
    #[serde(alias = "service")]
    package: Option<String>,
    edge: Option<String>,
    forget: Option<String>,
    #[serde(borrow)]
    done: Option<&'a RawValue>,
    #[serde(borrow)]
    exit: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    source: Option<String>,
    target: Option<String>,
}

impl TryFrom<Keys<'_>> for Event {
    type Error = &'static str;

    fn try_from(keys: Keys<'_>) -> Result<Event, &'static str> {
        // Some writers use empty strings for keys that do not apply.
        let is = |key: &Option<String>| key.as_ref().is_some_and(|text| !text.is_empty());
        if is(&keys.node) {
            let package = keys.package.ok_or("is a node without \"package\"")?;
            let name = keys.node.unwrap_or_default();
            return Ok(Event::Node(GraphNode { name, package }));
        }
        if is(&keys.edge) || is(&keys.forget) {
            let ends = keys.source.zip(keys.target);
            let ends = ends.ok_or("is an edge without \"source\" or \"target\"")?;
            return Ok(if is(&keys.edge) {
                Event::Edge(ends)
            } else {
                Event::Forget(ends)
            });
        }
        let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok();
        let done = keys
            .done
            .ok_or("is neither node nor edge nor forget nor done")?;
        if keys.exit.and_then(text).as_deref() == Some("killed")
            && let Some(name) = text(done)
            && let Some(at) = keys.timestamp.and_then(text)
            && let Ok(at) = at.parse()
        {
            return Ok(Event::Killed(name, at));
        }
        Ok(Event::Done)
    }
}

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Events, D::Error> {
        struct Together;
        impl<'de> Visitor<'de> for Together {
            type Value = Events;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of nodes and edges")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<Events, A::Error> {
                let mut read = Events::default();
                let mut number = 0;
                while let Some(keys) = events.next_element::<Keys<'de>>()? {
                    number += 1;
                    match Event::try_from(keys) {
                        Ok(Event::Node(node)) => read.nodes.push(node),
                        Ok(Event::Edge(ends)) => read.edges.push((ends, true)),
                        Ok(Event::Forget(ends)) => read.edges.push((ends, false)),
                        Ok(Event::Done) => {}
                        Ok(Event::Killed(name, at)) => read.killed.push((name, at)),
                        Err(wrong) => {
                            read.wrong.get_or_insert((number, wrong));
                        }
                    }
                }
                Ok(read)
            }
        }
        deserializer.deserialize_seq(Together)
    }
}

impl Events {
    /// Returns the final graph: the last event of each edge decides.
    fn graph(self, zero: Option<Timestamp>) -> GraphFile {
        let mut decided = HashSet::new();
        let last = self.edges.into_iter().rev();
        let mut edges: Vec<_> = last
            .filter_map(|(ends, known)| (decided.insert(ends.clone()) && known).then_some(ends))
            .collect();
        edges.reverse();
        GraphFile {
            nodes: self.nodes,
            edges,
            killed: (self.killed.into_iter())
                .filter_map(|(name, at)| Some((name, at.duration_since(zero?).try_into().ok()?)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<GraphFile, GraphError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("graph.json");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    fn graph(version: &str, events: &str) -> String {
        format!("{{\"arch\":\"fsm\",\"version\":\"{version}\",\n\"graph\":[\n{events}\n]}}")
    }

    #[test]
    fn both_versions_are_read() {
        for (version, package) in [("spigo-0.3", "service"), ("spigo-0.4", "package")] {
            let events = format!(
                r#"{{"node":"a","{package}":"pirate"}},{{"node":"b","{package}":"pirate"}},
                {{"edge":"e1","source":"a","target":"b"}}"#
            );
            let graph = read_text(&graph(version, &events)).unwrap();
            assert_eq!(
                graph.nodes[1],
                GraphNode {
                    name: "b".into(),
                    package: "pirate".into()
                }
            );
            assert_eq!(graph.edges, [("a".to_owned(), "b".to_owned())]);
        }
    }

    #[test]
    fn an_edge_counts_once_and_not_when_forgotten() {
        let edge = |key: &str, source: &str, target: &str| {
            format!(r#"{{"{key}":"e","source":"{source}","target":"{target}"}}"#)
        };
        let nodes = ["a", "b"].map(|name| format!(r#"{{"node":"{name}","package":"pirate"}}"#));
        let events = [
            nodes.join(","),
            edge("edge", "a", "b"),
            edge("edge", "b", "a"),
            edge("edge", "a", "b"),
            edge("forget", "b", "a"),
            r#"{"done":"a","exit":"normal"}"#.to_owned(),
            r#"{"done":"b","exit":"killed","timestamp":"1970-01-01T00:00:01.5Z"}"#.to_owned(),
            r#"{"done":"a","exit":"killed","timestamp":"yesterday"}"#.to_owned(),
        ];
        let text = graph("spigo-0.4", &events.join(",\n"));
        let graph = read_text(&text).unwrap();
        assert_eq!(graph.edges, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(graph.killed, []);
        let dated = text.replacen('{', r#"{"date":"1970-01-01T00:00:00Z","#, 1);
        let graph = read_text(&dated).unwrap();
        assert_eq!(
            graph.killed,
            [("b".to_owned(), Duration::from_millis(1_500))]
        );
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        let node = r#"{"node":"a","package":"pirate"}"#;
        let whole = graph("spigo-0.4", node);
        for (text, expected) in [
            (whole[..whole.len() - 4].to_owned(), "cut off at line 3"),
            ("arch: fsm".to_owned(), "not JSON"),
            ("{}".to_owned(), "no \"version\""),
            (graph("spigo-0.9", node), "version 'spigo-0.9'"),
            (graph("spigo-0.4", ""), "no nodes"),
            (
                graph("spigo-0.4", r#"{"nude":"a"}"#),
                "neither node nor edge",
            ),
            (
                graph("spigo-0.4", r#"{"node":"a"}"#),
                "event 1 of \"graph\" is a node without",
            ),
            (
                graph("spigo-0.4", &[node, node].join(",")),
                "the node a twice",
            ),
            (
                graph(
                    "spigo-0.4",
                    &[node, r#"{"edge":"e1","source":"a","target":"z"}"#].join(","),
                ),
                "no node z",
            ),
        ] {
            let said = read_text(&text).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
