//! The interface between a session and its simulation.

use crate::command::Command;
use crate::layout::Area;
use crate::series::Point;
use crate::{Action, EdgeState, Frame, NodeState};
use corsair::{Snapshot, Time};
use corsair_arch::live::Times;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Capacity for instances of services, beyond the instances of the definition.
pub type ExtraCapacity = BTreeMap<String, u32>;

/// A simulation that a session controls.
///
/// Queries and sampling never change its result.
pub trait World: Send {
    /// Returns what does not change while the simulation runs.
    fn scene(&self) -> Scene;

    /// Returns the virtual time.
    fn now(&self) -> Time;

    /// True if the run has ended.
    fn is_over(&self) -> bool;

    /// Runs until a time, inclusive.
    fn run_until(&mut self, time: Time);

    /// Runs the next window that has an event. Returns false if there is none.
    fn step(&mut self) -> bool;

    /// Runs until an actor has handled its next event. Returns false if there is none.
    ///
    /// # Errors
    /// If there is no such actor.
    fn step_actor(&mut self, who: &str) -> Result<bool, String>;

    /// Schedules a command. Accepts all of it or nothing.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    fn apply(&mut self, command: &Command) -> Result<(), String>;

    /// Returns the service and the number of instances that a command needs and this world lacks, if a rebuilt world could
    /// have them.
    fn lacks_room(&self, what: &Action) -> Option<(String, u32)> {
        let _ = what;
        None
    }

    /// Saves the state; `None` if this world cannot be saved.
    ///
    /// # Errors
    /// A sentence that says why it cannot be saved now.
    fn checkpoint(&mut self) -> Result<Option<Snapshot>, String> {
        Ok(None)
    }

    /// Restores a saved state.
    ///
    /// # Errors
    /// A sentence that says why; the world is unchanged then.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let _ = snapshot;
        Err("this run cannot be restored".to_owned())
    }

    /// Starts or stops recording for [`World::sample`].
    fn watch(&mut self, watch: bool);

    /// Returns what has happened since the last sample, and the current state.
    fn sample(&mut self) -> Sample;

    /// Answers a query about one thing: `actor`, `edge`, `requests`, `trace`, `find`, `density`, `preview`.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    fn look(&mut self, query: &Value) -> Result<Value, String>;

    /// Returns the commands as faults and loads of a definition.
    ///
    /// # Errors
    /// If this world has no definition.
    fn as_definition(&self, _: &[Command]) -> Result<Value, String> {
        Err("only architectures of services have definitions".to_owned())
    }

    /// Returns the time series of a group, if it is known from the start.
    fn points(&self, group: usize) -> Option<Vec<Point>> {
        let _ = group;
        None
    }

    /// Moves to a time without running. False if only running leads there, as in a simulation.
    fn seek(&mut self, time: Time) -> bool {
        let _ = time;
        false
    }

    /// Returns the state at a time in seconds, if every state is known from the start.
    fn at(&mut self, time: f64) -> Option<Frame> {
        let _ = time;
        None
    }

    /// Returns the number of messages to actors that had ended.
    fn dead_letters(&mut self) -> u64;

    /// Returns the digest of the run; `None` if nothing was run, as with the files of a finished run.
    fn digest(&mut self) -> Option<u64>;
}

/// The constant part of a simulation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scene {
    /// `services`, `pirates` or `graph`.
    pub kind: &'static str,
    /// The architecture.
    pub arch: String,
    /// The groups of [`Sample::groups`], in that order; the first one is everything.
    pub groups: Vec<String>,
    /// The actors when they are shown separately.
    pub nodes: Vec<SceneNode>,
    /// The nodes when actors are folded; empty if they cannot be folded.
    pub folded: Vec<SceneNode>,
    /// The initial connections, if known.
    pub edges: Vec<(u32, u32)>,
    /// The same, folded.
    pub folded_edges: Vec<(u32, u32)>,
    /// Regions and zones.
    pub areas: Vec<SceneArea>,
    /// The size of all.
    pub width: f32,
    /// See `width`.
    pub height: f32,
    /// How many actors there are, shown or not.
    pub total: u64,
    /// The start and end of the load in seconds.
    pub load: Option<(f64, f64)>,
    /// The possible actions: the names of [`Action`](crate::Action)s.
    pub actions: Vec<&'static str>,
    /// What happens at which time, in the order of time.
    pub marks: Vec<Mark>,
}

/// A fault, or the begin of a stage of a story, on the bar of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mark {
    /// The time in seconds.
    pub at: f64,
    /// Its name.
    pub name: String,
    /// What a stage is about; empty for a fault.
    pub text: String,
}

/// A node of the scene.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SceneNode {
    /// Its name, by which commands know it.
    pub name: String,
    /// Its position.
    pub x: f32,
    /// See `x`.
    pub y: f32,
    /// Its service.
    pub service: String,
    /// Its package.
    pub package: String,
    /// Its region.
    pub region: String,
    /// See `region`.
    pub zone: String,
    /// The number of its actors.
    pub count: u32,
    /// The largest diameter at which it is drawn.
    pub size: f32,
    /// How many requests each actor works on at once; 0 if any number.
    pub slots: u32,
}

/// A region or zone.
#[derive(Clone, Debug, Serialize)]
pub struct SceneArea {
    /// Its name.
    pub name: String,
    /// Whether it is a zone.
    pub is_zone: bool,
    /// Its rectangle: x, y, width, height.
    pub at: [f32; 4],
}

impl SceneArea {
    pub(crate) fn new(area: &Area, region: &str, zone: Option<&str>) -> SceneArea {
        SceneArea {
            name: zone.unwrap_or(region).to_owned(),
            is_zone: zone.is_some(),
            at: [area.x, area.y, area.width, area.height],
        }
    }
}

/// The current state, and the events since the last sample.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The state of each node of the scene.
    pub nodes: Vec<NodeState>,
    /// The edges that there has ever been traffic on, in an order that only grows.
    pub edges: Vec<EdgeState>,
    /// The same, folded.
    pub folded: Vec<NodeState>,
    /// See `folded`.
    pub folded_edges: Vec<EdgeState>,
    /// The measurements by group.
    pub groups: Vec<GroupSample>,
}

/// The measurements of a group of actors in an interval.
#[derive(Clone, Debug, Default)]
pub struct GroupSample {
    /// Requests that were answered; of pirates, messages.
    pub requests: u64,
    /// Errors among them.
    pub errors: u64,
    /// How long answers took.
    pub times: Times,
    /// Requests in queues at the end of the interval.
    pub queue: u64,
    /// Time for which slots or processors were in use, and the time for which they were available, in nanoseconds; 0 if
    /// they are not limited.
    pub used: u64,
    /// See `used`.
    pub usable: u64,
}
