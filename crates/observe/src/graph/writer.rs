//! Writes a graph file, an event at a time.

use super::VERSION;
use jiff::Timestamp;
use serde::Serialize;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// What stands at the head of a graph file.
#[derive(Clone, Debug)]
pub struct Header<'a> {
    /// The architecture.
    pub arch: &'a str,
    /// The flags of the run.
    pub args: &'a str,
    /// When it began.
    pub date: Timestamp,
}

/// Writes a graph file to `W`, which should be buffered.
///
/// Nodes get addresses one after the other, and edges the numbers e1, e2 and so on, so the file
/// is a function of the header and the calls.
#[derive(Debug)]
pub struct GraphWriter<W: Write> {
    out: W,
    events: u64,
    nodes: u32,
    edges: u64,
}

/// The address before that of the first node: the beginning of the range of spigo's first zone.
const ADDRESSES: Ipv4Addr = Ipv4Addr::new(54, 198, 0, 0);

#[derive(Serialize)]
struct NodeEvent<'a> {
    node: &'a str,
    package: &'a str,
    timestamp: Timestamp,
    metadata: String,
}

#[derive(Serialize)]
struct EdgeEvent<'a> {
    edge: String,
    source: &'a str,
    target: &'a str,
    timestamp: Timestamp,
}

#[derive(Serialize)]
struct DoneEvent<'a> {
    done: &'a str,
    exit: &'a str,
    timestamp: Timestamp,
}

impl<W: Write> GraphWriter<W> {
    /// Writes the head of the file.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn begin(mut out: W, header: &Header<'_>) -> io::Result<GraphWriter<W>> {
        write!(
            out,
            "{{\n  \"arch\":{},\n  \"version\":{},\n  \"args\":{},\n  \"date\":\"{}\",\n  \"graph\":[",
            serde_json::to_string(header.arch)?,
            serde_json::to_string(VERSION)?,
            serde_json::to_string(header.args)?,
            header.date,
        )?;
        Ok(GraphWriter {
            out,
            events: 0,
            nodes: 0,
            edges: 0,
        })
    }

    /// An actor exists.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn node(&mut self, timestamp: Timestamp, node: &str, package: &str) -> io::Result<()> {
        self.nodes += 1;
        let address = Ipv4Addr::from_bits(ADDRESSES.to_bits().wrapping_add(self.nodes));
        self.event(&NodeEvent {
            node,
            package,
            timestamp,
            metadata: format!("IP/{address}"),
        })
    }

    /// An actor knows another.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn edge(&mut self, timestamp: Timestamp, source: &str, target: &str) -> io::Result<()> {
        self.edges += 1;
        self.event(&EdgeEvent {
            edge: format!("e{}", self.edges),
            source,
            target,
            timestamp,
        })
    }

    /// An actor has ended as it should.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn done(&mut self, timestamp: Timestamp, done: &str) -> io::Result<()> {
        self.event(&DoneEvent {
            done,
            exit: "normal",
            timestamp,
        })
    }

    fn event(&mut self, event: &impl Serialize) -> io::Result<()> {
        let before = if self.events == 0 {
            "\n    "
        } else {
            ",\n    "
        };
        self.events += 1;
        self.out.write_all(before.as_bytes())?;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    /// Writes the end of the file. Returns how many events it has.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn end(mut self) -> io::Result<u64> {
        self.out.write_all(b"\n  ]\n}\n")?;
        Ok(self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_looks_as_spigos() {
        let mut out = Vec::new();
        let date: Timestamp = "2016-04-17T13:38:45Z".parse().unwrap();
        let header = Header {
            arch: "fsm",
            args: "[corsair -p \"2\"]",
            date,
        };
        let mut graph = GraphWriter::begin(&mut out, &header).unwrap();
        graph.node(date, "anne", "pirate").unwrap();
        let later = date + Duration::from_micros(1_500);
        graph.edge(later, "anne", "bart").unwrap();
        graph.done(later, "anne").unwrap();
        assert_eq!(graph.end().unwrap(), 3);
        let text = r#"{
  "arch":"fsm",
  "version":"spigo-0.4",
  "args":"[corsair -p \"2\"]",
  "date":"2016-04-17T13:38:45Z",
  "graph":[
    {"node":"anne","package":"pirate","timestamp":"2016-04-17T13:38:45Z","metadata":"IP/54.198.0.1"},
    {"edge":"e1","source":"anne","target":"bart","timestamp":"2016-04-17T13:38:45.0015Z"},
    {"done":"anne","exit":"normal","timestamp":"2016-04-17T13:38:45.0015Z"}
  ]
}
"#;
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
