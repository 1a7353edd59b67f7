//! Graphs as XML: GraphML, which yEd reads, and GEXF, which Gephi reads.
//!
//! Both formats write the end of a node or an edge together with its beginning. So nodes and edges are stored until the
//! run is over: nodes in memory (about 100 bytes for each single node, 8 for a member of a population), edges on disk.

use super::edge_intervals::{EdgeInterval, EdgeIntervals, EndedEdges, NEVER};
use super::network::Edge;
use crate::directory::{Directory, Members, NodeIdentity, NodeRecord, SavedNode};
use crate::resumed::ContinuedFile;
use crate::{FileError, ObserveError, ResumePoint};
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::{ElementWriter, Writer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

/// The nodes and edges of a run, and the times at which they existed.
#[derive(Debug)]
pub(crate) struct GraphHistory {
    /// The nodes in the order of their numbers.
    nodes: Vec<Nodes>,
    /// The time in nanoseconds at which each node ended.
    ended: Vec<u64>,
    spells: EdgeIntervals,
}

/// Nodes that appeared at the same time, with consecutive numbers from the first one on.
#[derive(Debug)]
struct Nodes {
    first: u32,
    began: u64,
    what: HistoryEntry,
}

#[derive(Debug)]
enum HistoryEntry {
    One(Arc<NodeIdentity>),
    Population(Members),
}

/// The saved form of the nodes and edges of a run. The intervals of the edges are in a separate file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedMarkup {
    nodes: Vec<SavedNodes>,
    /// The numbers of the nodes that have ended, with the times at which they ended.
    ended: Vec<(u32, u64)>,
    spells: ContinuedFile,
    forgotten: EndedEdges,
}

/// Nodes that appeared at the same time.
#[derive(Debug, Serialize, Deserialize)]
enum SavedNodes {
    One {
        began: u64,
        node: Box<SavedNode>,
    },
    /// The members of the next population.
    Population {
        began: u64,
        count: u32,
    },
}

/// The name of the file with the edge intervals in a checkpoint.
const SPELLS: &str = "graph.edges";

impl GraphHistory {
    /// Returns the serialized state, and the name and contents of the file with the edge intervals.
    pub(crate) fn save(&mut self) -> Result<(SavedMarkup, (String, Vec<u8>)), FileError> {
        let (bytes, forgotten) = self.spells.save()?;
        let nodes = self.nodes.iter().map(|nodes| match &nodes.what {
            HistoryEntry::One(placed) => SavedNodes::One {
                began: nodes.began,
                node: Box::new(placed.save()),
            },
            HistoryEntry::Population(members) => SavedNodes::Population {
                began: nodes.began,
                count: members.count,
            },
        });
        let ended = (0..).zip(&self.ended);
        let saved = SavedMarkup {
            nodes: nodes.collect(),
            ended: ended
                .filter(|(_, ended)| **ended != NEVER)
                .map(|(number, &ended)| (number, ended))
                .collect(),
            spells: ContinuedFile::copied(SPELLS, &bytes),
            forgotten,
        };
        Ok((saved, (SPELLS.to_owned(), bytes)))
    }

    /// Continues the nodes and edges of a saved run.
    pub(crate) fn resume(
        &mut self,
        saved: SavedMarkup,
        resumed: &ResumePoint,
        directory: &mut Directory,
    ) -> Result<(), ObserveError> {
        let mut populations = 0;
        for nodes in saved.nodes {
            match nodes {
                SavedNodes::One { began, node } => {
                    let placed = directory.make(*node);
                    self.add(began, 1, HistoryEntry::One(placed));
                }
                SavedNodes::Population { began, count } => {
                    if let Some(members) = directory.population(populations) {
                        self.add(began, count, HistoryEntry::Population(members.clone()));
                    }
                    populations += 1;
                }
            }
        }
        for (number, ended) in saved.ended {
            if let Some(place) = self.ended.get_mut(number as usize) {
                *place = ended;
            }
        }
        saved.spells.write(resumed, self.spells.file())?;
        self.spells.resume(saved.spells.bytes(), saved.forgotten);
        Ok(())
    }

    pub(crate) fn new(spells: EdgeIntervals) -> GraphHistory {
        GraphHistory {
            nodes: Vec::new(),
            ended: Vec::new(),
            spells,
        }
    }

    pub(crate) fn node(&mut self, at: u64, placed: &Arc<NodeIdentity>) {
        self.add(at, 1, HistoryEntry::One(Arc::clone(placed)));
    }

    pub(crate) fn population(&mut self, at: u64, members: &Members) {
        self.add(at, members.count, HistoryEntry::Population(members.clone()));
    }

    fn add(&mut self, began: u64, count: u32, what: HistoryEntry) {
        let first = self.ended.len();
        self.ended.resize(first + count as usize, NEVER);
        let first = first as u32;
        self.nodes.push(Nodes { first, began, what });
    }

    pub(crate) fn edge(&mut self, at: u64, edge: &Edge) -> Result<(), FileError> {
        self.spells.begins(at, edge)
    }

    pub(crate) fn forget(&mut self, at: u64, edge: &Edge) -> Result<(), FileError> {
        self.spells.ends(at, edge)
    }

    pub(crate) fn done(&mut self, at: u64, number: u32) {
        self.ended[number as usize] = at;
    }

    /// Calls `each` with every node and the times of its beginning and end.
    fn each_node(
        &self,
        mut each: impl FnMut(&NodeRecord<'_>, (u64, u64)) -> io::Result<()>,
    ) -> io::Result<()> {
        for nodes in &self.nodes {
            let mut ended = self.ended[nodes.first as usize..].iter();
            let mut times = || (nodes.began, ended.next().copied().unwrap_or(NEVER));
            match &nodes.what {
                HistoryEntry::One(placed) => each(&placed.shown(), times())?,
                HistoryEntry::Population(members) => {
                    for (node, address) in members.nodes() {
                        each(&NodeRecord::of(&node, address), times())?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the name of the node with this number.
fn name(nodes: &[Nodes], number: u32) -> Cow<'_, str> {
    let place = nodes.partition_point(|nodes| nodes.first <= number) - 1;
    match &nodes[place].what {
        HistoryEntry::One(placed) => Cow::Borrowed(&placed.name),
        HistoryEntry::Population(members) => members.population.name(number - nodes[place].first),
    }
}

fn declaration<W: Write>(xml: &mut Writer<W>) -> io::Result<()> {
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))
}

/// Writes all nodes, and the edges that exist at the end, in spigo's form: the value with the key `service` is the
/// package. In addition to spigo's values, each node has its location.
pub(crate) fn graphml(out: &mut impl Write, graph: &mut GraphHistory) -> io::Result<()> {
    const DATA: [(&str, &str); 4] = [
        ("service", "package"),
        ("region", "region"),
        ("zone", "zone"),
        ("ip", "ip"),
    ];
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    declaration(&mut xml)?;
    xml.create_element("graphml")
        .with_attribute(("xmlns", "http://graphml.graphdrawing.org/xmlns"))
        .write_inner_content(|xml| {
            for (key, name) in DATA {
                xml.create_element("key")
                    .with_attributes([
                        ("id", key),
                        ("for", "node"),
                        ("attr.name", name),
                        ("attr.type", "string"),
                    ])
                    .write_empty()?;
            }
            xml.create_element("graph")
                .with_attributes([("id", "spigo"), ("edgedefault", "directed")])
                .write_inner_content(|xml| {
                    graph.each_node(|node, _| {
                        let address = node.address.to_string();
                        let data: [&str; 4] = [node.package, node.region, node.zone, &address];
                        xml.create_element("node")
                            .with_attribute(("id", node.name))
                            .write_inner_content(|xml| {
                                for ((key, _), value) in DATA.iter().zip(data) {
                                    xml.create_element("data")
                                        .with_attribute(("key", *key))
                                        .write_text_content(BytesText::new(value))?;
                                }
                                Ok(())
                            })?;
                        Ok(())
                    })?;
                    let nodes = &graph.nodes;
                    graph.spells.for_each(|_, number, edge| {
                        if edge.ended == NEVER {
                            edge_element(xml, nodes, number, &edge).write_empty()?;
                        }
                        Ok(())
                    })?;
                    Ok(())
                })?;
            Ok(())
        })?;
    writeln!(out)
}

/// Writes an edge with its number and the names of its ends.
fn edge_element<'a, W: Write>(
    xml: &'a mut Writer<W>,
    nodes: &[Nodes],
    number: u32,
    edge: &EdgeInterval,
) -> ElementWriter<'a, W> {
    xml.create_element("edge").with_attributes([
        ("id", format!("e{number}").as_str()),
        ("source", &name(nodes, edge.source)),
        ("target", &name(nodes, edge.target)),
    ])
}

/// Formats seconds with no more decimals than the nanoseconds need.
fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// Writes all nodes and edges with the seconds of the run in which they existed. An edge that was forgotten and later
/// added again is one edge with several `spell` elements.
pub(crate) fn gexf(out: &mut impl Write, graph: &mut GraphHistory, arch: &str) -> io::Result<()> {
    const ATTRIBUTES: [&str; 5] = ["service", "package", "region", "zone", "ip"];
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    declaration(&mut xml)?;
    xml.create_element("gexf")
        .with_attributes([("xmlns", "http://gexf.net/1.3"), ("version", "1.3")])
        .write_inner_content(|xml| {
            xml.create_element("meta").write_inner_content(|xml| {
                xml.create_element("description")
                    .write_text_content(BytesText::new(arch))?;
                Ok(())
            })?;
            xml.create_element("graph")
                .with_attributes([
                    ("mode", "dynamic"),
                    ("defaultedgetype", "directed"),
                    ("timeformat", "double"),
                    ("timerepresentation", "interval"),
                ])
                .write_inner_content(|xml| {
                    xml.create_element("attributes")
                        .with_attribute(("class", "node"))
                        .write_inner_content(|xml| {
                            for (title, id) in ATTRIBUTES.iter().zip(0..) {
                                xml.create_element("attribute")
                                    .with_attributes([
                                        ("id", format!("{id}").as_str()),
                                        ("title", *title),
                                        ("type", "string"),
                                    ])
                                    .write_empty()?;
                            }
                            Ok(())
                        })?;
                    xml.create_element("nodes").write_inner_content(|xml| {
                        graph.each_node(|node, times| gexf_node(xml, node, times))
                    })?;
                    xml.create_element("edges").write_inner_content(|xml| {
                        let nodes = &graph.nodes;
                        graph.spells.for_each(|spells, number, edge| {
                            if edge.again {
                                return Ok(());
                            }
                            let element = edge_element(xml, nodes, number, &edge);
                            if edge.next == 0 {
                                return interval(element, (edge.began, edge.ended))
                                    .write_empty()
                                    .map(drop);
                            }
                            let all = |xml: &mut Writer<_>| {
                                let mut spell = edge;
                                loop {
                                    let element = xml.create_element("spell");
                                    interval(element, (spell.began, spell.ended)).write_empty()?;
                                    match spell.next {
                                        0 => return Ok(()),
                                        next => spell = spells.read(next)?,
                                    }
                                }
                            };
                            element
                                .write_inner_content(|xml| {
                                    xml.create_element("spells")
                                        .write_inner_content(all)
                                        .map(drop)
                                })
                                .map(drop)
                        })?;
                        Ok(())
                    })?;
                    Ok(())
                })?;
            Ok(())
        })?;
    writeln!(out)
}

/// Writes the start of an interval and, if the interval has ended, its end.
fn interval<W: Write>(
    element: ElementWriter<'_, W>,
    (began, ended): (u64, u64),
) -> ElementWriter<'_, W> {
    let element = element.with_attribute(("start", seconds(began).as_str()));
    match ended {
        NEVER => element,
        ended => element.with_attribute(("end", seconds(ended).as_str())),
    }
}

fn gexf_node<W: Write>(
    xml: &mut Writer<W>,
    node: &NodeRecord<'_>,
    times: (u64, u64),
) -> io::Result<()> {
    let address = node.address.to_string();
    let values: [&str; 5] = [node.service, node.package, node.region, node.zone, &address];
    let element = xml
        .create_element("node")
        .with_attributes([("id", node.name), ("label", node.name)]);
    interval(element, times).write_inner_content(|xml| {
        xml.create_element("attvalues").write_inner_content(|xml| {
            for (value, id) in values.iter().zip(0..) {
                xml.create_element("attvalue")
                    .with_attributes([("for", format!("{id}").as_str()), ("value", *value)])
                    .write_empty()?;
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use crate::directory::Directory;
    use std::path::Path;

    /// elb knows zuul and others from 1 s on, forgets zuul at 2 s, and knows it again at 2.5 s.
    fn gathered(directory: &Path) -> GraphHistory {
        let spells = EdgeIntervals::begin(&directory.join("graph")).unwrap();
        let mut graph = GraphHistory::new(spells);
        let mut directory = Directory::default();
        for (actor, name) in ["elb", "zuul & co"].into_iter().enumerate() {
            let node = Node {
                name: name.into(),
                container: None,
                full_name: name.into(),
                service: "www".into(),
                package: name.split(' ').next().unwrap().into(),
                region: "us-east-1".into(),
                zone: "zoneB".into(),
            };
            graph.node(0, &directory.add(actor as u32, node));
        }
        let edge = |number, source, target| Edge {
            number,
            source,
            target,
        };
        graph.edge(1_000_000_000, &edge(1, 0, 1)).unwrap();
        graph.edge(1_000_000_000, &edge(2, 1, 0)).unwrap();
        graph.forget(2_000_000_000, &edge(1, 0, 1)).unwrap();
        graph.edge(2_500_000_000, &edge(3, 0, 1)).unwrap();
        graph.forget(2_500_000_000, &edge(2, 1, 0)).unwrap();
        graph.done(3_000_000_001, 1);
        graph
    }

    #[test]
    fn graphml_has_the_nodes_and_the_edges_that_are_left() {
        let directory = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        graphml(&mut out, &mut gathered(directory.path())).unwrap();
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="service" for="node" attr.name="package" attr.type="string"/>
  <key id="region" for="node" attr.name="region" attr.type="string"/>
  <key id="zone" for="node" attr.name="zone" attr.type="string"/>
  <key id="ip" for="node" attr.name="ip" attr.type="string"/>
  <graph id="spigo" edgedefault="directed">
    <node id="elb">
      <data key="service">elb</data>
      <data key="region">us-east-1</data>
      <data key="zone">zoneB</data>
      <data key="ip">54.221.0.1</data>
    </node>
    <node id="zuul &amp; co">
      <data key="service">zuul</data>
      <data key="region">us-east-1</data>
      <data key="zone">zoneB</data>
      <data key="ip">54.221.0.2</data>
    </node>
    <edge id="e3" source="elb" target="zuul &amp; co"/>
  </graph>
</graphml>
"#;
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn gexf_has_the_seconds_in_which_nodes_and_edges_were() {
        let directory = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        gexf(&mut out, &mut gathered(directory.path()), "test").unwrap();
        let text = String::from_utf8(out).unwrap();
        for part in [
            r#"<graph mode="dynamic" defaultedgetype="directed" timeformat="double" timerepresentation="interval">"#,
            r#"<node id="elb" label="elb" start="0">"#,
            r#"<node id="zuul &amp; co" label="zuul &amp; co" start="0" end="3.000000001">"#,
            r#"<attvalue for="4" value="54.221.0.2"/>"#,
            r#"<edge id="e1" source="elb" target="zuul &amp; co">"#,
            r#"<spell start="1" end="2"/>"#,
            r#"<spell start="2.5"/>"#,
            r#"<edge id="e2" source="zuul &amp; co" target="elb" start="1" end="2.5"/>"#,
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("e3"), "an edge has its first number\n{text}");
    }
}
