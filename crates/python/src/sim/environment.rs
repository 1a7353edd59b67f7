//! The environment: the clock and the agenda.

use super::agenda::{Agenda, Entry, NORMAL, URGENT};
use super::classes::{
    Callback, Callbacks, Condition, Environment, Event, MethodOverrides, Process, Timeout, Value,
};
use super::names::Names;
use super::number::Number;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

/// The number of events after which signals are handled.
const EVENTS: u32 = 4096;

impl Environment {
    pub fn now(this: &Bound<'_, Environment>) -> Number {
        this.borrow_mut().now.clone_ref(this.py())
    }

    pub fn activate(this: &Bound<'_, Environment>, process: Option<Py<Process>>) {
        let before = std::mem::replace(&mut this.borrow_mut().active, process);
        drop(before);
    }

    pub fn is_active(&self, process: &Bound<'_, Process>) -> bool {
        self.active
            .as_ref()
            .is_some_and(|active| active.is(process))
    }

    pub fn active_process(this: &Bound<'_, Environment>) -> Option<Py<Process>> {
        let inner = this.borrow_mut();
        Some(inner.active.as_ref()?.clone_ref(this.py()))
    }

    /// Schedules an event. Without a delay, it is scheduled for the current time.
    pub fn schedule_event(
        this: &Bound<'_, Environment>,
        event: &Bound<'_, Event>,
        priority: i64,
        delay: Option<Number>,
    ) -> PyResult<()> {
        let py = this.py();
        let mut inner = this.borrow_mut();
        if inner.replaces(py, inner.class.schedule, intern!(py, "schedule"))? {
            drop(inner);
            let delay = delay.unwrap_or_default().to_python(py);
            let schedule = this.getattr(intern!(py, "schedule"))?;
            return schedule.call1((event, priority, delay)).map(drop);
        }
        inner.note(py, event.clone().unbind(), priority, delay)
    }

    /// Returns true if the class or the instance replaces a method of this class.
    fn replaces(
        &self,
        py: Python<'_>,
        by_class: bool,
        name: &Bound<'_, PyString>,
    ) -> PyResult<bool> {
        match &self.attributes {
            _ if by_class => Ok(true),
            Some(attributes) if !attributes.bind(py).is_empty() => {
                attributes.bind(py).contains(name)
            }
            _ => Ok(false),
        }
    }

    fn note(
        &mut self,
        py: Python<'_>,
        event: Py<Event>,
        priority: i64,
        delay: Option<Number>,
    ) -> PyResult<()> {
        let time = match delay {
            Some(delay) => self.now.plus(py, &delay)?,
            None => self.now.clone_ref(py),
        };
        let id = self.next_id;
        self.next_id += 1;
        self.agenda.push(
            py,
            Entry {
                time,
                priority,
                id,
                event,
            },
        )
    }

    /// Processes the next event. Returns false if there is none.
    fn advance(this: &Bound<'_, Environment>) -> PyResult<bool> {
        let due = this.borrow_mut().next(this.py())?;
        match due {
            Some(event) => Event::process(event.bind(this.py()), this).map(|()| true),
            None => Ok(false),
        }
    }

    /// Takes the next event from the agenda, and sets the clock to its time.
    #[inline]
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Py<Event>>> {
        let Some(Entry { time, event, .. }) = self.agenda.pop(py)? else {
            return Ok(None);
        };
        if let Number::Other(before) = std::mem::replace(&mut self.now, time) {
            before.drop_ref(py);
        }
        Ok(Some(event))
    }

    /// Runs until no event is left. If the run stops earlier, the reason is an exception.
    fn run_all(this: &Bound<'_, Environment>) -> PyResult<()> {
        let py = this.py();
        let mut events = 0_u32;
        loop {
            events = events.wrapping_add(1);
            if events.is_multiple_of(EVENTS) {
                py.check_signals()?;
            }
            let mut inner = this.borrow_mut();
            if !inner.replaces(py, inner.class.step, intern!(py, "step"))? {
                let Some(event) = inner.next(py)? else {
                    return Ok(());
                };
                drop(inner);
                let event = event.into_bound(py);
                Event::process(&event, this)?;
                Timeout::recycle(event, this)?;
                continue;
            }
            drop(inner);
            if let Err(error) = this.call_method0(intern!(py, "step")) {
                return match error.is_instance(py, Names::get(py)?.empty_schedule.bind(py)) {
                    true => Ok(()),
                    false => Err(error),
                };
            }
        }
    }

    /// Returns the event that ends a run at a time, before all other events of that time.
    fn end_at<'py>(
        this: &Bound<'py, Environment>,
        until: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Event>> {
        let py = this.py();
        let at = match until.is_instance_of::<PyInt>() {
            true => Number::of(until),
            false => Number::of(&py.get_type::<pyo3::types::PyFloat>().call1((until,))?),
        };
        let now = Environment::now(this);
        if !now.is_less(py, &at)? {
            return Err(PyValueError::new_err(format!(
                "until ({}) must be greater than the current simulation time",
                at.to_python(py).str()?
            )));
        }
        let event = Event::triggered(this, Value::None, Callbacks::None);
        let event = Bound::new(py, event)?;
        Environment::schedule_event(this, &event, URGENT, Some(at.minus(py, &now)?))?;
        Ok(event)
    }
}

#[pymethods]
impl Environment {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Environment {
        Environment {
            now: Number::Int(0),
            agenda: Agenda::new(),
            next_id: 0,
            active: None,
            spare: None,
            attributes: None,
            class: MethodOverrides::default(),
        }
    }

    #[pyo3(signature = (initial_time=None))]
    fn __init__(this: &Bound<'_, Self>, initial_time: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = this.py();
        let own = py.get_type::<Environment>();
        let class = this.get_type();
        let differs =
            |name: &str| -> PyResult<bool> { Ok(!class.getattr(name)?.is(&own.getattr(name)?)) };
        let class = MethodOverrides {
            step: differs("step")?,
            schedule: differs("schedule")?,
        };
        let attributes = this.getattr(intern!(py, "__dict__")).ok();
        let mut inner = this.borrow_mut();
        inner.now = initial_time.map_or(Number::Int(0), Number::of);
        inner.class = class;
        inner.attributes = attributes
            .and_then(|dict| dict.cast_into().ok())
            .map(Bound::unbind);
        Ok(())
    }

    /// The time of the simulation.
    #[getter(now)]
    fn get_now<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        this.borrow_mut().now.to_python(this.py())
    }

    #[getter(_now)]
    fn get_raw_now<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        Environment::get_now(this)
    }

    #[setter(_now)]
    fn set_raw_now(this: &Bound<'_, Self>, now: &Bound<'_, PyAny>) {
        let now = Number::of(now);
        let before = std::mem::replace(&mut this.borrow_mut().now, now);
        drop(before);
    }

    /// The process that is running; None outside of processes.
    #[getter(active_process)]
    fn get_active_process(this: &Bound<'_, Self>) -> Option<Py<Process>> {
        Environment::active_process(this)
    }

    #[getter(_active_proc)]
    fn get_active_proc(this: &Bound<'_, Self>) -> Option<Py<Process>> {
        Environment::active_process(this)
    }

    /// A copy of the scheduled events, as a heap of tuples (time, priority, number, event).
    #[getter(_queue)]
    fn get_queue<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let py = this.py();
        let inner = this.borrow_mut();
        let entries = inner.agenda.entries().iter();
        let entries: Vec<_> = entries
            .map(|entry| {
                (
                    entry.time.to_python(py),
                    entry.priority,
                    entry.id,
                    entry.event.clone_ref(py),
                )
            })
            .collect();
        drop(inner);
        PyList::new(py, entries)
    }

    /// An iterator over the numbers of the events that will be scheduled. Each call of `next` uses up one number.
    #[getter(_eid)]
    fn get_eid(this: &Bound<'_, Self>) -> EventNumbers {
        EventNumbers {
            env: this.clone().unbind(),
        }
    }

    /// Starts a process for a generator or a coroutine.
    fn process<'py>(
        this: &Bound<'py, Self>,
        generator: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Process>> {
        Process::new_in(this, generator)
    }

    /// An event that is processed after a delay, with a value.
    #[pyo3(signature = (delay=None, value=None))]
    fn timeout<'py>(
        this: &Bound<'py, Self>,
        delay: Option<Bound<'py, PyAny>>,
        value: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Timeout>> {
        let delay = delay.unwrap_or_else(|| PyInt::new(this.py(), 0).into_any());
        Timeout::new_in(this, &delay, value)
    }

    /// An alias of `timeout`, for use with `await`.
    fn sleep<'py>(
        this: &Bound<'py, Self>,
        delay: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Timeout>> {
        Timeout::new_in(this, delay, None)
    }

    /// Returns a new event, which waits until `succeed` or `fail` is called on it.
    fn event<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, Event>> {
        Bound::new(this.py(), Event::pending(this))
    }

    /// A condition that is triggered when all of the events have been processed.
    fn all_of<'py>(
        this: &Bound<'py, Self>,
        events: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Condition>> {
        Condition::of_class(this, true, events)
    }

    /// A condition that is triggered when any of the events has been processed.
    fn any_of<'py>(
        this: &Bound<'py, Self>,
        events: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Condition>> {
        Condition::of_class(this, false, events)
    }

    /// Schedules an event with a priority after a delay.
    #[pyo3(signature = (event, priority=NORMAL, delay=None))]
    fn schedule(
        this: &Bound<'_, Self>,
        event: &Bound<'_, Event>,
        priority: i64,
        delay: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let delay = delay.map(Number::of);
        if delay.as_ref().is_some_and(Number::is_nan) {
            return Err(PyValueError::new_err(
                "the delay is not a number; give 0 or more",
            ));
        }
        let py = this.py();
        this.borrow_mut()
            .note(py, event.clone().unbind(), priority, delay)
    }

    /// The time of the next event; infinity if there is none.
    fn peek<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        let py = this.py();
        match this.borrow_mut().agenda.first() {
            Some(entry) => entry.time.to_python(py),
            None => Number::Float(f64::INFINITY).to_python(py),
        }
    }

    /// Processes the next event. Raises `EmptySchedule` if there is none.
    fn step(this: &Bound<'_, Self>) -> PyResult<()> {
        if Environment::advance(this)? {
            return Ok(());
        }
        let empty = Names::get(this.py())?
            .empty_schedule
            .bind(this.py())
            .call0()?;
        Err(PyErr::from_value(empty))
    }

    /// Runs until no event is left, until a time, or until an event was processed. In the last case the value of the
    /// event is returned.
    ///
    /// Raises RuntimeError if no event is left and the given event has not been triggered.
    #[pyo3(signature = (until=None))]
    fn run<'py>(
        this: &Bound<'py, Self>,
        until: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let end = match until {
            None => None,
            Some(until) => match until.cast::<Event>() {
                Ok(event) => Some(event.clone()),
                Err(_) => Some(Environment::end_at(this, &until)?),
            },
        };
        if let Some(end) = &end
            && !Callbacks::push(end, Callback::Stop)?
        {
            return Event::value_of(end);
        }
        match (Environment::run_all(this), end) {
            (Ok(()), None) => Ok(py.None().into_bound(py)),
            (Ok(()), Some(end)) => Err(PyRuntimeError::new_err(format!(
                "No scheduled events left but \"until\" event was not triggered: {}",
                end.str()?
            ))),
            (Err(error), _) => {
                match error.is_instance(py, Names::get(py)?.stop_simulation.bind(py)) {
                    true => error.value(py).getattr(intern!(py, "args"))?.get_item(0),
                    false => Err(error),
                }
            }
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.active)?;
        visit.call(&self.spare)?;
        visit.call(&self.attributes)?;
        self.agenda
            .entries()
            .iter()
            .try_for_each(|entry| visit.call(&entry.event))
    }

    fn __clear__(&mut self) {
        self.active = None;
        self.spare = None;
        self.attributes = None;
        let _ = self.agenda.take();
    }
}

/// The numbers of the events that will be scheduled.
#[pyclass(module = "corsair._corsair")]
#[derive(Debug)]
pub struct EventNumbers {
    env: Py<Environment>,
}

#[pymethods]
impl EventNumbers {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> u64 {
        let mut env = self.env.bind(py).borrow_mut();
        env.next_id += 1;
        env.next_id - 1
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.env)
    }
}
