//! Writes a GraphJSON file. Events are written in batches, in the order of the calls.

use super::VERSION;
use crate::Exit;
use crate::json_array::{Array, Element, Marshal};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use std::fmt;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The header of a graph file.
#[derive(Clone, Debug)]
pub(crate) struct Header<'a> {
    /// The name of the architecture.
    pub(crate) arch: &'a str,
    /// The flags of the run.
    pub(crate) args: &'a str,
    /// The date of the run.
    pub(crate) date: Timestamp,
}

/// Writes a graph file to `W`, which need not be buffered.
///
/// The contents of the file depend only on the header and the calls. Events are stored until there are enough of them
/// for a batch.
pub(crate) struct GraphWriter<W: Write> {
    out: W,
    /// Events that have not been written.
    kept: Vec<Event>,
    array: Array<Line>,
    events: u64,
}

/// The number of events in a batch.
const BATCH: usize = 4096;

/// Puts each event on a separate line.
#[derive(Debug)]
struct Line;

impl Element for Line {
    const BEFORE: &'static [u8] = b",\n    ";
    const AFTER: &'static [u8] = b"";
}

/// An event, with its keys in spigo's order.
#[derive(Serialize)]
#[serde(untagged)]
enum Event {
    Node {
        #[serde(serialize_with = "text")]
        node: Arc<str>,
        #[serde(serialize_with = "text")]
        package: Arc<str>,
        timestamp: Timestamp,
        #[serde(serialize_with = "ip_metadata")]
        metadata: Ipv4Addr,
    },
    Edge {
        #[serde(serialize_with = "edge_number")]
        edge: u32,
        #[serde(serialize_with = "text")]
        source: Arc<str>,
        #[serde(serialize_with = "text")]
        target: Arc<str>,
        timestamp: Timestamp,
    },
    Forget {
        #[serde(serialize_with = "edge_number")]
        forget: u32,
        #[serde(serialize_with = "text")]
        source: Arc<str>,
        #[serde(serialize_with = "text")]
        target: Arc<str>,
        timestamp: Timestamp,
    },
    Done {
        #[serde(serialize_with = "text")]
        done: Arc<str>,
        #[serde(serialize_with = "exit_word")]
        exit: Exit,
        timestamp: Timestamp,
    },
}

fn text<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

fn edge_number<S: Serializer>(number: &u32, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("e{number}"))
}

fn ip_metadata<S: Serializer>(address: &Ipv4Addr, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("IP/{address}"))
}

fn exit_word<S: Serializer>(exit: &Exit, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(exit.word())
}

impl<W: Write> GraphWriter<W> {
    /// Writes the header of the file.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(crate) fn begin(mut out: W, header: &Header<'_>) -> io::Result<GraphWriter<W>> {
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

    /// Continues a file that already has this many events.
    pub(crate) fn resume(out: W, events: u64) -> GraphWriter<W> {
        let mut array = Array::new();
        if events > 0 {
            array.set_begun();
        }
        GraphWriter {
            out,
            kept: Vec::new(),
            array,
            events,
        }
    }

    /// Returns the output.
    pub(crate) fn out(&self) -> &W {
        &self.out
    }

    /// Writes all events so far. Returns the output.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(crate) fn write_all(&mut self) -> io::Result<&mut W> {
        self.write_kept()?;
        Ok(&mut self.out)
    }

    /// Writes that an actor exists.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(crate) fn node(
        &mut self,
        timestamp: Timestamp,
        node: Arc<str>,
        package: Arc<str>,
        address: Ipv4Addr,
    ) -> io::Result<()> {
        self.event(Event::Node {
            node,
            package,
            timestamp,
            metadata: address,
        })
    }

    /// Writes that an actor knows another actor. Edges are numbered from 1.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(crate) fn edge(
        &mut self,
        timestamp: Timestamp,
        number: u32,
        source: Arc<str>,
        target: Arc<str>,
    ) -> io::Result<()> {
        self.event(Event::Edge {
            edge: number,
            source,
            target,
            timestamp,
        })
    }

    /// Writes the removal of the edge with this number.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(crate) fn forget(
        &mut self,
        timestamp: Timestamp,
        number: u32,
        source: Arc<str>,
        target: Arc<str>,
    ) -> io::Result<()> {
        self.event(Event::Forget {
            forget: number,
            source,
            target,
            timestamp,
        })
    }

    /// Writes the end of an actor.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(crate) fn done(
        &mut self,
        timestamp: Timestamp,
        done: Arc<str>,
        exit: Exit,
    ) -> io::Result<()> {
        self.event(Event::Done {
            done,
            exit,
            timestamp,
        })
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
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

    /// Writes the end of the file.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.write_kept()?;
        self.out.write_all(b"\n  ]\n}\n")
    }

    /// Returns the number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Returns the output.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> fmt::Debug for GraphWriter<W> {
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
        let (address, anne) = (Ipv4Addr::new(54, 198, 0, 1), || "anne".into());
        graph.node(date, anne(), "pirate".into(), address).unwrap();
        let later = date + Duration::from_micros(1_500);
        graph.edge(later, 1, anne(), "bart".into()).unwrap();
        graph.forget(later, 1, anne(), "bart".into()).unwrap();
        graph.done(later, anne(), Exit::Normal).unwrap();
        graph.end().unwrap();
        assert_eq!(graph.events(), 4);
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
