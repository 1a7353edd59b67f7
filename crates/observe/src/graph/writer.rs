//! Writes a GraphJSON file in the order of its events, in bulk.

use super::VERSION;
use crate::Exit;
use crate::json_array::{Array, Element, Marshal};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use std::fmt;
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

/// Writes a graph file to `W`, which need not be buffered.
///
/// The file is a function of the header and the calls. Names (`N`) are kept until a batch of
/// events is marshalled at once.
pub struct GraphWriter<W: Write, N> {
    out: W,
    /// Events that are not written yet.
    kept: Vec<Event<N>>,
    array: Array<Line>,
    events: u64,
}

/// So many events are marshalled at once.
const BATCH: usize = 4096;

/// An event stands on a line of its own.
#[derive(Debug)]
struct Line;

impl Element for Line {
    const BEFORE: &'static [u8] = b",\n    ";
    const AFTER: &'static [u8] = b"";
}

/// An event, with the keys in the order in which spigo has them.
#[derive(Serialize)]
#[serde(untagged, bound = "N: AsRef<str>")]
enum Event<N> {
    Node {
        #[serde(serialize_with = "text")]
        node: N,
        #[serde(serialize_with = "text")]
        package: N,
        timestamp: Timestamp,
        #[serde(serialize_with = "ip_metadata")]
        metadata: Ipv4Addr,
    },
    Edge {
        #[serde(serialize_with = "edge_number")]
        edge: u64,
        #[serde(serialize_with = "text")]
        source: N,
        #[serde(serialize_with = "text")]
        target: N,
        timestamp: Timestamp,
    },
    Forget {
        #[serde(serialize_with = "edge_number")]
        forget: u64,
        #[serde(serialize_with = "text")]
        source: N,
        #[serde(serialize_with = "text")]
        target: N,
        timestamp: Timestamp,
    },
    Done {
        #[serde(serialize_with = "text")]
        done: N,
        #[serde(serialize_with = "exit_word")]
        exit: Exit,
        timestamp: Timestamp,
    },
}

fn text<N: AsRef<str>, S: Serializer>(text: &N, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text.as_ref())
}

fn edge_number<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("e{number}"))
}

fn ip_metadata<S: Serializer>(address: &Ipv4Addr, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("IP/{address}"))
}

fn exit_word<S: Serializer>(exit: &Exit, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(exit.word())
}

impl<W: Write, N: AsRef<str> + Sync> GraphWriter<W, N> {
    /// Writes the head of the file.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn begin(mut out: W, header: &Header<'_>) -> io::Result<GraphWriter<W, N>> {
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
            kept: Vec::new(),
            array: Array::new(),
            events: 0,
        })
    }

    /// An actor exists.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn node(
        &mut self,
        timestamp: Timestamp,
        node: N,
        package: N,
        address: Ipv4Addr,
    ) -> io::Result<()> {
        self.event(Event::Node {
            node,
            package,
            timestamp,
            metadata: address,
        })
    }

    /// An actor knows another. Edges are numbered from 1 on.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn edge(
        &mut self,
        timestamp: Timestamp,
        number: u64,
        source: N,
        target: N,
    ) -> io::Result<()> {
        self.event(Event::Edge {
            edge: number,
            source,
            target,
            timestamp,
        })
    }

    /// An actor does not know another any longer. The number is that of the edge.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn forget(
        &mut self,
        timestamp: Timestamp,
        number: u64,
        source: N,
        target: N,
    ) -> io::Result<()> {
        self.event(Event::Forget {
            forget: number,
            source,
            target,
            timestamp,
        })
    }

    /// An actor has ended.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn done(&mut self, timestamp: Timestamp, done: N, exit: Exit) -> io::Result<()> {
        self.event(Event::Done {
            done,
            exit,
            timestamp,
        })
    }

    fn event(&mut self, event: Event<N>) -> io::Result<()> {
        self.events += 1;
        self.kept.push(event);
        match self.kept.len() < BATCH {
            true => Ok(()),
            false => self.write_kept(),
        }
    }

    fn write_kept(&mut self) -> io::Result<()> {
        self.array
            .write(&Marshal::Alone, &self.kept, &mut self.out)?;
        self.kept.clear();
        Ok(())
    }

    /// Writes the end of the file. Returns how many events it has.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn end(&mut self) -> io::Result<u64> {
        self.write_kept()?;
        self.out.write_all(b"\n  ]\n}\n")?;
        Ok(self.events)
    }

    /// How many events there are so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What the file is written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write, N> fmt::Debug for GraphWriter<W, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphWriter")
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_looks_as_spigos() {
        let date: Timestamp = "2016-04-17T13:38:45Z".parse().unwrap();
        let header = Header {
            arch: "fsm",
            args: "[corsair -p \"2\"]",
            date,
        };
        let mut graph = GraphWriter::begin(Vec::new(), &header).unwrap();
        let address = Ipv4Addr::new(54, 198, 0, 1);
        graph.node(date, "anne", "pirate", address).unwrap();
        let later = date + Duration::from_micros(1_500);
        graph.edge(later, 1, "anne", "bart").unwrap();
        graph.forget(later, 1, "anne", "bart").unwrap();
        graph.done(later, "anne", Exit::Normal).unwrap();
        assert_eq!(graph.end().unwrap(), 4);
        let text = r#"{
  "arch":"fsm",
  "version":"spigo-0.4",
  "args":"[corsair -p \"2\"]",
  "date":"2016-04-17T13:38:45Z",
  "graph":[
    {"node":"anne","package":"pirate","timestamp":"2016-04-17T13:38:45Z","metadata":"IP/54.198.0.1"},
    {"edge":"e1","source":"anne","target":"bart","timestamp":"2016-04-17T13:38:45.0015Z"},
    {"forget":"e1","source":"anne","target":"bart","timestamp":"2016-04-17T13:38:45.0015Z"},
    {"done":"anne","exit":"normal","timestamp":"2016-04-17T13:38:45.0015Z"}
  ]
}
"#;
        assert_eq!(String::from_utf8(graph.into_inner()).unwrap(), text);
    }
}
