//! Where ordered records go.

use super::Observed;
use crate::directory::Directory;
use crate::flows::{End, Flows};
use crate::graph::GraphSink;
use crate::recorder::Wanted;
use crate::recorder::record::{Record, What};
use crate::{Clock, ObserveError, Settings};
use corsair::Time;
use std::fmt;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

/// On the wall clock, spans go out after this time even if their batch is not full.
const PROMPT: Duration = Duration::from_secs(1);

/// All that is written about a run.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    directory: Directory,
    graph: Option<GraphSink>,
    flows: Option<Flows>,
    log: Option<Log>,
    /// When spans last went out, if that matters.
    sent: Option<Instant>,
}

/// The log of messages.
struct Log {
    out: BufWriter<Box<dyn Write + Send>>,
    kinds: &'static [&'static str],
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Sinks {
    /// Opens what the settings ask for.
    pub(crate) fn open(settings: &mut Settings) -> Result<Sinks, ObserveError> {
        Ok(Sinks {
            directory: Directory::default(),
            graph: GraphSink::open(settings)?,
            flows: Flows::open(settings)?,
            log: settings.messages.take().map(|out| Log {
                out: BufWriter::with_capacity(1 << 16, out),
                kinds: settings.kinds,
            }),
            sent: matches!(settings.clock, Clock::Wall).then(Instant::now),
        })
    }

    /// Which records these sinks want.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            graph: self.graph.is_some(),
            flows: self.flows.is_some(),
            times: false,
            messages: self.log.is_some(),
        }
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
            flows.write(&self.directory)?;
        }
        Ok(())
    }

    fn record(&mut self, Record { at, actor, what }: Record) -> Result<(), ObserveError> {
        match (what, &mut self.graph, &mut self.flows, &mut self.log) {
            (
                What::Span {
                    context,
                    kind,
                    annotation,
                    status,
                },
                _,
                Some(flows),
                _,
            ) => {
                let end = End {
                    at,
                    actor,
                    context,
                    kind,
                    annotation,
                    status,
                };
                flows.annotate(&self.directory, &end)
            }
            (What::Node(node), graph, ..) => {
                let placed = self.directory.add(actor, *node);
                graph
                    .as_mut()
                    .map_or(Ok(()), |graph| graph.node(at, &placed))
            }
            (What::Name(name), ..) => {
                self.directory.call(actor, &name);
                Ok(())
            }
            (What::Edge(target), Some(graph), ..) => {
                let ends = (self.directory.named(actor), self.directory.named(target));
                graph.edge(at, &ends.0, &ends.1)
            }
            (What::Forget(target), Some(graph), ..) => {
                let ends = (self.directory.named(actor), self.directory.named(target));
                graph.forget(at, &ends.0, &ends.1)
            }
            (What::Done(exit), Some(graph), ..) => {
                graph.done(at, &self.directory.named(actor), exit)
            }
            (
                What::Message {
                    sender,
                    kind,
                    payload,
                },
                _,
                _,
                Some(log),
            ) => {
                let (to, from) = (self.directory.named(actor), self.directory.named(sender));
                let kind = log
                    .kinds
                    .get(usize::from(kind))
                    .copied()
                    .unwrap_or("unknown");
                let at = Time::from_nanos(at);
                let line = format_args!("{at} {} {} {kind} {payload}\n", to.name, from.name);
                log.out.write_fmt(line).map_err(ObserveError::Messages)
            }
            _ => Ok(()),
        }
    }

    /// The run is over: writes what was kept back.
    pub(crate) fn end(&mut self) -> Result<(), ObserveError> {
        if let Some(graph) = &mut self.graph {
            graph.end()?;
        }
        if let Some(flows) = &mut self.flows {
            flows.end(&self.directory)?;
        }
        if let Some(log) = &mut self.log {
            log.out.flush().map_err(ObserveError::Messages)?;
        }
        Ok(())
    }

    /// Puts the files in their places.
    pub(crate) fn finish(self) -> Result<Observed, ObserveError> {
        let mut observed = Observed::default();
        if let Some(graph) = self.graph {
            graph.finish(&mut observed.files, &mut observed.losses)?;
        }
        if let Some(flows) = self.flows {
            flows.finish(&mut observed)?;
        }
        Ok(observed)
    }
}
