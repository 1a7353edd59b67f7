//! What a session holds: a simulation, whatever it simulates.

use crate::command::Command;
use crate::layout::Area;
use crate::series::Point;
use crate::{Action, EdgeState, NodeState};
use corsair::{Snapshot, Time};
use corsair_arch::live::Times;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// For how many instances of services there is room, beyond those that their definitions make.
pub type Room = BTreeMap<String, u32>;

/// A simulation as a session holds it.
///
/// Looking at it changes nothing of its course, and neither does being watched.
pub trait World: Send {
    /// What does not change while it runs.
    fn scene(&self) -> Scene;

    /// How far it has come.
    fn now(&self) -> Time;

    /// Whether it has ended.
    fn is_over(&self) -> bool;

    /// Goes on until a time, inclusive.
    fn run_until(&mut self, time: Time);

    /// Goes on through the next window in which there is anything. False if there is none.
    fn step(&mut self) -> bool;

    /// Goes on until an actor has handled its next event. False if there is none to come.
    ///
    /// # Errors
    /// If there is no such actor.
    fn step_actor(&mut self, who: &str) -> Result<bool, String>;

    /// Lets a command happen at its time. All of it is accepted, or nothing.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    fn apply(&mut self, command: &Command) -> Result<(), String>;

    /// What a command needs room for that this world lacks, and one that is made anew could have: a service,
    /// and how many instances.
    fn lacks_room(&self, what: &Action) -> Option<(String, u32)> {
        let _ = what;
        None
    }

    /// Writes down all of it, between two events; none if this world cannot be written down.
    ///
    /// # Errors
    /// A sentence about why it cannot be now.
    fn checkpoint(&mut self) -> Result<Option<Snapshot>, String> {
        Ok(None)
    }

    /// Becomes what it was when it was written down.
    ///
    /// # Errors
    /// If it cannot; it is as before then.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let _ = snapshot;
        Err("this run cannot be restored".to_owned())
    }

    /// Begins or ends to remember what [`World::sample`] wants to know.
    fn watch(&mut self, watch: bool);

    /// What has happened since the last sample, and how things are.
    fn sample(&mut self) -> Sampled;

    /// Answers a question about one thing: `actor`, `edge`, `requests`, `trace`, `find`, `density`.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    fn look(&mut self, question: &Value) -> Result<Value, String>;

    /// What was done, as parts of a definition.
    ///
    /// # Errors
    /// If this world has no definition.
    fn as_definition(&self, _: &[Command]) -> Result<Value, String> {
        Err("only architectures of services have definitions".to_owned())
    }

    /// What was measured of a group over time, if that is known from the beginning.
    fn points(&self, group: usize) -> Option<Vec<Point>> {
        let _ = group;
        None
    }

    /// Messages for actors that had ended.
    fn dead_letters(&mut self) -> u64;

    /// The digest of all that has happened.
    fn digest(&mut self) -> u64;
}

/// What does not change while a simulation runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scene {
    /// `services`, `pirates` or `graph`.
    pub kind: &'static str,
    /// The architecture.
    pub arch: String,
    /// What may be chosen as a group in [`Sampled::groups`], in that order; the first is all.
    pub groups: Vec<String>,
    /// The actors that are shown each by itself.
    pub nodes: Vec<SceneNode>,
    /// What they are folded into; empty if they cannot be folded.
    pub folded: Vec<SceneNode>,
    /// Who knows whom where that is known from the beginning.
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
    /// When the load begins and ends, in seconds.
    pub load: Option<(f64, f64)>,
    /// What may be done: the names of [`Action`](crate::Action)s.
    pub actions: Vec<&'static str>,
}

/// Something that is shown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SceneNode {
    /// Its name, by which commands know it.
    pub name: String,
    /// Where it stands.
    pub x: f32,
    /// See `x`.
    pub y: f32,
    /// What it is an instance of.
    pub service: String,
    /// What implements it.
    pub package: String,
    /// Where it is.
    pub region: String,
    /// See `region`.
    pub zone: String,
    /// How many actors it stands for.
    pub count: u32,
}

/// A region or zone.
#[derive(Clone, Debug, Serialize)]
pub struct SceneArea {
    /// Its name.
    pub name: String,
    /// Whether it is a zone.
    pub is_zone: bool,
    /// Where it is: x, y, width, height.
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

/// How things are, and what has happened since the last sample.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// The state of each node of the scene.
    pub nodes: Vec<NodeState>,
    /// The edges that there has ever been traffic on, in an order that only grows.
    pub edges: Vec<EdgeState>,
    /// The same, folded.
    pub folded: Vec<NodeState>,
    /// See `folded`.
    pub folded_edges: Vec<EdgeState>,
    /// What has happened, by group.
    pub groups: Vec<GroupSample>,
}

/// What has happened to a group of actors in an interval.
#[derive(Clone, Debug, Default)]
pub struct GroupSample {
    /// Requests that were answered; of pirates, messages.
    pub requests: u64,
    /// Errors among them.
    pub errors: u64,
    /// How long answers took.
    pub times: Times,
    /// Requests that wait at the end.
    pub queue: u64,
    /// For how long slots or processors were in use, in nanoseconds, and could have been; 0: there
    /// is no limit.
    pub used: u64,
    /// See `used`.
    pub usable: u64,
}
