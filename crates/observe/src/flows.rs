//! Flows: the paths of requests through services, as spans.
//!
//! The two ends of an exchange are recorded separately, and [`join`] combines them. Complete spans are written in
//! batches during the run, to files and to other systems. A batch is written when it has a fixed number of spans, so
//! the files do not depend on how often the run flushes them.

mod format;
mod join;
mod otlp;
mod outlet;
mod seen;
pub(crate) mod span;
mod span_format;
mod zipkin;

use crate::directory::Directory;
use crate::graph::GraphSink;
use crate::json_array::Marshal;
use crate::observed::{OutputSummary, WrittenFile};
use crate::recorder::record::Annotation;
use crate::{ObserveError, ResumePoint, SavedOutputs, Settings, Status, TraceContext};
pub use format::FlowFormat;
use join::Join;
use outlet::{Outlet, SavedOutlet};
use seen::EachSpan;
pub use seen::SeenSpan;
use serde::{Deserialize, Serialize};
use span::{Names, Span};

/// The number of spans that are written at once.
const BATCH: usize = 4096;

/// All flows of a run.
#[derive(Debug)]
pub(crate) struct Flows {
    join: Join,
    /// Spans that wait until their batch is full.
    ready: Vec<Span>,
    outlets: Vec<Outlet>,
    each: Option<EachSpan>,
    marshal: Marshal,
    kinds: &'static [&'static str],
    operations: Vec<String>,
    /// The wall-clock time at which virtual time begins, in microseconds and in nanoseconds.
    epoch: i128,
    spans: u64,
    incomplete: u64,
}

/// The serialized form of all flows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedFlows {
    open: Vec<Span>,
    order: Vec<u64>,
    ready: Vec<Span>,
    /// The files, in the order of the settings.
    outlets: Vec<SavedOutlet>,
    spans: u64,
    incomplete: u64,
}

impl Flows {
    /// Opens the outputs that the settings request; returns `None` if they request no flows. `resumed` is the state of
    /// a saved run that the flows continue.
    pub(crate) fn open(
        settings: &mut Settings,
        resumed: Option<(&ResumePoint, SavedFlows)>,
    ) -> Result<Option<Flows>, ObserveError> {
        let mut outlets = Vec::new();
        for (place, &format) in settings.flows.iter().enumerate() {
            let file = resumed.as_ref().and_then(|(resumed, saved)| {
                let outlet = saved.outlets.get(place)?;
                Some((*resumed, outlet.clone()))
            });
            outlets.push(Outlet::file(settings, format, file)?);
        }
        if let Some(address) = &settings.kafka {
            outlets.push(Outlet::kafka(address)?);
        }
        if let Some(url) = &settings.otlp {
            outlets.push(Outlet::collector(url, FlowFormat::Otlp)?);
        }
        if let Some(url) = &settings.zipkin {
            outlets.push(Outlet::collector(url, FlowFormat::ZipkinV2)?);
        }
        let to_database = settings.neo4j.as_ref().is_some_and(|neo4j| neo4j.flows);
        let each = settings.spans.take().map(EachSpan);
        let is_wanted = to_database || each.is_some() || !outlets.is_empty();
        let saved = resumed.map(|(_, saved)| saved).unwrap_or_default();
        let mut join = Join::default();
        join.resume((saved.open, saved.order));
        let mut ready = Vec::with_capacity(BATCH);
        ready.extend(saved.ready);
        Ok(is_wanted.then(|| Flows {
            join,
            ready,
            outlets,
            each,
            marshal: Marshal::with(settings.workers),
            kinds: settings.kinds,
            operations: settings.operations.clone(),
            epoch: settings.epoch.as_nanosecond(),
            spans: saved.spans,
            incomplete: saved.incomplete,
        }))
    }

    /// Returns the number of bytes written to files.
    pub(crate) fn bytes(&self) -> u64 {
        self.outlets.iter().map(Outlet::bytes).sum()
    }

    /// Returns the state from which a resumed run continues these files. `to` receives the files.
    pub(crate) fn save(&mut self, to: &mut SavedOutputs) -> Result<SavedFlows, ObserveError> {
        let (open, order) = self.join.save();
        let mut saved = SavedFlows {
            open,
            order,
            ready: self.ready.clone(),
            outlets: Vec::new(),
            spans: self.spans,
            incomplete: self.incomplete,
        };
        to.spans = self.spans;
        for outlet in &mut self.outlets {
            let (outlet, output) = outlet.save()?;
            saved.outlets.push(outlet);
            to.files.push(output);
        }
        Ok(saved)
    }

    /// Adds one end of an exchange. `graph` is the database, if it also gets flows.
    pub(crate) fn annotate(
        &mut self,
        directory: &Directory,
        graph: Option<&mut GraphSink>,
        end: &End,
    ) -> Result<(), ObserveError> {
        self.join.annotate(end, &mut self.ready);
        match self.ready.len() < BATCH {
            true => Ok(()),
            false => self.write(directory, graph),
        }
    }

    /// Ends the run: incomplete spans are written without their missing times.
    pub(crate) fn end(
        &mut self,
        directory: &Directory,
        graph: Option<&mut GraphSink>,
    ) -> Result<(), ObserveError> {
        self.join.end(&mut self.ready);
        self.write(directory, graph)?;
        for outlet in &mut self.outlets {
            outlet.end()?;
        }
        Ok(())
    }

    /// Writes all spans that are ready, one batch at a time.
    pub(crate) fn write(
        &mut self,
        directory: &Directory,
        mut graph: Option<&mut GraphSink>,
    ) -> Result<(), ObserveError> {
        let names = Names {
            directory,
            kinds: self.kinds,
            operations: &self.operations,
            epoch: self.epoch,
        };
        for batch in self.ready.chunks(BATCH) {
            self.spans += batch.len() as u64;
            self.incomplete += batch.iter().filter(|span| !span.is_complete()).count() as u64;
            if let Some(each) = &mut self.each {
                batch.iter().for_each(|span| each.tell(&names, span));
            }
            for outlet in &mut self.outlets {
                outlet.write(&self.marshal, &names, batch)?;
            }
            if let Some(graph) = &mut graph {
                graph.flows(&names, batch);
            }
        }
        self.ready.clear();
        Ok(())
    }

    /// Completes the files, and waits until other systems have received their spans.
    pub(crate) fn finish(self, observed: &mut OutputSummary) -> Result<(), ObserveError> {
        observed.spans = self.spans;
        observed.incomplete = self.incomplete;
        for outlet in self.outlets {
            let (file, loss) = outlet.finish(self.spans)?;
            observed.files.extend(file.map(|path| WrittenFile {
                path,
                count: self.spans,
                unit: "spans",
            }));
            observed.losses.extend(loss);
        }
        Ok(())
    }
}

/// One end of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) at: u64,
    pub(crate) actor: u32,
    pub(crate) context: TraceContext,
    pub(crate) kind: u16,
    pub(crate) annotation: Annotation,
    pub(crate) status: Status,
}
