//! The outputs of ordered records.

use super::saved::SavedState;
use crate::directory::{ActorIdentity, Directory, NodeRecord};
use crate::flows::{End, Flows};
use crate::graph::GraphSink;
use crate::recorder::record::{Record, RecordedEvent};
use crate::times::SavedTimes;
use crate::{
    Clock, Node, ObserveError, OutputSummary, Payload, Population, SavedOutputs, Settings,
};
use corsair::Time;
use std::fmt;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time after which an incomplete batch of spans is sent, if the run uses the wall clock.
const PROMPT: Duration = Duration::from_secs(1);

/// The times of services by their names.
pub(crate) type MeasuredBefore = Vec<(String, SavedTimes)>;

/// All outputs of a run.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    directory: Directory,
    graph: Option<GraphSink>,
    flows: Option<Flows>,
    log: Option<Log>,
    /// The wall-clock time at which spans were last sent.
    sent: Option<Instant>,
}

/// The log of messages.
struct Log {
    out: BufWriter<Box<dyn Write + Send>>,
    kinds: &'static [&'static str],
    /// The number of lines in the log.
    lines: u64,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    fn message(
        &mut self,
        at: u64,
        to: &ActorIdentity,
        from: &ActorIdentity,
        kind: u16,
        payload: &Payload,
        directory: &mut Directory,
    ) -> Result<(), ObserveError> {
        let kind = self.kinds.get(usize::from(kind));
        let kind = kind.copied().unwrap_or("unknown");
        let (at, to, from) = (Time::from_nanos(at), to.name(), from.name());
        match payload {
            Payload::Text(text) => self.line(format_args!("{at} {to} {from} {kind} {text}")),
            Payload::Number(number) => self.line(format_args!("{at} {to} {from} {kind} {number}")),
            Payload::Millis(millis) => {
                self.line(format_args!("{at} {to} {from} {kind} {millis}ms"))
            }
            Payload::Actor(actor) => {
                let named = directory.named(actor.as_u32());
                self.line(format_args!("{at} {to} {from} {kind} {}", named.name()))
            }
        }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> Result<(), ObserveError> {
        self.lines += 1;
        writeln!(self.out, "{line}").map_err(ObserveError::Messages)
    }
}

impl Sinks {
    /// Opens the configured outputs. Returns them with the measurements of a saved run.
    pub(crate) fn open(settings: &mut Settings) -> Result<(Sinks, MeasuredBefore), ObserveError> {
        let resumed = settings.resumed.take();
        let saved = resumed.as_ref().map(SavedState::read).transpose()?;
        let (mut directory, mut graph, mut flows) = (Directory::of(&settings.places), None, None);
        let (mut lines, mut times) = (0, Vec::new());
        if let (Some(resumed), Some(saved)) = (&resumed, saved) {
            let population = resumed.population.as_ref();
            directory = Directory::resume(&settings.places, saved.directory, population);
            graph = saved.graph.map(|saved| (resumed, saved, &mut directory));
            flows = saved.flows.map(|saved| (resumed, saved));
            (lines, times) = (saved.lines, saved.times);
        }
        let sinks = Sinks {
            graph: GraphSink::open(settings, graph)?,
            flows: Flows::open(settings, flows)?,
            log: settings.messages.take().map(|out| Log {
                out: BufWriter::with_capacity(1 << 16, out),
                kinds: settings.kinds,
                lines,
            }),
            sent: matches!(settings.clock, Clock::Wall).then(Instant::now),
            directory,
        };
        Ok((sinks, times))
    }

    /// Returns the number of bytes of graphs and flows written so far.
    pub(crate) fn bytes(&self) -> u64 {
        let graph = self.graph.as_ref().map_or(0, GraphSink::bytes);
        graph + self.flows.as_ref().map_or(0, Flows::bytes)
    }

    /// Writes all records so far, and saves the state. `to` receives the files.
    pub(crate) fn save(&mut self, to: &mut SavedOutputs) -> Result<SavedState, ObserveError> {
        let mut saved = SavedState {
            directory: self.directory.save(),
            ..SavedState::default()
        };
        if let Some(graph) = &mut self.graph {
            saved.graph = Some(graph.save(to)?);
        }
        if let Some(flows) = &mut self.flows {
            saved.flows = Some(flows.save(to)?);
        }
        if let Some(log) = &mut self.log {
            log.out.flush().map_err(ObserveError::Messages)?;
            saved.lines = log.lines;
        }
        Ok(saved)
    }

    /// Writes the next records, in their order.
    pub(crate) fn write(
        &mut self,
        records: impl Iterator<Item = Record>,
    ) -> Result<(), ObserveError> {
        for record in records {
            self.record(record)?;
        }
        if let (Some(sent), Some(flows)) = (&mut self.sent, &mut self.flows)
            && sent.elapsed() >= PROMPT
        {
            *sent = Instant::now();
            flows.write(&self.directory, self.graph.as_mut())?;
        }
        Ok(())
    }

    fn record(&mut self, Record { at, actor, what }: Record) -> Result<(), ObserveError> {
        match what {
            RecordedEvent::Span {
                context,
                kind,
                annotation,
                status,
            } => {
                let end = End {
                    at,
                    actor,
                    context,
                    kind,
                    annotation,
                    status,
                };
                let flows = self.flows.as_mut();
                let graph = self.graph.as_mut();
                flows.map_or(Ok(()), |flows| flows.annotate(&self.directory, graph, &end))
            }
            RecordedEvent::Node(node) => self.node(at, actor, *node),
            RecordedEvent::Population { count, population } => {
                self.population(at, actor, count, population)
            }
            RecordedEvent::Name(name) => {
                self.directory.call(actor, &name);
                Ok(())
            }
            RecordedEvent::Edge(target) => {
                let Some(graph) = &mut self.graph else {
                    return Ok(());
                };
                let (source, target) = (self.directory.named(actor), self.directory.named(target));
                graph.edge(at, &source, &target)
            }
            RecordedEvent::Forget(target) => {
                let Some(graph) = &mut self.graph else {
                    return Ok(());
                };
                let (source, target) = (self.directory.named(actor), self.directory.named(target));
                graph.forget(at, &source, &target)
            }
            RecordedEvent::Done(exit) => {
                let graph = self.graph.as_mut();
                let actor = self.directory.named(actor);
                graph.map_or(Ok(()), |graph| graph.done(at, &actor, exit))
            }
            RecordedEvent::Message {
                sender,
                kind,
                payload,
            } => {
                let Some(log) = &mut self.log else {
                    return Ok(());
                };
                let (to, from) = (self.directory.named(actor), self.directory.named(sender));
                log.message(at, &to, &from, kind, &payload, &mut self.directory)
            }
            RecordedEvent::Note(line) => {
                let log = self.log.as_mut();
                log.map_or(Ok(()), |log| log.line(format_args!("{line}")))
            }
        }
    }

    fn node(&mut self, at: u64, actor: u32, node: Node) -> Result<(), ObserveError> {
        let placed = self.directory.add(actor, node);
        let graph = self.graph.as_mut();
        graph.map_or(Ok(()), |graph| graph.node(at, &placed))
    }

    fn population(
        &mut self,
        at: u64,
        first: u32,
        count: u32,
        population: Arc<dyn Population>,
    ) -> Result<(), ObserveError> {
        if self.flows.is_some() {
            // Spans contain the endpoints of their actors, so the members are stored individually.
            let mut members = first..first.saturating_add(count);
            return members
                .try_for_each(|actor| self.node(at, actor, population.node(actor - first)));
        }
        let graph = &mut self.graph;
        let write = |node: Node, address| {
            graph.as_mut().map_or(Ok(()), |graph| {
                let shown = NodeRecord::of(&node, address);
                graph.write_node(at, &shown, shown.name.into(), shown.package.into())
            })
        };
        let members = self
            .directory
            .add_population(first, count, population, write)?;
        if let Some(graph) = &mut self.graph {
            graph.population(at, members);
        }
        Ok(())
    }

    /// Ends the run: writes deferred output.
    pub(crate) fn end(&mut self) -> Result<(), ObserveError> {
        if let Some(flows) = &mut self.flows {
            flows.end(&self.directory, self.graph.as_mut())?;
        }
        if let Some(graph) = &mut self.graph {
            graph.end()?;
        }
        if let Some(log) = &mut self.log {
            log.out.flush().map_err(ObserveError::Messages)?;
        }
        Ok(())
    }

    /// Completes the files.
    pub(crate) fn finish(self) -> Result<OutputSummary, ObserveError> {
        let mut observed = OutputSummary::default();
        if let Some(graph) = self.graph {
            graph.finish(&mut observed.files, &mut observed.losses)?;
        }
        if let Some(flows) = self.flows {
            flows.finish(&mut observed)?;
        }
        Ok(observed)
    }
}
