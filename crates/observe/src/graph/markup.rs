//! Graphs as XML: GraphML, which yEd reads, and GEXF, which Gephi reads.
//!
//! Both want to know of a node or an edge when it ends, so they are gathered (about 100 bytes for
//! a node, 32 for an edge) and written when the run is over.

use crate::directory::Placed;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The nodes and edges of a run, and when they were.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    nodes: Vec<GatheredNode>,
    /// Edge `e1` is the first.
    edges: Vec<GatheredEdge>,
}

#[derive(Debug)]
struct GatheredNode {
    name: Arc<str>,
    service: Arc<str>,
    package: Arc<str>,
    region: Arc<str>,
    zone: Arc<str>,
    address: Ipv4Addr,
    began: u64,
    ended: Option<u64>,
}

#[derive(Debug)]
struct GatheredEdge {
    source: u32,
    target: u32,
    began: u64,
    ended: Option<u64>,
}

impl Gathered {
    pub(crate) fn node(&mut self, at: u64, placed: &Placed) {
        self.nodes.push(GatheredNode {
            name: Arc::clone(&placed.name),
            service: Arc::clone(&placed.service),
            package: Arc::clone(&placed.package),
            region: Arc::clone(&placed.region),
            zone: Arc::clone(&placed.zone),
            address: placed.address,
            began: at,
            ended: None,
        });
    }

    pub(crate) fn edge(&mut self, at: u64, number: u64, (source, target): (u32, u32)) {
        debug_assert_eq!(number, self.edges.len() as u64 + 1, "edges come in order");
        self.edges.push(GatheredEdge {
            source,
            target,
            began: at,
            ended: None,
        });
    }

    pub(crate) fn forget(&mut self, at: u64, number: u64) {
        self.edges[number as usize - 1].ended = Some(at);
    }

    pub(crate) fn done(&mut self, at: u64, number: u32) {
        self.nodes[number as usize].ended = Some(at);
    }

    fn name(&self, node: u32) -> &str {
        &self.nodes[node as usize].name
    }
}

fn declaration<W: Write>(xml: &mut Writer<W>) -> io::Result<()> {
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))
}

/// Writes all nodes, and the edges that are not forgotten at the end, as spigo does: the package
/// is the datum `service`. Where a node is comes with it.
pub(crate) fn graphml(out: &mut impl Write, graph: &Gathered) -> io::Result<()> {
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
                    for node in &graph.nodes {
                        let address = node.address.to_string();
                        let data: [&str; 4] = [&node.package, &node.region, &node.zone, &address];
                        xml.create_element("node")
                            .with_attribute(("id", &*node.name))
                            .write_inner_content(|xml| {
                                for ((key, _), value) in DATA.iter().zip(data) {
                                    xml.create_element("data")
                                        .with_attribute(("key", *key))
                                        .write_text_content(BytesText::new(value))?;
                                }
                                Ok(())
                            })?;
                    }
                    let left = graph.edges.iter().zip(1u64..);
                    for (edge, number) in left.filter(|(edge, _)| edge.ended.is_none()) {
                        xml.create_element("edge")
                            .with_attributes([
                                ("id", format!("e{number}").as_str()),
                                ("source", graph.name(edge.source)),
                                ("target", graph.name(edge.target)),
                            ])
                            .write_empty()?;
                    }
                    Ok(())
                })?;
            Ok(())
        })?;
    writeln!(out)
}

/// Seconds with as many digits as nanoseconds need, and no more.
fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// Writes all nodes and edges with the seconds of the run in which they were. An edge that was
/// forgotten and got to know again is one edge with several spells.
pub(crate) fn gexf(out: &mut impl Write, graph: &Gathered, arch: &str) -> io::Result<()> {
    const ATTRIBUTES: [&str; 5] = ["service", "package", "region", "zone", "ip"];
    let mut spells: FxHashMap<(u32, u32), Vec<&GatheredEdge>> = FxHashMap::default();
    let mut first = Vec::new();
    for (edge, number) in graph.edges.iter().zip(1u64..) {
        let spells = spells.entry((edge.source, edge.target)).or_default();
        if spells.is_empty() {
            first.push((edge, number));
        }
        spells.push(edge);
    }
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
                        graph.nodes.iter().try_for_each(|node| gexf_node(xml, node))
                    })?;
                    xml.create_element("edges").write_inner_content(|xml| {
                        for (edge, number) in first {
                            let id = format!("e{number}");
                            let spells = &spells[&(edge.source, edge.target)];
                            let ends = [
                                ("id", id.as_str()),
                                ("source", graph.name(edge.source)),
                                ("target", graph.name(edge.target)),
                            ];
                            let element = xml.create_element("edge").with_attributes(ends);
                            if let [edge] = spells[..] {
                                let times = interval(edge.began, edge.ended);
                                element
                                    .with_attributes(times.iter().map(|(k, v)| (*k, v.as_str())))
                                    .write_empty()?;
                                continue;
                            }
                            element.write_inner_content(|xml| {
                                xml.create_element("spells").write_inner_content(|xml| {
                                    for edge in spells {
                                        let times = interval(edge.began, edge.ended);
                                        xml.create_element("spell")
                                            .with_attributes(
                                                times.iter().map(|(k, v)| (*k, v.as_str())),
                                            )
                                            .write_empty()?;
                                    }
                                    Ok(())
                                })?;
                                Ok(())
                            })?;
                        }
                        Ok(())
                    })?;
                    Ok(())
                })?;
            Ok(())
        })?;
    writeln!(out)
}

fn interval(began: u64, ended: Option<u64>) -> Vec<(&'static str, String)> {
    let ended = ended.map(|ended| ("end", seconds(ended)));
    [("start", seconds(began))]
        .into_iter()
        .chain(ended)
        .collect()
}

fn gexf_node<W: Write>(xml: &mut Writer<W>, node: &GatheredNode) -> io::Result<()> {
    let address = node.address.to_string();
    let values: [&str; 5] = [
        &node.service,
        &node.package,
        &node.region,
        &node.zone,
        &address,
    ];
    let times = interval(node.began, node.ended);
    xml.create_element("node")
        .with_attributes([("id", &*node.name), ("label", &*node.name)])
        .with_attributes(times.iter().map(|(k, v)| (*k, v.as_str())))
        .write_inner_content(|xml| {
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

    /// elb knows zuul & co from 1 s on; forgets it at 2 s and knows it again at 2.5 s.
    fn gathered() -> Gathered {
        let mut directory = Directory::default();
        let mut graph = Gathered::default();
        for (actor, name) in ["elb", "zuul & co"].into_iter().enumerate() {
            let node = Node {
                name: name.into(),
                full_name: name.into(),
                service: "www".into(),
                package: name.split(' ').next().unwrap().into(),
                region: "us-east-1".into(),
                zone: "zoneB".into(),
            };
            graph.node(0, &directory.add(actor as u32, node));
        }
        graph.edge(1_000_000_000, 1, (0, 1));
        graph.edge(1_000_000_000, 2, (1, 0));
        graph.forget(2_000_000_000, 1);
        graph.edge(2_500_000_000, 3, (0, 1));
        graph.forget(2_500_000_000, 2);
        graph.done(3_000_000_001, 1);
        graph
    }

    #[test]
    fn graphml_has_the_nodes_and_the_edges_that_are_left() {
        let mut out = Vec::new();
        graphml(&mut out, &gathered()).unwrap();
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
        let mut out = Vec::new();
        gexf(&mut out, &gathered(), "test").unwrap();
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
