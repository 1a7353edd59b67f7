//! The interface between a session and its simulation.

use crate::command::Command;
use crate::layout::Area;
use crate::series::Point;
use crate::{Action, EdgeState, Frame, NodeState};
use corsair::{Snapshot, Time};
use corsair_arch::live::ResponseTimes;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Capacity for instances of services, beyond the instances of the definition.
pub type ExtraCapacity = BTreeMap<String, u32>;

/// A simulation that a session controls.
///
/// Queries and sampling never change the result of the simulation.
pub trait World: Send {
    /// Returns the scene, which does not change while the simulation runs.
    fn scene(&self) -> Scene;

    /// Returns the virtual time.
    fn now(&self) -> Time;

    /// True if the run has ended.
    fn is_over(&self) -> bool;

    /// Returns a sentence that says why the run has failed, if it has.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Runs until a time, inclusive.
    fn run_until(&mut self, time: Time);

    /// Runs the next window that has an event. Returns false if there is no event left.
    fn step(&mut self) -> bool;

    /// Runs until an actor has handled its next event. Returns false if there is no such event.
    ///
    /// # Errors
    /// If there is no actor with this name.
    fn step_actor(&mut self, who: &str) -> Result<bool, String>;

    /// Schedules a command. If it fails, no part of the command is scheduled.
    ///
    /// # Errors
    /// Returns a sentence that describes the fault of the command.
    fn apply(&mut self, command: &Command) -> Result<(), String>;

    /// Returns the service and the number of instances that a command needs and for which this world has no capacity,
    /// if a rebuilt world could have them.
    fn lacks_room(&self, _: &Action) -> Option<(String, u32)> {
        None
    }

    /// Saves the state; returns `None` if this world can never be saved.
    ///
    /// # Errors
    /// Returns a sentence that says why the world cannot be saved now.
    fn checkpoint(&mut self) -> Result<Option<Snapshot>, String> {
        Ok(None)
    }

    /// Restores a saved state.
    ///
    /// # Errors
    /// Returns a sentence that says why the state cannot be restored; the world is then unchanged.
    fn restore(&mut self, _: &Snapshot) -> Result<(), String> {
        Err("this run cannot be restored".to_owned())
    }

    /// Starts or stops recording for [`World::sample`].
    fn watch(&mut self, watch: bool);

    /// While the world is watched: starts or stops recording single messages, which a sample does not need.
    fn record(&mut self, _: bool) {}

    /// Returns what has happened since the last sample, and the current state.
    fn sample(&mut self) -> Sample;

    /// Answers a query of one of the kinds `actor`, `edge`, `requests`, `trace`, `find`, `density`, `preview`.
    ///
    /// # Errors
    /// Returns a sentence that describes the fault of the query.
    fn look(&mut self, query: &Value) -> Result<Value, String>;

    /// Returns the commands as faults and loads of a definition.
    ///
    /// # Errors
    /// If this world has no definition.
    fn as_definition(&self, _: &[Command]) -> Result<Value, String> {
        Err("only architectures of services have definitions".to_owned())
    }

    /// Returns the time series of a group, if it is known from the start.
    fn points(&self, _: usize) -> Option<Vec<Point>> {
        None
    }

    /// Moves to a time without running. Returns false if the time can be reached only by running, as in a simulation.
    fn seek(&mut self, _: Time) -> bool {
        false
    }

    /// Returns the state at a time in seconds, if every state is known from the start.
    fn at(&mut self, _: f64) -> Option<Frame> {
        None
    }

    /// Returns the number of messages to actors that had ended.
    fn dead_letters(&mut self) -> u64;

    /// Returns the digest of the run; `None` if nothing was run, for example if the view shows the files of a finished
    /// run.
    fn digest(&mut self) -> Option<u64>;
}

/// The constant part of a simulation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scene {
    /// `services`, `pirates`, `hosts` or `graph`.
    pub kind: &'static str,
    /// The name of the architecture.
    pub arch: String,
    /// The names of [`Sample::groups`], in the same order; the first group contains everything.
    pub groups: Vec<String>,
    /// The nodes when actors are shown separately.
    pub nodes: Vec<SceneNode>,
    /// The nodes when actors are folded; empty if they cannot be folded.
    pub folded: Vec<SceneNode>,
    /// The initial connections, if known.
    pub edges: Vec<(u32, u32)>,
    /// The edges between folded nodes.
    pub folded_edges: Vec<(u32, u32)>,
    /// The rectangles of regions and zones.
    pub areas: Vec<SceneArea>,
    /// The width of the complete scene.
    pub width: f32,
    /// The height of the complete scene.
    pub height: f32,
    /// The total number of actors, including those that are not shown.
    pub total: u64,
    /// The start and end of the load in seconds.
    pub load: Option<(f64, f64)>,
    /// The possible actions: the names of [`Action`](crate::Action)s.
    pub actions: Vec<&'static str>,
    /// The events on the timeline, in the order of time.
    pub marks: Vec<Mark>,
}

/// A fault, or the beginning of a stage of a story, on the timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mark {
    /// The time in seconds.
    pub at: f64,
    /// The name of the fault or stage.
    pub name: String,
    /// A description of the stage; empty for a fault.
    pub text: String,
}

/// A node of the scene.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SceneNode {
    /// The name by which commands refer to the node.
    pub name: String,
    /// The horizontal position.
    pub x: f32,
    /// The vertical position.
    pub y: f32,
    /// The name of the service to which the node belongs.
    pub service: String,
    /// The package of the node.
    pub package: String,
    /// The region of the node.
    pub region: String,
    /// The zone of the node.
    pub zone: String,
    /// The number of actors in the node.
    pub count: u32,
    /// The largest diameter at which the node is drawn.
    pub size: f32,
    /// The number of requests that each actor can work on at once; 0 if it is unlimited.
    pub slots: u32,
}

/// A region or zone.
#[derive(Clone, Debug, Serialize)]
pub struct SceneArea {
    /// The name of the region or zone.
    pub name: String,
    /// True if the area is a zone.
    pub is_zone: bool,
    /// The rectangle: x, y, width, height.
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
    /// The edges that have ever had traffic. Their order is stable: new edges are appended.
    pub edges: Vec<EdgeState>,
    /// The state of each folded node of the scene.
    pub folded: Vec<NodeState>,
    /// The edges between folded nodes that have ever had traffic.
    pub folded_edges: Vec<EdgeState>,
    /// The measurements by group.
    pub groups: Vec<GroupSample>,
}

/// The measurements of a group of actors in an interval.
#[derive(Clone, Debug, Default)]
pub struct GroupSample {
    /// The number of answered requests; for pirates, the number of messages.
    pub requests: u64,
    /// The number of answers that were errors.
    pub errors: u64,
    /// The response times.
    pub times: ResponseTimes,
    /// The number of requests in queues at the end of the interval.
    pub queue: u64,
    /// The time for which slots or processors were in use, in nanoseconds; 0 if they are not limited.
    pub used: u64,
    /// The time for which slots or processors were available, in nanoseconds; 0 if they are not limited.
    pub usable: u64,
}

/// Returns the error for an unknown name, with the nearest known one.
pub(crate) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = corsair_arch::nearest(name, known).map(|near| format!("; did you mean {near}?"));
    format!("there is no {what} '{name}'{}", near.unwrap_or_default())
}
