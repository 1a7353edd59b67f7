//! An architecture that runs as far as it is told, can be looked at in between, and does what it is
//! told: what a live view and its replay are made of.
//!
//! What is told is a message with a virtual time, so that the run is a function of the architecture
//! and of what it was told when: the same for any number of workers, watched or not.

mod times;

pub use times::Times;

use crate::message::Answer;
use crate::message::{Call, Command, Key, Msg};
use crate::model::{LEAST_TRAVEL, Model};
use crate::node::Node;
use crate::scenario::AnyActor;
use crate::simulate::{Plan, SimulateError, prepare, totals};
use crate::topology::Topology;
use crate::totals::{ServiceTotals, Totals};
use corsair::{Addr, Config, Executor, InjectError, Report, Simulation, SpanId, Time};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An architecture in virtual time that its caller holds in the hand.
///
/// ```
/// use corsair::{Config, Time};
/// use corsair_arch::live::Live;
/// use corsair_arch::{Command, Plan, Scale, Topology, read};
/// use std::path::Path;
/// use std::time::Duration;
///
/// let topology = Topology::new(&read("lamp", Path::new("json_arch"))?, Scale::default())?;
/// let mut live = Live::new(&Config::default(), topology, &Plan::default())?;
/// let second = |n| Time::ZERO.after(Duration::from_secs(n));
/// live.command(second(2), 0, Command::Kill)?;
/// live.simulation().run_until(second(3));
/// assert!(live.state(0).expect("it was made").is_down);
/// let (report, _) = live.finish()?;
/// assert!(report.delivered() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Live {
    simulation: Simulation<Msg>,
    model: Arc<Model>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Live").field(&self.simulation).finish()
    }
}

/// Calls of one instance to another while it was watched.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Requests and values sent.
    pub sent: u64,
    /// Requests that were answered, errors among them.
    pub answered: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// How long answers took.
    pub times: Times,
    recent: Recent,
    interval: u32,
}

/// The same of the last interval.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Requests and values sent.
    pub sent: u64,
    /// Requests that were answered, errors among them.
    pub answered: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// How long answers took.
    pub times: Times,
}

impl Calls {
    pub(crate) fn in_interval(&mut self, interval: u32) -> &mut Recent {
        if self.interval != interval {
            self.interval = interval;
            (self.recent.sent, self.recent.answered, self.recent.errors) = (0, 0, 0);
            self.recent.times.clear();
        }
        &mut self.recent
    }
}

/// The state of an instance in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceState {
    /// It is killed.
    pub is_down: bool,
    /// It does nothing.
    pub is_paused: bool,
    /// It is cut off from other zones.
    pub is_cut_off: bool,
    /// It is up and in no registry.
    pub is_away: bool,
    /// How long it takes, in per cent of the usual.
    pub slow_percent: u32,
    /// Requests that wait for a slot.
    pub queue: u32,
    /// Slots in use.
    pub busy: u32,
    /// Pieces of work that it works on.
    pub in_progress: u32,
    /// Requests of its own that have no answer yet.
    pub under_way: u32,
    /// For how long slots were in use, summed over slots.
    pub slot_nanos: u64,
    /// How much it has worked.
    pub worked_nanos: u64,
    /// Requests that it has refused.
    pub refused: u64,
    /// Of an entry point: requests for which there was no instance.
    pub unrouted: u64,
}

/// A request and its answer, as its client has seen it. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanSeen {
    /// The trace, the span and the span that caused it; 0: none.
    pub trace: u64,
    /// See `trace`.
    pub span: u64,
    /// See `trace`.
    pub parent: u64,
    /// The instance that was asked.
    pub server: u32,
    /// When the request was sent.
    pub sent: u64,
    /// When the answer came.
    pub received: u64,
    /// What it was.
    pub answer: Answer,
}

/// A message that an instance has received.
#[derive(Clone, Debug, Serialize)]
pub struct MessageSeen {
    /// When, in nanoseconds.
    pub at: u64,
    /// From whom.
    pub from: String,
    /// The kind.
    pub kind: &'static str,
    /// The contents.
    pub what: String,
    /// How long it travelled, in nanoseconds, if it says that.
    pub travelled: Option<u64>,
}

/// A request that has no answer yet.
#[derive(Clone, Debug, Serialize)]
pub struct RequestSeen {
    /// Whom it asks.
    pub server: String,
    /// When it was sent, in nanoseconds.
    pub sent: u64,
    /// How long ago that is.
    #[serde(serialize_with = "nanos")]
    pub age: Duration,
    /// The trace that it belongs to.
    #[serde(serialize_with = "hex")]
    pub trace: u64,
}

/// Everything that can be seen of an instance.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "fields are named after what they are")]
pub struct Details {
    pub name: String,
    pub service: String,
    pub package: &'static str,
    pub region: &'static str,
    pub zone: &'static str,
    pub state: InstanceState,
    pub concurrency: Option<u32>,
    pub processors: Option<f64>,
    pub queue: usize,
    pub fields: BTreeMap<&'static str, u64>,
    pub totals: ServiceTotals,
    pub knows: Vec<String>,
    pub registries: Vec<String>,
    pub requests: Vec<RequestSeen>,
    pub messages: Vec<MessageSeen>,
}

/// What can be sent to an instance from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// A request: for an endpoint of a service, by its number, or for the value that all know.
    Request(Option<u16>),
    /// A value to be kept, by its number.
    Put(u32),
    /// Gold, for pirates.
    Gold(u32),
    /// There is an instance that you may call.
    NameDrop(u32),
    /// There is an instance that you may call no more.
    Forget(u32),
}

impl Live {
    /// An architecture in which nothing has happened but that its actors were made.
    ///
    /// # Errors
    /// See [`SimulateError`].
    pub fn new(base: &Config, topology: Topology, plan: &Plan) -> Result<Live, SimulateError> {
        let (config, scenario) = prepare(Executor::Virtual, base, topology, plan)?;
        let model = Arc::clone(&scenario.model);
        let mut simulation = Simulation::new(&config, scenario)?;
        // Actors are made at the end of a window.
        while model.first.get().is_none() && simulation.step() {}
        Ok(Live { simulation, model })
    }

    /// The run.
    pub fn simulation(&mut self) -> &mut Simulation<Msg> {
        &mut self.simulation
    }

    /// How far it has come.
    pub fn now(&self) -> Time {
        self.simulation.now()
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.simulation.is_over()
    }

    /// The architecture.
    pub fn topology(&self) -> &Topology {
        &self.model.topology
    }

    /// When the load begins and ends.
    pub fn load(&self) -> (Time, Time) {
        let times = (self.model.load_at, self.model.load_ends);
        (Time::from_nanos(times.0), Time::from_nanos(times.1))
    }

    /// The address of an instance, if it was made.
    pub fn address(&self, instance: u32) -> Option<Addr> {
        let first = self.model.first.get()?;
        (instance < self.model.topology.len()).then(|| Addr::from_u32(first + instance))
    }

    /// Whether an instance may call another, once both are there.
    pub fn may_call(&self, caller: u32, node: u32) -> bool {
        self.model.may_call(caller, node)
    }

    /// The number of the endpoint of this name: `cart/add`.
    ///
    /// # Errors
    /// A sentence with the nearest name.
    pub fn endpoint(&self, name: &str) -> Result<u16, String> {
        let (_, key) = self.model.topology.endpoints.named(name)?;
        let endpoint = key.as_endpoint().map(|(endpoint, ..)| endpoint);
        endpoint.ok_or_else(|| format!("'{name}' has no endpoints"))
    }

    /// What an actor is called.
    pub fn name(&self, actor: Addr) -> String {
        self.model.name_of(actor)
    }

    /// Tells an instance what to do at a time that has not come.
    ///
    /// # Errors
    /// If that time has passed, or the run is over.
    pub fn command(
        &mut self,
        at: Time,
        instance: u32,
        command: Command,
    ) -> Result<(), InjectError> {
        self.inject(at, instance, Msg::Command(command)).map(drop)
    }

    /// Sends something to an instance, which arrives at a time that has not come. Returns the trace
    /// that it begins.
    ///
    /// # Errors
    /// If that time has passed, or the run is over.
    pub fn send(&mut self, at: Time, instance: u32, what: Sending) -> Result<u64, InjectError> {
        let call = |key| Call::new(key, 0, 0, LEAST_TRAVEL as u32);
        let message = match what {
            Sending::Request(None) => Msg::GetRequest(call(Key::WHY), 0),
            Sending::Request(Some(endpoint)) => {
                Msg::GetRequest(call(Key::endpoint(endpoint, 0, 0)), 0)
            }
            Sending::Put(number) => Msg::Put(call(Key::numbered(number))),
            Sending::Gold(gold) => Msg::GoldCoin(gold),
            Sending::NameDrop(node) => Msg::NameDrop { node },
            Sending::Forget(node) => Msg::Forget { node },
        };
        self.inject(at, instance, message).map(SpanId::as_u64)
    }

    fn inject(&mut self, at: Time, instance: u32, message: Msg) -> Result<SpanId, InjectError> {
        let to = self.address(instance).unwrap_or(Addr::NONE);
        self.simulation.inject(at, to, message)
    }

    /// Begins or ends to remember calls, spans and messages. The run is the same with it.
    pub fn watch(&mut self, watch: bool) {
        let is_watched = self.model.interval() > 0;
        if watch != is_watched {
            self.model.watched.store(watch.into(), Ordering::Relaxed);
        }
    }

    /// Begins the next interval, in which [`Live::recent`] counts anew.
    pub fn next_interval(&mut self) {
        let next = self.model.interval().checked_add(1).unwrap_or(1);
        if self.model.interval() > 0 {
            self.model.watched.store(next, Ordering::Relaxed);
        }
    }

    /// What an instance has called in the interval, by the instances that it has called.
    pub fn recent(&mut self, instance: u32, mut each: impl FnMut(u32, &Recent)) {
        let interval = self.model.interval();
        self.look(instance, |node, _| {
            for (&to, calls) in node.seen().into_iter().flat_map(|seen| &seen.calls) {
                if calls.interval == interval {
                    each(to, &calls.recent);
                }
            }
        });
    }

    /// What an instance has called since it is watched, by the instance that it has called.
    pub fn calls(&mut self, instance: u32, mut each: impl FnMut(u32, &Calls)) {
        self.look(instance, |node, _| {
            for (&to, calls) in node.seen().into_iter().flat_map(|seen| &seen.calls) {
                each(to, calls);
            }
        });
    }

    /// The last requests of an instance that were answered, the oldest first.
    pub fn spans(&mut self, instance: u32) -> Vec<SpanSeen> {
        let seen = self.look(instance, |node, _| {
            let seen = node.seen().into_iter();
            seen.flat_map(|seen| seen.spans.iter().copied()).collect()
        });
        seen.unwrap_or_default()
    }

    /// The state of an instance; none before it has begun and after it has ended.
    pub fn state(&mut self, instance: u32) -> Option<InstanceState> {
        self.look(instance, |node, now| node.state(now))
    }

    /// Everything about an instance; none before it has begun and after it has ended.
    pub fn details(&mut self, instance: u32) -> Option<Details> {
        self.look(instance, |node, now| node.details(now))
    }

    fn look<T>(&mut self, instance: u32, look: impl FnOnce(&Node, Time) -> T) -> Option<T> {
        let (who, now) = (self.address(instance)?, self.simulation.now());
        let seen = self
            .simulation
            .inspect(who, |actor: &AnyActor| match actor {
                AnyActor::Node(node) => Some(look(node, now)),
                _ => None,
            });
        seen.ok().flatten()
    }

    /// Goes on to the end, and returns what the run has done.
    ///
    /// # Errors
    /// How the run failed.
    pub fn finish(self) -> Result<(Report, Totals), SimulateError> {
        let report = self.simulation.finish()?;
        Ok((report, totals(&self.model)))
    }
}

fn nanos<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Numbers beyond 2^53 are not those of JavaScript.
fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:016x}"))
}
