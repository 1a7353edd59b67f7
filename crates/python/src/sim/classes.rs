//! The classes that refer to each other: the environment, events, processes and resources.
//! The methods of each class are in the file with its name.

use super::agenda::Agenda;
use super::attached_cell::AttachedCell;
use super::number::Number;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};

/// Runs processes and other events in the order of their times.
#[pyclass(subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Environment {
    pub(super) now: Number,
    pub(super) agenda: Agenda<Py<Event>>,
    pub(super) next_id: u64,
    pub(super) active: Option<Py<Process>>,
    /// A timeout that was processed and can be reused.
    pub spare: Option<Py<Timeout>>,
    /// The attributes of the instance, which may replace a method.
    pub(super) attributes: Option<Py<PyDict>>,
    pub(super) class: MethodOverrides,
}

/// The methods of `Environment` that the class of an instance overrides.
#[derive(Clone, Copy, Debug, Default)]
pub struct MethodOverrides {
    pub(super) step: bool,
    pub(super) schedule: bool,
}

/// Something that may happen at a point in time.
///
/// An event is triggered once, by `succeed`, `fail` or `trigger`, and processed when its time comes. Then the event's
/// `callbacks` are called in order, each with the event as argument, and the processes that wait for the event resume.
/// A failed event raises its exception in each of these processes. If no process waits for the event, the exception
/// ends the run, unless a callback sets `defused`.
#[pyclass(frozen, subclass, weakref, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Event {
    pub env: AttachedCell<Option<Py<Environment>>>,
    pub callbacks: AttachedCell<Callbacks>,
    pub value: AttachedCell<Value>,
    pub ok: AttachedCell<Option<bool>>,
    pub defused: AttachedCell<bool>,
    /// The attributes that a model has set, if there are any.
    pub(super) attributes: AttachedCell<Option<Py<PyDict>>>,
}

/// The value of an event.
#[derive(Debug, Default)]
pub enum Value {
    /// The event has not been triggered.
    #[default]
    Pending,
    None,
    Object(Py<PyAny>),
}

/// A callback. All variants except the last are methods of native classes, which are called without the interpreter.
#[derive(Debug)]
pub enum Callback {
    Resume(Py<Process>),
    Check(Py<Condition>),
    BuildValue,
    Interrupt,
    TriggerGet(Py<BaseResource>),
    TriggerPut(Py<BaseResource>),
    Renege(Py<Request>),
    Stop,
    Python(Py<PyAny>),
}

/// The callbacks of an event.
#[derive(Debug, Default)]
pub enum Callbacks {
    /// No callback is registered yet.
    #[default]
    None,
    One(Callback),
    Many(Vec<Callback>),
    /// Python has accessed the callbacks, so they are a list that Python can change.
    List(Py<PyList>),
    /// The event was processed.
    Processed,
}

/// A process, which runs a generator that yields events, or a coroutine that awaits them.
///
/// When an event is processed, the process that waits for it resumes with the value of the event; the exception of a
/// failed event is raised in the process. A process is itself an event, which is triggered when the generator returns
/// or raises.
#[pyclass(frozen, extends = Event, subclass, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Process {
    pub(super) generator: AttachedCell<Option<Py<PyAny>>>,
    /// The generator, or the iterator of a coroutine; `None` if the object has only a method `send`.
    pub(super) stepped: AttachedCell<Option<Py<PyIterator>>>,
    pub(super) target: AttachedCell<Option<Py<Event>>>,
}

/// An event that is triggered when a function of other events returns True, and fails when one of these events fails.
///
/// The value of a condition is a `ConditionValue`: the events that were processed by then, with their values.
#[pyclass(extends = Event, subclass, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Condition {
    pub(super) evaluate: Evaluate,
    pub(super) events: Vec<Py<Event>>,
    pub(super) processed: usize,
}

/// The rule of a condition.
#[derive(Debug)]
pub enum Evaluate {
    All,
    Any,
    /// A function of the events and of the number of processed events.
    Python(Py<PyAny>),
}

/// An event that is processed when a delay has passed.
#[pyclass(frozen, extends = Event, subclass, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Timeout {
    pub(super) delay: AttachedCell<Number>,
}

/// The rule by which requests are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Requests are served by the methods `_do_put` and `_do_get` of a Python class.
    Python,
    Slots,
    PreemptiveSlots,
    Container,
    Store,
    PriorityStore,
    FilterStore,
}

/// The methods of `BaseResource` and `Resource` that the class of an instance overrides.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceOverrides {
    pub(super) do_put: bool,
    pub(super) do_get: bool,
    pub(super) trigger_put: bool,
    pub(super) trigger_get: bool,
    pub(super) release: bool,
}

/// The base of shared resources: a queue of puts and a queue of gets.
///
/// A class that defines `_do_put(event)` and `_do_get(event)` is a user-defined resource. These methods trigger the
/// event if it can be served, and return True if the next event in the queue may be tried.
#[pyclass(subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct BaseResource {
    pub(super) env: Option<Py<Environment>>,
    pub(super) capacity: Number,
    pub(super) puts: Option<Py<PyAny>>,
    pub(super) gets: Option<Py<PyAny>>,
    pub(super) discipline: Discipline,
    pub(super) class: ResourceOverrides,
    /// The attributes of the instance, which may replace a method.
    pub(super) attributes: Option<Py<PyDict>>,
    /// A function that is called without arguments whenever the state may have changed.
    pub(super) observer: Option<Py<PyAny>>,
}

/// The fields of a request of either kind.
#[derive(Debug, Default)]
pub struct RequestFields {
    pub(super) resource: Option<Py<BaseResource>>,
    pub(super) process: Option<Py<Process>>,
}

/// A request to put something into a resource. Used as a context manager, it is cancelled at the end if it is still
/// waiting.
#[pyclass(extends = Event, subclass, module = "corsair.sim.resources.base")]
#[derive(Debug, Default)]
pub struct Put {
    pub asked: RequestFields,
}

/// A request for a slot. Used as a context manager, it releases the slot at the end.
#[pyclass(extends = Put, subclass, module = "corsair.sim.resources.resource")]
#[derive(Debug, Default)]
pub struct Request {
    pub(super) usage_since: Option<Number>,
}
