//! An architecture that runs step by step and can be inspected and sent commands between steps: the basis of the live
//! view and its replay.
//!
//! A command is a message with a virtual time. So the run depends only on the architecture, the commands and their
//! times. It does not depend on the number of workers, or on whether instances are watched.

pub(crate) mod seen;
mod times;

pub use crate::resume_error::ResumeError;
pub use seen::{Calls, Details, InstanceState, MessageSeen, Recent, RequestSeen, SpanSeen};
pub use times::ResponseTimes;

use crate::message::{Call, Command, Key, Msg};
use crate::model::{LEAST_TRAVEL, Model};
use crate::node::Node;
use crate::plan::{Plan, SimulateError};
use crate::scenario::AnyActor;
use crate::topology::Topology;
use crate::totals::Totals;
use crate::workload::Architecture;
use corsair::{Addr, Config, Executor, InjectError, Report, Simulation, Snapshot, SpanId, Time};
use corsair_observe::run::{Finished, PausedRun, Run};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A histogram of times in nanoseconds, small enough for each edge of a graph; its relative error is at most 1/32.
pub type Times = corsair::Buckets<u64, 16>;

/// An architecture in virtual time that its caller runs step by step.
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
    held: PausedRun<Architecture>,
    /// The number of the last interval.
    interval: u32,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Live").field(&self.held.simulation).finish()
    }
}

/// A message that can be sent to an instance from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Requests the endpoint with this number; with `None`, requests the value that every storage has.
    Request(Option<u16>),
    /// Puts a value, by its number.
    Put(u32),
    /// Gold, for pirates.
    Gold(u32),
    /// Introduces an instance that the receiver may call.
    NameDrop(u32),
    /// Withdraws an instance that the receiver may no longer call.
    Forget(u32),
}

impl Live {
    /// Creates an architecture whose actors exist, but in which nothing else has happened.
    ///
    /// # Errors
    /// See [`SimulateError`].
    pub fn new(base: &Config, topology: Topology, plan: &Plan) -> Result<Live, SimulateError> {
        let architecture = Architecture::new(Executor::Virtual, base, topology, plan)?;
        let held = Run::new(architecture).hold();
        let held = held.map_err(ResumeError::into_simulate)?;
        let mut live = Live { held, interval: 0 };
        live.watch(false);
        // Actors are made at the end of a window.
        while live.model().first.get().is_none() && live.held.simulation.step() {}
        Ok(live)
    }

    /// Resumes an architecture from a snapshot ([`Simulation::snapshot`]), with any number of workers. The topology and
    /// the plan must equal those of the saved run.
    ///
    /// # Errors
    /// See [`ResumeError`].
    pub fn resume(
        base: &Config,
        topology: Topology,
        plan: &Plan,
        snapshot: &Snapshot,
    ) -> Result<Live, ResumeError> {
        let architecture = Architecture::new(Executor::Virtual, base, topology, plan)?;
        Live::hold(architecture, snapshot.clone())
    }

    /// Resumes an architecture from a snapshot, for example a branch of a saved run ([`Architecture::branch`]).
    ///
    /// # Errors
    /// See [`ResumeError`].
    pub fn hold(architecture: Architecture, snapshot: Snapshot) -> Result<Live, ResumeError> {
        let held = Run::new(architecture).resume(snapshot).hold()?;
        let mut live = Live { held, interval: 0 };
        live.watch(false);
        Ok(live)
    }

    fn model(&self) -> &Arc<Model> {
        self.held.workload().model()
    }

    /// Returns the paused run, for example to save it ([`PausedRun::drive`]).
    pub fn held(&mut self) -> &mut PausedRun<Architecture> {
        &mut self.held
    }

    /// Returns the simulation.
    pub fn simulation(&mut self) -> &mut Simulation<Msg> {
        &mut self.held.simulation
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.held.simulation.now()
    }

    /// True if the run has ended.
    pub fn is_over(&self) -> bool {
        self.held.simulation.is_over()
    }

    /// Returns the topology.
    pub fn topology(&self) -> &Topology {
        &self.model().topology
    }

    /// Returns the times at which the load begins and ends.
    pub fn load(&self) -> (Time, Time) {
        let times = (self.model().load_at, self.model().load_ends);
        (Time::from_nanos(times.0), Time::from_nanos(times.1))
    }

    /// Returns the address of an instance, if it exists.
    pub fn address(&self, instance: u32) -> Option<Addr> {
        let first = self.model().first.get()?;
        (instance < self.model().topology.len()).then(|| Addr::from_u32(first + instance))
    }

    /// True if an instance may call another, or itself, when both are up.
    pub fn may_call(&self, caller: u32, node: u32) -> bool {
        self.model().may_call(caller, node)
    }

    /// Returns the number of the endpoint with this name, for example `cart/add`.
    ///
    /// # Errors
    /// If there is no such endpoint; the error suggests the nearest name.
    pub fn endpoint(&self, name: &str) -> Result<u16, String> {
        let (_, key) = self.model().topology.endpoints.named(name)?;
        let endpoint = key.as_endpoint().map(|(endpoint, ..)| endpoint);
        endpoint.ok_or_else(|| format!("'{name}' has no endpoints"))
    }

    /// Returns the name of an actor.
    pub fn name(&self, actor: Addr) -> String {
        self.model().name_of(actor)
    }

    /// Sends a command to an instance at a future time.
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

    /// Sends a message to an instance, which arrives at the given future time. Returns its trace.
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
        self.held.simulation.inject(at, to, message)
    }

    /// Starts or stops recording calls, spans and messages. The spans and messages of earlier periods are forgotten,
    /// because those in between are missing. The run is not affected.
    pub fn watch(&mut self, watch: bool) {
        let model = Arc::clone(self.model());
        if watch && model.interval() == 0 {
            model.period.fetch_add(1, Ordering::Relaxed);
            self.begin_interval();
        } else if !watch {
            model.watched.store(0, Ordering::Relaxed);
        }
        self.record(watch);
    }

    /// Starts or stops recording spans and messages, while calls are still counted. The most recent ones are kept.
    pub fn record(&mut self, record: bool) {
        let model = self.model();
        let traces = record || model.recorder.wants_flows();
        model.traces.store(traces, Ordering::Relaxed);
        self.held.simulation.set_traces(traces);
    }

    /// Starts the next interval, in which [`Live::recent`] counts from zero.
    pub fn next_interval(&mut self) {
        if self.model().interval() > 0 {
            self.begin_interval();
        }
    }

    fn begin_interval(&mut self) {
        self.interval = self.interval.checked_add(1).unwrap_or(1);
        self.model().watched.store(self.interval, Ordering::Relaxed);
    }

    /// Calls `each` with the calls of an instance in the interval, by called instance.
    pub fn recent(&mut self, instance: u32, mut each: impl FnMut(u32, Recent<'_>)) {
        let interval = self.model().interval();
        self.look(instance, |node, _| {
            for calls in node.seen().into_iter().flat_map(|seen| &seen.calls) {
                if calls.interval == interval {
                    each(calls.to, calls.recent());
                }
            }
        });
    }

    /// Calls `each` with all recorded calls of an instance, by called instance.
    pub fn calls(&mut self, instance: u32, each: impl FnMut(&Calls)) {
        self.look(instance, |node, _| {
            let seen = node.seen().into_iter();
            seen.flat_map(|seen| &seen.calls).for_each(each);
        });
    }

    /// Returns the most recently answered requests of an instance, the oldest first.
    pub fn spans(&mut self, instance: u32) -> Vec<SpanSeen> {
        let seen = self.look(instance, |node, _| {
            let seen = node.seen_now().into_iter();
            seen.flat_map(|seen| seen.spans.iter().copied()).collect()
        });
        seen.unwrap_or_default()
    }

    /// Returns the state of an instance; `None` before it has begun and after it has ended.
    pub fn state(&mut self, instance: u32) -> Option<InstanceState> {
        self.look(instance, |node, now| node.state(now))
    }

    /// Returns the details of an instance; `None` before it has begun and after it has ended.
    pub fn details(&mut self, instance: u32) -> Option<Details> {
        self.look(instance, |node, now| node.details(now))
    }

    /// Returns all fields of an instance by name; `None` before it has begun and after it has ended.
    pub fn fields(&mut self, instance: u32) -> Option<serde_json::Value> {
        let who = self.address(instance)?;
        self.held.simulation.inspect_value(who).ok().flatten()
    }

    fn look<T>(&mut self, instance: u32, look: impl FnOnce(&Node, Time) -> T) -> Option<T> {
        let (who, now) = (self.address(instance)?, self.held.simulation.now());
        let seen = self
            .held
            .simulation
            .inspect(who, |actor: &AnyActor| match actor {
                AnyActor::Node(node) => Some(look(node, now)),
                _ => None,
            });
        seen.ok().flatten()
    }

    /// Ends the run at the current time, and returns its results.
    pub fn stop(self) -> (Report, Totals) {
        let Finished { report, totals } = self.held.stop();
        (report, totals)
    }

    /// Runs to the end, and returns the report and the totals.
    ///
    /// # Errors
    /// The error of the run.
    pub fn finish(self) -> Result<(Report, Totals), SimulateError> {
        let Finished { report, totals } = self.held.finish()?;
        Ok((report, totals))
    }
}
