//! Settings of an observer.

use crate::recorder::RecordKinds;
use crate::{Clock, FlowFormat, Places, Replacement, ResumePoint, SeenSpan};
use corsair::CancelToken;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(doc)]
use crate::Observer;
use serde::Serialize;

/// The outputs of an [`Observer`]. By default there are no outputs; each output is requested by setting a field.
pub struct Settings {
    /// The name of the architecture, which is part of file names.
    pub arch: String,
    /// The step of a migration. Names of graph files of step 1 and later contain it, as in spigo.
    pub step: u32,
    /// The flags of the run, which are quoted in file headers.
    pub args: String,
    /// The regions and zones, and their addresses.
    pub places: Arc<Places>,
    /// The date of time zero.
    pub epoch: Timestamp,
    /// The names of the kinds of messages; records refer to them by index.
    pub kinds: &'static [&'static str],
    /// The names of operations that are not kinds of messages. Their indices follow the indices of the kinds. There are
    /// at most 65,535 kinds and operations together.
    pub operations: Vec<String>,
    /// The clock of the run, which determines when records may be written.
    pub clock: Clock,
    /// The directory that contains the written files.
    pub out: PathBuf,
    /// The formats of graphs to write, in `json/` and `gml/`.
    pub graphs: Vec<GraphFormat>,
    /// The Neo4j database that receives the graph, if any.
    pub neo4j: Option<Neo4j>,
    /// The formats of flows to write, in `json_metrics/`.
    pub flows: Vec<FlowFormat>,
    /// A function that receives every span. It is called on a thread for which the run may have to wait.
    pub spans: Option<SpanSink>,
    /// Writes flows to the topic `zipkin` of Kafka. The value is a broker, `HOST:PORT`, or several brokers separated by
    /// commas. The first broker that answers provides the addresses of all brokers.
    pub kafka: Option<String>,
    /// Sends flows in the OTLP format to this collector: `http://HOST:4318`.
    pub otlp: Option<String>,
    /// Sends flows in the Zipkin v2 format to this collector: `http://HOST:9411`.
    pub zipkin: Option<String>,
    /// True to measure times and write them to `csv_metrics/` and, for Guesstimate, to `json_metrics/`.
    pub times: bool,
    /// The values that replace measured times of services in the file for Guesstimate, by service.
    pub guesses: BTreeMap<String, Guess>,
    /// Measures times, and serves them at this address during the run.
    pub metrics: Option<SocketAddr>,
    /// Writes a log of every message to this writer.
    pub messages: Option<Box<dyn Write + Send>>,
    /// A token that is cancelled if the output can no longer be written.
    pub cancel: Option<CancelToken>,
    /// The number of threads that serialize flows, in addition to the threads of the run.
    pub workers: usize,
    /// The number of other processes of the run, whose records arrive through [relays](crate::Relay).
    pub sources: usize,
    /// The saved run whose output is continued, if any.
    pub resumed: Option<ResumePoint>,
}

/// A function that receives spans one by one.
pub type SpanSink = Box<dyn FnMut(&SeenSpan<'_>) + Send>;

impl Settings {
    /// Creates settings without outputs for a run of this architecture.
    pub fn new(arch: impl Into<String>, clock: Clock) -> Settings {
        Settings {
            arch: arch.into(),
            step: 0,
            args: String::new(),
            places: Arc::default(),
            epoch: Timestamp::UNIX_EPOCH,
            kinds: &[],
            operations: Vec::new(),
            clock,
            out: PathBuf::from("."),
            graphs: Vec::new(),
            neo4j: None,
            flows: Vec::new(),
            spans: None,
            kafka: None,
            otlp: None,
            zipkin: None,
            times: false,
            guesses: BTreeMap::new(),
            metrics: None,
            messages: None,
            cancel: None,
            workers: 1,
            sources: 0,
            resumed: None,
        }
    }

    /// Returns true if actors must record events.
    pub fn wants_records(&self) -> bool {
        RecordKinds::of(self).any()
    }

    /// Returns the name of the architecture and the step, as in file names.
    pub(crate) fn stem(&self) -> String {
        match self.step {
            0 => self.arch.clone(),
            step => format!("{}{step}", self.arch),
        }
    }

    /// Creates a file below the directory.
    pub(crate) fn begin(
        &self,
        directory: &str,
        name: &str,
    ) -> Result<Replacement, crate::FileError> {
        Replacement::begin(&self.out.join(directory).join(name))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("arch", &self.arch)
            .field("out", &self.out)
            .field("graphs", &self.graphs)
            .field("flows", &self.flows)
            .finish_non_exhaustive()
    }
}

/// The format of a graph file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphFormat {
    /// GraphJSON, spigo's version 0.4: `json/<arch><step>.json`.
    Json,
    /// GraphML, which yEd reads: `gml/<arch><step>.graphml`.
    GraphMl,
    /// GEXF 1.3 with times, which Gephi reads: `gml/<arch><step>.gexf`.
    Gexf,
}

/// The value that replaces the measured times of a service in Guesstimate's models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guess {
    /// Guesstimate's type of the expression: `POINT`, `NORMAL`, `FUNCTION`.
    pub kind: String,
    /// The value or formula in the syntax of Guesstimate's cells.
    pub expression: String,
}

/// The default address of a local database.
const NEO4J: &str = "localhost:7474";

/// The address of a Neo4j database, and the data that it receives.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Neo4j {
    /// The HTTP address: `http://localhost:7474`, or `localhost:7474`.
    pub url: String,
    /// The user name.
    pub user: String,
    /// The password; `None` if the database requires none.
    pub password: Option<String>,
    /// True if the database also gets flows. Each exchange becomes a relationship between two nodes.
    pub flows: bool,
}

impl Neo4j {
    /// Returns the database that the environment names: the address `NEO4JURL` (by default `localhost:7474`), and the
    /// password `NEO4JPASSWORD` for the user `neo4j`. The database gets no flows.
    pub fn from_environment() -> Neo4j {
        let url = std::env::var("NEO4JURL").ok();
        Neo4j {
            url: url
                .filter(|url| !url.is_empty())
                .unwrap_or_else(|| NEO4J.to_owned()),
            user: "neo4j".to_owned(),
            password: std::env::var("NEO4JPASSWORD").ok(),
            flows: false,
        }
    }
}

impl fmt::Debug for Neo4j {
    /// Formats everything but the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neo4j")
            .field("url", &self.url)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
