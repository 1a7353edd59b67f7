//! The network as it stands: which nodes there are, and which edges have which number.
//!
//! Actors of one name are one node; an edge is written once, however many of them have it.

use super::markup::{self, Gathered};
use super::neo4j::Neo4jGraph;
use super::{GraphWriter, Header};
use crate::directory::Placed;
use crate::observer::WrittenFile;
use crate::{Exit, FileError, GraphFormat, Loss, ObserveError, Replacement, Settings};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All graphs of a run, written from the same events.
#[derive(Debug)]
pub(crate) struct GraphSink {
    epoch: Timestamp,
    numbers: FxHashMap<Arc<str>, u32>,
    nodes: Vec<NodeState>,
    edges: FxHashMap<(u32, u32), EdgeState>,
    edges_made: u64,
    json: Option<GraphWriter<Replacement, Arc<str>>>,
    gathered: Option<Gathered>,
    markup: Vec<(GraphFormat, Replacement)>,
    neo4j: Option<Neo4jGraph>,
    arch: String,
    /// Where the graph in JSON will be.
    path: PathBuf,
}

#[derive(Debug)]
struct NodeState {
    name: Arc<str>,
    /// How many actors of this name there are.
    alive: u32,
}

#[derive(Debug)]
struct EdgeState {
    number: u64,
    /// How many pairs of actors have it.
    held: u32,
}

impl GraphSink {
    /// Opens the graphs that the settings ask for; `None` if they ask for none.
    pub(crate) fn open(settings: &Settings) -> Result<Option<GraphSink>, ObserveError> {
        if settings.graphs.is_empty() && settings.neo4j.is_none() {
            return Ok(None);
        }
        let stem = settings.stem();
        let (mut json, mut path, mut markup) = (None, PathBuf::new(), Vec::new());
        for &format in &settings.graphs {
            match format {
                GraphFormat::Json => {
                    let file = settings.begin("json", &format!("{stem}.json"))?;
                    let header = Header {
                        arch: &settings.arch,
                        args: &settings.args,
                        date: settings.epoch,
                    };
                    path = file.path().to_owned();
                    let begun = GraphWriter::begin(file, &header);
                    json = Some(begun.map_err(|error| FileError::Write {
                        path: path.clone(),
                        error,
                    })?);
                }
                GraphFormat::GraphMl => {
                    markup.push((format, settings.begin("gml", &format!("{stem}.graphml"))?));
                }
                GraphFormat::Gexf => {
                    markup.push((format, settings.begin("gml", &format!("{stem}.gexf"))?));
                }
            }
        }
        let neo4j = settings.neo4j.as_ref();
        let neo4j = neo4j
            .map(|database| Neo4jGraph::connect(database, &stem))
            .transpose()?;
        Ok(Some(GraphSink {
            epoch: settings.epoch,
            numbers: FxHashMap::default(),
            nodes: Vec::new(),
            edges: FxHashMap::default(),
            edges_made: 0,
            json,
            gathered: (!markup.is_empty()).then(Gathered::default),
            markup,
            neo4j,
            arch: settings.arch.clone(),
            path,
        }))
    }

    /// The date of a time; the last possible one for times beyond the calendar.
    fn date(&self, at: u64) -> Timestamp {
        let date = self.epoch.checked_add(Duration::from_nanos(at));
        date.unwrap_or(Timestamp::MAX)
    }

    fn file_error(&self, error: std::io::Error) -> ObserveError {
        let path = self.path.clone();
        FileError::Write { path, error }.into()
    }

    /// An actor has appeared.
    pub(crate) fn node(&mut self, at: u64, placed: &Placed) -> Result<(), ObserveError> {
        if let Some(&number) = self.numbers.get(&placed.name) {
            self.nodes[number as usize].alive += 1;
            return Ok(());
        }
        let number = u32::try_from(self.nodes.len()).expect("fewer nodes than actors");
        self.numbers.insert(Arc::clone(&placed.name), number);
        self.nodes.push(NodeState {
            name: Arc::clone(&placed.name),
            alive: 1,
        });
        let date = self.date(at);
        if let Some(gathered) = &mut self.gathered {
            gathered.node(at, placed);
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.node(date, placed);
        }
        let Some(json) = &mut self.json else {
            return Ok(());
        };
        let (name, package) = (Arc::clone(&placed.name), Arc::clone(&placed.package));
        let written = json.node(date, name, package, placed.address);
        written.map_err(|error| self.file_error(error))
    }

    /// The number of a node, which is made if it has not appeared.
    fn number(&mut self, at: u64, placed: &Placed) -> Result<u32, ObserveError> {
        if !self.numbers.contains_key(&placed.name) {
            self.node(at, placed)?;
        }
        Ok(self.numbers[&placed.name])
    }

    /// An actor knows another.
    pub(crate) fn edge(
        &mut self,
        at: u64,
        source: &Placed,
        target: &Placed,
    ) -> Result<(), ObserveError> {
        let ends = (self.number(at, source)?, self.number(at, target)?);
        if let Some(known) = self.edges.get_mut(&ends) {
            known.held += 1;
            return Ok(());
        }
        self.edges_made += 1;
        let number = self.edges_made;
        self.edges.insert(ends, EdgeState { number, held: 1 });
        let date = self.date(at);
        if let Some(gathered) = &mut self.gathered {
            gathered.edge(at, number, ends);
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.edge(date, number, &source.name, &target.name);
        }
        let Some(json) = &mut self.json else {
            return Ok(());
        };
        let (source, target) = (Arc::clone(&source.name), Arc::clone(&target.name));
        let written = json.edge(date, number, source, target);
        written.map_err(|error| self.file_error(error))
    }

    /// An actor does not know another any longer. Forgetting what was not known does nothing.
    pub(crate) fn forget(
        &mut self,
        at: u64,
        source: &Placed,
        target: &Placed,
    ) -> Result<(), ObserveError> {
        let ends = (self.number(at, source)?, self.number(at, target)?);
        let Some(known) = self.edges.get_mut(&ends) else {
            return Ok(());
        };
        known.held -= 1;
        if known.held > 0 {
            return Ok(());
        }
        let number = known.number;
        self.edges.remove(&ends);
        let date = self.date(at);
        if let Some(gathered) = &mut self.gathered {
            gathered.forget(at, number);
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.forget(number, &source.name, &target.name);
        }
        let Some(json) = &mut self.json else {
            return Ok(());
        };
        let (source, target) = (Arc::clone(&source.name), Arc::clone(&target.name));
        let written = json.forget(date, number, source, target);
        written.map_err(|error| self.file_error(error))
    }

    /// An actor has ended.
    pub(crate) fn done(
        &mut self,
        at: u64,
        placed: &Placed,
        exit: Exit,
    ) -> Result<(), ObserveError> {
        let number = self.number(at, placed)?;
        let node = &mut self.nodes[number as usize];
        node.alive = node.alive.saturating_sub(1);
        if node.alive > 0 {
            return Ok(());
        }
        let name = Arc::clone(&node.name);
        let date = self.date(at);
        if let Some(gathered) = &mut self.gathered {
            gathered.done(at, number);
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.done(date, exit, &name);
        }
        let Some(json) = &mut self.json else {
            return Ok(());
        };
        let written = json.done(date, name, exit);
        written.map_err(|error| self.file_error(error))
    }

    /// The run is over: writes what was kept back.
    pub(crate) fn end(&mut self) -> Result<(), ObserveError> {
        if let Some(json) = &mut self.json {
            let ended = json.end();
            ended.map_err(|error| self.file_error(error))?;
        }
        if let Some(gathered) = &self.gathered {
            for (format, file) in &mut self.markup {
                let mut out = BufWriter::new(file.writer());
                let written = match format {
                    GraphFormat::Gexf => markup::gexf(&mut out, gathered, &self.arch),
                    _ => markup::graphml(&mut out, gathered),
                };
                let written = written.and_then(|()| out.flush());
                drop(out);
                written.map_err(|error| file.failed(error))?;
            }
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.end();
        }
        Ok(())
    }

    /// Puts the files in their places.
    pub(crate) fn finish(
        self,
        files: &mut Vec<WrittenFile>,
        losses: &mut Vec<Loss>,
    ) -> Result<(), ObserveError> {
        let mut put = |file: Replacement, count, unit| {
            let path = file.path().to_owned();
            file.finish().map(|()| {
                files.push(WrittenFile { path, count, unit });
            })
        };
        if let Some(json) = self.json {
            let events = json.events();
            put(json.into_inner(), events, "events")?;
        }
        for (_, file) in self.markup {
            put(file, self.nodes.len() as u64, "nodes")?;
        }
        losses.extend(self.neo4j.and_then(Neo4jGraph::finish));
        Ok(())
    }
}
