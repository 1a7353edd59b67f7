//! Records the events of actors while they run. Recording is cheap, and possible on any thread.
//!
//! Each thread writes to one of a fixed number of lanes. The lock of a lane is usually uncontended: only this thread
//! takes it, and the [`Observer`](crate::Observer) takes it a few hundred times per second. Recording formats, hashes
//! and counts nothing.
//!
//! # Order
//! In virtual time the output is ordered by time, then by actor, then in the actor's own order. At one instant, nodes
//! precede all other records. This order needs no shared counter: an actor runs on one shard, so all its records are in
//! one lane in order, and a stable sort by time and actor is enough. Records that are earlier than the current window
//! ([`corsair::Progress::time`]) may be sorted, because all shards have finished with that time. A record may have a
//! future time, for example if a server knows when it will answer. Such a record is written when that time has come.
//!
//! On the wall clock, a record may arrive after a record with a later time. So the observer does not write the records
//! that it finds in the lanes until it has looked through all lanes once more. Then it writes them in the order of
//! time. So two records are written in the order in which they were made, unless the first one has the later time.
//!
//! # Memory
//! When more than [`BACKLOG`] records have not been written, a thread that starts its next block of [`BLOCK`] records
//! waits until the observer has written them. In virtual time only records that are earlier than the current window can
//! be written, so a thread never waits for its own window: the bound is [`BACKLOG`] plus one window's records.

pub(crate) mod lane;
pub(crate) mod record;

use crate::times::Times;
use crate::{
    Exchange, Exit, Node, ObserveError, Population, SavedOutputs, Settings, Status, TraceContext,
};
use corsair::{Addr, AddrRange, Progress, Time};
use lane::Lanes;
use record::{Annotation, RecordedEvent};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

#[cfg(doc)]
use lane::{BACKLOG, BLOCK};

/// The clock of a run, which determines when records may be written.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Virtual time. The run reports its current time through the progress in its [`Config`](corsair::Config).
    Virtual(Progress),
    /// The wall clock. Records may be written as soon as they are received.
    Wall,
}

/// A measured service. The number is an index into the services of [`Recorder::service`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ServiceId(pub(crate) u16);

/// The kind of a time measured at a service. Times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// The time from sending a request to receiving its response, at the client.
    Response,
    /// The time from receiving a request to sending the response, at the server.
    Service,
    /// The time from sending a message to receiving it.
    Network,
    /// The travel time of a request and of its response.
    RoundTrip,
}

impl Metric {
    /// All metrics, in the order of files and tables.
    pub const ALL: [Metric; 4] = [
        Metric::Response,
        Metric::Service,
        Metric::Network,
        Metric::RoundTrip,
    ];

    /// Returns the name in file names and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Response => "response",
            Metric::Service => "service",
            Metric::Network => "network",
            Metric::RoundTrip => "round_trip",
        }
    }
}

/// The contents of a message in the log of messages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Payload {
    /// A text.
    Text(Box<str>),
    /// A number.
    Number(u64),
    /// A number of milliseconds.
    Millis(u64),
    /// The name of an actor.
    Actor(Addr),
}

impl From<String> for Payload {
    fn from(text: String) -> Payload {
        Payload::Text(text.into_boxed_str())
    }
}

/// The interface through which actors record what happens. Clones report to the same observer; a clone is one pointer.
///
/// A recorder without an observer ([`Recorder::off`], the default) does nothing. A call also does nothing if no output
/// needs this kind of record. So an actor needs to check with a `wants_` method only if the arguments are expensive to
/// compute.
#[derive(Clone, Default)]
pub struct Recorder(Option<Arc<Lanes>>);

/// The kinds of records that an output needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordKinds {
    pub(crate) graph: bool,
    pub(crate) flows: bool,
    pub(crate) times: bool,
    pub(crate) messages: bool,
}

impl RecordKinds {
    /// Returns the kinds of records that these settings need.
    pub(crate) fn of(settings: &Settings) -> RecordKinds {
        let Settings {
            flows,
            kafka,
            otlp,
            zipkin,
            spans,
            neo4j,
            ..
        } = settings;
        let sent = [kafka, otlp, zipkin].iter().any(|to| to.is_some());
        let to_database = neo4j.as_ref().is_some_and(|neo4j| neo4j.flows);
        RecordKinds {
            graph: !settings.graphs.is_empty() || neo4j.is_some(),
            flows: !flows.is_empty() || sent || spans.is_some() || to_database,
            times: settings.times || settings.metrics.is_some(),
            messages: settings.messages.is_some(),
        }
    }

    /// Returns true if an output needs any records.
    pub(crate) fn any(&self) -> bool {
        self.names() || self.times
    }

    /// Returns true if a needed record names an actor.
    fn names(&self) -> bool {
        self.graph || self.flows || self.messages
    }
}

impl Recorder {
    /// Returns a recorder that discards all records.
    pub const fn off() -> Recorder {
        Recorder(None)
    }

    pub(crate) const fn on(lanes: Arc<Lanes>) -> Recorder {
        Recorder(Some(lanes))
    }

    #[inline]
    fn wanted(&self) -> RecordKinds {
        self.0
            .as_ref()
            .map_or(RecordKinds::default(), |lanes| lanes.wanted)
    }

    /// Returns true if an output needs edges.
    #[inline]
    pub fn wants_graph(&self) -> bool {
        self.wanted().graph
    }

    /// Returns true if an output needs spans.
    #[inline]
    pub fn wants_flows(&self) -> bool {
        self.wanted().flows
    }

    /// Returns true if an output needs times.
    #[inline]
    pub fn wants_times(&self) -> bool {
        self.wanted().times
    }

    /// Returns true if an output needs a line for each message.
    #[inline]
    pub fn wants_messages(&self) -> bool {
        self.wanted().messages
    }

    /// Records that an actor has appeared. Call this method before any record that names the actor, or at the same
    /// instant.
    pub fn node(&self, at: Time, actor: Addr, node: Node) {
        if let Some(lanes) = &self.0 {
            lanes.push(at, actor, RecordedEvent::Node(Box::new(node)));
        }
    }

    /// Records that actors with consecutive addresses have appeared. Call this method before any record that names one
    /// of these actors, or at the same instant.
    pub fn population(&self, at: Time, actors: AddrRange, population: Arc<dyn Population>) {
        if !actors.is_empty() {
            let count = actors.len();
            let what = RecordedEvent::Population { count, population };
            self.push_if(RecordKinds::names, at, actors.get(0), what);
        }
    }

    /// Sets the name of an actor that no graph shows. The message log uses this name. Call this method before the
    /// actor's first message, or at the same instant.
    pub fn name(&self, at: Time, actor: Addr, name: impl FnOnce() -> String) {
        if self.wants_messages() {
            let what = RecordedEvent::Name(name().into_boxed_str());
            self.push_if(|w| w.messages, at, actor, what);
        }
    }

    /// Records that an actor knows another actor from now on.
    pub fn edge(&self, at: Time, source: Addr, target: Addr) {
        self.push_if(
            |w| w.graph,
            at,
            source,
            RecordedEvent::Edge(target.as_u32()),
        );
    }

    /// Records that an actor no longer knows another actor.
    pub fn forget(&self, at: Time, source: Addr, target: Addr) {
        self.push_if(
            |w| w.graph,
            at,
            source,
            RecordedEvent::Forget(target.as_u32()),
        );
    }

    /// Records that an actor has ended.
    #[inline]
    pub fn done(&self, at: Time, actor: Addr, exit: Exit) {
        if self.wants_graph() {
            self.push_if(|w| w.graph, at, actor, RecordedEvent::Done(exit));
        }
    }

    /// Records that a client has sent a message of this kind, an index into the observer's lists of kinds and
    /// operations.
    #[inline]
    pub fn client_send(
        &self,
        at: Time,
        client: Addr,
        context: TraceContext,
        kind: usize,
        exchange: Exchange,
    ) {
        let annotation = match exchange {
            Exchange::OneWay => Annotation::Tell,
            Exchange::Request => Annotation::ClientSend,
        };
        self.span(at, client, context, kind, annotation, Status::Ok);
    }

    /// Records that a server has received a message of this kind.
    #[inline]
    pub fn server_receive(&self, at: Time, server: Addr, context: TraceContext, kind: usize) {
        let annotation = Annotation::ServerReceive;
        self.span(at, server, context, kind, annotation, Status::Ok);
    }

    /// Records that a server sends its response at `at`, which may be later than now.
    #[inline]
    pub fn server_send(&self, at: Time, server: Addr, context: TraceContext, status: Status) {
        let annotation = Annotation::ServerSend;
        self.span(at, server, context, NO_KIND, annotation, status);
    }

    /// Records that a client has received the response, or given up waiting for it ([`Status::Error`]).
    #[inline]
    pub fn client_receive(&self, at: Time, client: Addr, context: TraceContext, status: Status) {
        let annotation = Annotation::ClientReceive;
        self.span(at, client, context, NO_KIND, annotation, status);
    }

    #[inline]
    fn span(
        &self,
        at: Time,
        actor: Addr,
        context: TraceContext,
        kind: usize,
        annotation: Annotation,
        status: Status,
    ) {
        if let Some(lanes) = &self.0
            && lanes.wanted.flows
        {
            let what = RecordedEvent::Span {
                context,
                kind: kind.min(NO_KIND) as u16,
                annotation,
                status,
            };
            lanes.push(at, actor, what);
        }
    }

    /// Records that a message was received, as a line of the message log. `payload` is called only if there is a log.
    pub fn message<P: Into<Payload>>(
        &self,
        at: Time,
        receiver: Addr,
        sender: Addr,
        kind: usize,
        payload: impl FnOnce() -> P,
    ) {
        if self.wants_messages() {
            let what = RecordedEvent::Message {
                sender: sender.as_u32(),
                kind: kind.min(NO_KIND) as u16,
                payload: payload().into(),
            };
            self.push_if(|w| w.messages, at, receiver, what);
        }
    }

    /// Adds a line to the message log, after the earlier records of this actor.
    pub fn note(&self, at: Time, actor: Addr, line: impl FnOnce() -> String) {
        if self.wants_messages() {
            let what = RecordedEvent::Note(line().into_boxed_str());
            self.push_if(|w| w.messages, at, actor, what);
        }
    }

    #[inline]
    fn push_if(
        &self,
        wanted: impl Fn(&RecordKinds) -> bool,
        at: Time,
        actor: Addr,
        what: RecordedEvent,
    ) {
        if let Some(lanes) = &self.0
            && wanted(&lanes.wanted)
        {
            lanes.push(at, actor, what);
        }
    }

    /// Returns the approximate number of bytes of graphs and flows written to files so far.
    pub fn written(&self) -> u64 {
        self.0.as_ref().map_or(0, |lanes| lanes.bytes())
    }

    /// Writes all records up to `until`, the time at which the run is paused. Returns the state from which a resumed
    /// run continues the output.
    ///
    /// # Errors
    /// If an output cannot be continued.
    pub fn save(&self, until: Time) -> Result<SavedOutputs, ObserveError> {
        let saved = self
            .0
            .as_ref()
            .and_then(|lanes| lanes.save(until.as_nanos()));
        saved.unwrap_or_else(|| Ok(SavedOutputs::default()))
    }

    /// Returns the service with this name, for [`Recorder::sample`]. The service is added if the name is new.
    ///
    /// # Panics
    /// If there are more than 65,535 services.
    pub fn service(&self, name: &str) -> ServiceId {
        self.0
            .as_ref()
            .map_or(ServiceId(0), |lanes| lanes.times.service(name))
    }

    /// Records a time in nanoseconds that was measured at a service.
    #[inline]
    pub fn sample(&self, service: ServiceId, metric: Metric, nanos: u64) {
        if let Some(times) = self.times() {
            times.sample(lane::number(), service, metric, nanos);
        }
    }

    /// Records that a request to a service has failed.
    #[inline]
    pub fn error(&self, service: ServiceId) {
        if let Some(times) = self.times() {
            times.error(lane::number(), service);
        }
    }

    /// Returns the histograms, if times are recorded.
    #[inline]
    fn times(&self) -> Option<&Times> {
        let lanes = self.0.as_ref().filter(|lanes| lanes.wanted.times);
        lanes.map(|lanes| &lanes.times)
    }
}

/// The value for records without a kind.
pub(crate) const NO_KIND: usize = u16::MAX as usize;

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.wanted()).finish()
    }
}
