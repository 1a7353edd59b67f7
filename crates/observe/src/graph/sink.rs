//! Writes all graphs of a run from the same records.

use super::edge_intervals::EdgeIntervals;
use super::markup::{self, GraphHistory, SavedMarkup};
use super::neo4j::Neo4jGraph;
use super::network::{Network, SavedNetwork};
use super::writer::{GraphWriter, Header};
use crate::counted::CountingWriter;
use crate::directory::{ActorIdentity, Directory, Members, NodeIdentity, NodeRecord};
use crate::flows::span::{Names, Span};
use crate::observed::WrittenFile;
use crate::resumed::ContinuedFile;
use crate::{
    Exit, FileError, GraphFormat, Loss, ObserveError, Replacement, ResumePoint, SavedOutputs,
    Settings,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All graphs of a run.
#[derive(Debug)]
pub(crate) struct GraphSink {
    epoch: Timestamp,
    network: Network,
    json: Option<GraphWriter<CountingWriter<Replacement>>>,
    gathered: Option<GraphHistory>,
    markup: Vec<(GraphFormat, Replacement)>,
    neo4j: Option<Neo4jGraph>,
    arch: String,
    /// The final path of the JSON graph.
    path: PathBuf,
}

/// The serialized form of all graphs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedGraph {
    network: SavedNetwork,
    /// The JSON file, and the number of its events.
    json: Option<(ContinuedFile, u64)>,
    markup: Option<SavedMarkup>,
}

impl GraphSink {
    /// Opens the graphs that the settings request; returns `None` if they request no graphs.
    /// `resumed` is the state of a saved run that the graphs continue, with its nodes.
    pub(crate) fn open(
        settings: &Settings,
        resumed: Option<(&ResumePoint, SavedGraph, &mut Directory)>,
    ) -> Result<Option<GraphSink>, ObserveError> {
        if settings.graphs.is_empty() && settings.neo4j.is_none() {
            return Ok(None);
        }
        let (mut begun, mut saved_network, mut gathered_before) = (None, None, None);
        if let Some((resumed, saved, directory)) = resumed {
            begun = saved.json.map(|(file, events)| (resumed, file, events));
            saved_network = Some(saved.network);
            gathered_before = saved.markup.map(|saved| (saved, resumed, directory));
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
                    let mut file = CountingWriter::new(file);
                    if let Some((resumed, begun, events)) = begun.take() {
                        begun.write(resumed, &mut file)?;
                        json = Some(GraphWriter::resume(file, events));
                        continue;
                    }
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
        let mut gathered = match markup.first() {
            Some((_, file)) => Some(GraphHistory::new(EdgeIntervals::begin(file.path())?)),
            None => None,
        };
        if let (Some(gathered), Some((saved, resumed, directory))) =
            (&mut gathered, gathered_before)
        {
            gathered.resume(saved, resumed, directory)?;
        }
        let neo4j = settings.neo4j.as_ref();
        let neo4j = neo4j
            .map(|database| Neo4jGraph::connect(database, &stem))
            .transpose()?;
        Ok(Some(GraphSink {
            epoch: settings.epoch,
            network: saved_network.map_or_else(Network::default, Network::resume),
            json,
            gathered,
            markup,
            neo4j,
            arch: settings.arch.clone(),
            path,
        }))
    }

    /// Writes all events so far, and saves the state. `to` receives the files.
    pub(crate) fn save(&mut self, to: &mut SavedOutputs) -> Result<SavedGraph, ObserveError> {
        if self.neo4j.is_some() {
            return Err(ObserveError::NotSaved("a graph in a database"));
        }
        let json = match &mut self.json {
            Some(json) => {
                let events = json.events();
                let out = json.write_all().map_err(|error| FileError::Write {
                    path: self.path.clone(),
                    error,
                })?;
                let (begun, output) = ContinuedFile::of("graph.json", out)?;
                to.files.push(output);
                Some((begun, events))
            }
            None => None,
        };
        let markup = match &mut self.gathered {
            Some(gathered) => {
                let (saved, copy) = gathered.save()?;
                to.copies.push(copy);
                Some(saved)
            }
            None => None,
        };
        Ok(SavedGraph {
            network: self.network.save(),
            json,
            markup,
        })
    }

    /// Returns the number of bytes of the JSON graph written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.json.as_ref().map_or(0, |json| json.out().bytes())
    }

    /// Returns the date of a time. For a time beyond the last possible date, returns the last possible date.
    fn date(&self, at: u64) -> Timestamp {
        let date = self.epoch.checked_add(Duration::from_nanos(at));
        date.unwrap_or(Timestamp::MAX)
    }

    /// Calls a function with the JSON graph, if there is one.
    fn json(
        &mut self,
        write: impl FnOnce(&mut GraphWriter<CountingWriter<Replacement>>) -> io::Result<()>,
    ) -> Result<(), ObserveError> {
        let Some(json) = &mut self.json else {
            return Ok(());
        };
        let path = || self.path.clone();
        write(json).map_err(|error| {
            FileError::Write {
                path: path(),
                error,
            }
            .into()
        })
    }

    /// Writes an actor that has appeared.
    pub(crate) fn node(&mut self, at: u64, placed: &Arc<NodeIdentity>) -> Result<(), ObserveError> {
        if self.network.node(&placed.name).is_none() {
            return Ok(());
        }
        if let Some(gathered) = &mut self.gathered {
            gathered.node(at, placed);
        }
        let shown = placed.shown();
        self.write_node(
            at,
            &shown,
            Arc::clone(&placed.name),
            Arc::clone(&placed.package),
        )
    }

    /// Writes the members of a population that have appeared.
    pub(crate) fn population(&mut self, at: u64, members: &Members) {
        self.network.population(members.count);
        if let Some(gathered) = &mut self.gathered {
            gathered.population(at, members);
        }
    }

    /// Writes a node, with the name and package of `shown`.
    pub(crate) fn write_node(
        &mut self,
        at: u64,
        shown: &NodeRecord<'_>,
        name: Arc<str>,
        package: Arc<str>,
    ) -> Result<(), ObserveError> {
        let date = self.date(at);
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.node(date, shown);
        }
        self.json(|json| json.node(date, name, package, shown.address))
    }

    /// Sends completed exchanges to the database, if it accepts flows.
    pub(crate) fn flows(&mut self, names: &Names<'_>, spans: &[Span]) {
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.flows(names, spans);
        }
    }

    /// Returns the number of an actor's node. A node that has not appeared is created.
    fn number(&mut self, at: u64, actor: &ActorIdentity) -> Result<u32, ObserveError> {
        if let (None, ActorIdentity::Placed(placed)) = (self.network.number(actor), actor) {
            self.node(at, placed)?;
        }
        let number = self.network.number(actor);
        Ok(number.expect("the node has just been made"))
    }

    /// Writes that an actor knows another.
    pub(crate) fn edge(
        &mut self,
        at: u64,
        source: &ActorIdentity,
        target: &ActorIdentity,
    ) -> Result<(), ObserveError> {
        let (from, to) = (self.number(at, source)?, self.number(at, target)?);
        let once = matches!(source, ActorIdentity::Member { .. });
        let Some(edge) = self.network.edge(from, to, once)? else {
            return Ok(());
        };
        let date = self.date(at);
        if let Some(gathered) = &mut self.gathered {
            gathered.edge(at, &edge)?;
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.edge(date, edge.number, source.name(), target.name());
        }
        let (source, target) = (Arc::clone(source.name()), Arc::clone(target.name()));
        self.json(|json| json.edge(date, edge.number, source, target))
    }

    /// Removes an edge. Removing an unknown edge does nothing.
    pub(crate) fn forget(
        &mut self,
        at: u64,
        source: &ActorIdentity,
        target: &ActorIdentity,
    ) -> Result<(), ObserveError> {
        let (from, to) = (self.number(at, source)?, self.number(at, target)?);
        let Some(edge) = self.network.forget(from, to) else {
            return Ok(());
        };
        let date = self.date(at);
        if let Some(gathered) = &mut self.gathered {
            gathered.forget(at, &edge)?;
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.forget(edge.number, source.name(), target.name());
        }
        let (source, target) = (Arc::clone(source.name()), Arc::clone(target.name()));
        self.json(|json| json.forget(date, edge.number, source, target))
    }

    /// Writes the end of an actor.
    pub(crate) fn done(
        &mut self,
        at: u64,
        actor: &ActorIdentity,
        exit: Exit,
    ) -> Result<(), ObserveError> {
        self.number(at, actor)?;
        let Some(number) = self.network.done(actor) else {
            return Ok(());
        };
        let date = self.date(at);
        if let Some(gathered) = &mut self.gathered {
            gathered.done(at, number);
        }
        if let Some(neo4j) = &mut self.neo4j {
            neo4j.done(date, exit, actor.name());
        }
        let name = Arc::clone(actor.name());
        self.json(|json| json.done(date, name, exit))
    }

    /// Ends the run: writes deferred output.
    pub(crate) fn end(&mut self) -> Result<(), ObserveError> {
        self.json(GraphWriter::end)?;
        if let Some(gathered) = &mut self.gathered {
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

    /// Completes the files.
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
            put(json.into_inner().into_inner(), events, "events")?;
        }
        for (_, file) in self.markup {
            put(file, self.network.nodes().into(), "nodes")?;
        }
        losses.extend(self.neo4j.and_then(Neo4jGraph::finish));
        Ok(())
    }
}
