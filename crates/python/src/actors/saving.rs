//! Checkpoints of actors written in Python.
//!
//! The engine writes its own state: events, timers, random streams. All Python objects are in one pickle. So objects
//! that several actors or messages share are shared again after a restore. In the engine's state, an object is
//! represented by its index in the pickle.

use super::context::{Context, SpawnedActor, Timer};
use super::fingerprint::Classes;
use super::mail::Mail;
use super::relay::{Relay, Root, SimulationState};
use crate::error;
use crate::saved::{PROGRAM, SavedCheckpoint, failed};
use corsair::{Kinds, Random, Simulation as Engine, TimerHandle};
use corsair_observe::checkpoint::{self, Draft, RunId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The names of the files that a checkpoint has in addition to the engine's: numbers and names, and the pickle.
const STATE: &str = "actors";
const OBJECTS: &str = "objects";

/// The state of a simulation in a checkpoint, without Python objects.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// The engine's address of the first actor, and the time on the engine's clock when the simulation began.
    pub first: u32,
    pub began: u64,
    /// The current time of the simulation in nanoseconds.
    pub now: u64,
    model: Option<String>,
    last: u64,
    actors: Vec<Option<SavedActor>>,
    received: BTreeMap<String, u64>,
    counters: BTreeMap<String, u64>,
    observed: BTreeMap<String, (Vec<f64>, Vec<f64>)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedActor {
    has_begun: bool,
    random: Option<Random>,
    name: Option<String>,
    timers: Vec<SavedTimer>,
    free: Vec<u32>,
}

/// A timer; its message, if it has one, is in the pickle.
#[derive(Debug, Serialize, Deserialize)]
struct SavedTimer {
    uses: u32,
    handle: Option<TimerHandle>,
    again: bool,
}

thread_local! {
    /// The messages in flight, while the engine is saved or restored on this thread.
    static MAIL: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

/// Makes the messages in flight available while `act` runs. Returns the result of `act`, and the messages in flight
/// after it.
fn with_mail<T>(mail: Vec<Py<PyAny>>, act: impl FnOnce() -> T) -> (T, Vec<Py<PyAny>>) {
    MAIL.set(mail);
    let done = act();
    (done, MAIL.take())
}

impl Serialize for Mail {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let place = self.body.as_ref().map(|body| {
            let body = Python::attach(|py| body.clone_ref(py));
            MAIL.with_borrow_mut(|mail| {
                mail.push(body);
                mail.len() as u32 - 1
            })
        });
        (place, self.fingerprint).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Mail {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Mail, D::Error> {
        let (place, fingerprint) = <(Option<u32>, u64)>::deserialize(from)?;
        let body = place.map(|place| {
            let body = MAIL.with_borrow(|mail| {
                let body = mail.get(place as usize)?;
                Some(Python::attach(|py| body.clone_ref(py)))
            });
            body.ok_or_else(|| D::Error::custom("there is no message of this number"))
        });
        Ok(Mail {
            body: body.transpose()?,
            fingerprint,
        })
    }
}

/// Returns the kinds with which the engine saves and restores the actors.
pub fn kinds(shared: &Arc<SimulationState>) -> Kinds<Mail> {
    Kinds::new()
        .with::<Relay>(Arc::clone(shared))
        .with_script::<Root>(Arc::clone(shared))
}

/// The message of each timer of an actor.
type Messages = Vec<Option<Py<PyAny>>>;
/// An actor in the pickle: its object, its method `on`, and the messages of its timers.
type Object = (Py<PyAny>, Py<PyAny>, Messages);

impl Context {
    fn state(&self, (first, began, now): (u32, u64, u64)) -> State {
        let actors = self.actors.iter().map(|actor| {
            actor.as_ref().map(|actor| SavedActor {
                has_begun: actor.start.is_none(),
                random: actor.random.clone(),
                name: actor.name.clone(),
                timers: actor.timers.iter().map(Timer::saved).collect(),
                free: actor.free.clone(),
            })
        });
        State {
            first,
            began,
            now,
            model: self.model.clone(),
            last: self.last,
            actors: actors.collect(),
            received: self.classes.counts(),
            counters: self.counters.clone(),
            observed: self.observed.clone(),
        }
    }

    /// Returns the objects of the actors that have not ended, by address, each with a name for errors.
    fn objects(&self, py: Python<'_>) -> Vec<(u32, String, Object)> {
        let actors = (0..).zip(&self.actors);
        let actors = actors.filter_map(|(address, actor)| Some((address, actor.as_ref()?)));
        let actors = actors.map(|(address, actor)| {
            let timers = actor.timers.iter();
            let messages = timers.map(|timer| Some(timer.message.as_ref()?.clone_ref(py)));
            let object = (
                actor.object.clone_ref(py),
                actor.on.clone_ref(py),
                messages.collect(),
            );
            (address, self.name_of(address), object)
        });
        actors.collect()
    }

    /// Takes over the actors of a checkpoint. If `is_branch` is true, their random streams start again from the seed of
    /// the branch.
    fn take_over(
        &mut self,
        py: Python<'_>,
        state: State,
        objects: Vec<(Py<PyAny>, Messages)>,
        is_branch: bool,
    ) -> PyResult<()> {
        let mut objects = objects.into_iter();
        for (address, actor) in (0..).zip(state.actors) {
            let Some(actor) = actor else {
                self.actors.push(None);
                continue;
            };
            let (object, messages) = objects.next().ok_or_else(torn)?;
            if messages.len() != actor.timers.len() {
                return Err(torn());
            }
            let object = object.into_bound(py);
            let start = match actor.has_begun {
                true => None,
                false => Some(object.getattr("start")?.unbind()),
            };
            let timers = actor.timers.into_iter().zip(messages);
            let timers = timers.map(|(timer, message)| Timer {
                uses: timer.uses,
                message,
                handle: timer.handle,
                again: timer.again,
            });
            if let Some(name) = &actor.name {
                self.names.insert(name.clone(), address);
            }
            self.actors.push(Some(SpawnedActor {
                on: object.getattr("on")?.unbind(),
                object: object.unbind(),
                start,
                random: actor.random.filter(|_| !is_branch),
                name: actor.name,
                timers: timers.collect(),
                free: actor.free,
            }));
        }
        self.model = state.model;
        self.last = state.last;
        self.classes = Classes::restored(state.received);
        self.counters = state.counters;
        self.observed = state.observed;
        Ok(())
    }
}

impl Timer {
    fn saved(&self) -> SavedTimer {
        SavedTimer {
            uses: self.uses,
            handle: self.handle,
            again: self.again,
        }
    }
}

/// Returns the error for files of a checkpoint that do not belong together.
fn torn() -> PyErr {
    PyValueError::new_err(
        "the objects in the checkpoint do not match its actors; resume from another checkpoint",
    )
}

/// A simulation that is to be saved.
#[derive(Debug)]
pub struct Saving<'a> {
    pub shared: &'a SimulationState,
    pub now: u64,
    /// The identity of the run, if the model does not determine it.
    pub run: Option<RunId>,
    /// The parameters of the simulation as JSON.
    pub about: &'a str,
}

impl Saving<'_> {
    /// Writes a checkpoint below a directory, and returns its path.
    ///
    /// # Errors
    /// If an object cannot be pickled (the error names its actor and field), or if the files cannot be written.
    pub fn write(
        &self,
        context: &Bound<'_, Context>,
        engine: &mut Engine<Mail>,
        directory: &Path,
    ) -> PyResult<PathBuf> {
        let py = context.py();
        let Some(model) = context.borrow().model.clone() else {
            return Err(PyValueError::new_err(
                "there is nothing to save; spawn an actor before the checkpoint",
            ));
        };
        let (snapshot, mail) = with_mail(Vec::new(), || engine.snapshot());
        let snapshot = snapshot.map_err(error::failed)?;
        let objects = context.borrow().objects(py);
        let pickle = py
            .import("corsair._objects")?
            .call_method1("dump", (context, objects, mail))?;
        let first = self.shared.first.get().copied().unwrap_or_default();
        let began = self.shared.began.get().copied().unwrap_or_default();
        let state = context.borrow().state((first, began, self.now));
        let mut files = checkpoint::files_of(snapshot).map_err(error::value)?;
        let state = postcard::to_allocvec(&state).map_err(error::value)?;
        files.push((STATE.to_owned(), state));
        let pickle = pickle.cast::<PyBytes>()?.as_bytes().to_vec();
        files.push((OBJECTS.to_owned(), pickle));
        let identity = || RunId::of(format!("{}\n{model}", self.about).as_bytes());
        let draft = Draft {
            program: PROGRAM,
            run: self.run.unwrap_or_else(identity),
            time: self.now,
            asked: true,
            details: serde_json::json!(self.about),
            files,
            outputs: Vec::new(),
        };
        py.detach(|| checkpoint::write(directory, draft).map_err(|e| failed(&e)))
    }
}

/// Reads the numbers and names of a simulation from a checkpoint.
///
/// # Errors
/// If the numbers and names are missing or damaged.
pub fn state(saved: &SavedCheckpoint) -> PyResult<State> {
    let state = saved.file(STATE).ok_or_else(torn)?;
    postcard::from_bytes(state).map_err(|_| torn())
}

/// Restores the Python objects, and calls a function that restores the engine while the messages can be read.
///
/// # Errors
/// If the objects cannot be read, or do not fit the state.
pub fn restore(
    context: &Bound<'_, Context>,
    saved: &SavedCheckpoint,
    state: State,
    is_branch: bool,
    engine: impl FnOnce() -> PyResult<Engine<Mail>>,
) -> PyResult<Engine<Mail>> {
    let py = context.py();
    let pickle = PyBytes::new(py, saved.file(OBJECTS).ok_or_else(torn)?);
    let loaded = py
        .import("corsair._objects")?
        .call_method1("load", (context, pickle))?;
    let (objects, mail): (_, Bound<'_, PyList>) = loaded.extract().map_err(|_| torn())?;
    context
        .borrow_mut()
        .take_over(py, state, objects, is_branch)?;
    let mail = mail.iter().map(Bound::unbind).collect();
    let (engine, _) = with_mail(mail, engine);
    engine
}
