//! Events: what processes wait for.

use super::callbacks::Callbacks;
use super::condition::Condition;
use super::environment::{Environment, NORMAL};
use super::names::Names;
use super::number::Number;
use super::release;
use pyo3::exceptions::{
    PyAttributeError, PyBaseException, PyRuntimeError, PyStopIteration, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

/// Something that may happen at a point in time.
///
/// An event is triggered once, by `succeed`, `fail` or `trigger`, and processed when its time comes: then its
/// `callbacks` are called with it, in order, and processes that wait for it resume. A failed event raises its exception
/// in every process that waits for it. If no process waits for it, the exception ends the run, unless a callback sets
/// `defused`.
#[pyclass(subclass, dict, weakref, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Event {
    pub env: Option<Py<Environment>>,
    pub callbacks: Callbacks,
    /// None until the event is triggered.
    pub value: Option<Py<PyAny>>,
    pub ok: Option<bool>,
    pub defused: bool,
}

impl Event {
    /// An event without an environment: `__init__` gives it one.
    pub fn blank() -> Event {
        Event {
            env: None,
            callbacks: Callbacks::None,
            value: None,
            ok: None,
            defused: false,
        }
    }

    pub fn pending(env: &Bound<'_, Environment>) -> Event {
        let mut event = Event::blank();
        event.env = Some(env.clone().unbind());
        event
    }

    pub fn triggered(
        env: &Bound<'_, Environment>,
        value: Py<PyAny>,
        callbacks: Callbacks,
    ) -> Event {
        Event {
            env: Some(env.clone().unbind()),
            callbacks,
            value: Some(value),
            ok: Some(true),
            defused: false,
        }
    }

    pub fn environment<'py>(this: &Bound<'py, Event>) -> PyResult<Bound<'py, Environment>> {
        match &this.borrow_mut().env {
            Some(env) => Ok(env.bind(this.py()).clone()),
            None => Err(PyRuntimeError::new_err(
                "the event has no environment; call super().__init__(env) in the __init__ of its class",
            )),
        }
    }

    pub fn is_triggered(this: &Bound<'_, Event>) -> bool {
        this.borrow_mut().value.is_some()
    }

    pub fn value_of<'py>(this: &Bound<'py, Event>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        if let Some(value) = &this.borrow_mut().value {
            return Ok(value.bind(py).clone());
        }
        Err(PyAttributeError::new_err(format!(
            "Value of {} is not yet available",
            this.str()?
        )))
    }

    pub fn is_ok(this: &Bound<'_, Event>) -> PyResult<bool> {
        let ok = this.borrow_mut().ok;
        ok.ok_or_else(|| {
            PyAttributeError::new_err(
                "the event has neither succeeded nor failed; trigger it first",
            )
        })
    }

    /// Sets the outcome and schedules the event for now.
    pub fn finish(this: &Bound<'_, Event>, ok: bool, value: Bound<'_, PyAny>) -> PyResult<()> {
        let env = {
            let mut inner = this.borrow_mut();
            if inner.value.is_some() {
                drop(inner);
                return Err(PyRuntimeError::new_err(format!(
                    "{} has already been triggered",
                    this.str()?
                )));
            }
            (inner.ok, inner.value) = (Some(ok), Some(value.unbind()));
            inner.env.as_ref().map(|env| env.clone_ref(this.py()))
        };
        match env {
            Some(env) => Environment::schedule_event(env.bind(this.py()), this, NORMAL, None),
            None => Event::environment(this).map(drop),
        }
    }

    /// Calls all callbacks, and raises the exception of a failed event that nobody has defused.
    pub fn process(this: &Bound<'_, Event>, env: &Bound<'_, Environment>) -> PyResult<()> {
        let callbacks = std::mem::replace(&mut this.borrow_mut().callbacks, Callbacks::Processed);
        callbacks.call_all(env, this)?;
        let (ok, defused) = {
            let inner = this.borrow_mut();
            (inner.ok, inner.defused)
        };
        match ok {
            Some(false) if !defused => {
                Err(PyErr::from_value(fresh_exception(&Event::value_of(this)?)?))
            }
            Some(_) => Ok(()),
            None => Event::is_ok(this).map(drop),
        }
    }

    fn condition<'py>(
        this: &Bound<'py, Event>,
        other: &Bound<'py, PyAny>,
        all: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let Ok(other) = other.cast::<Event>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let events = PyTuple::new(py, [this, other])?;
        let condition = Condition::new_in(&Event::environment(this)?, all, &events)?;
        Ok(condition.into_any())
    }
}

/// A copy of a failed event's exception, caused by it, so that several processes can raise it.
pub fn fresh_exception<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let arguments = value.getattr(intern!(py, "args"))?.cast_into::<PyTuple>()?;
    let fresh = value.get_type().call1(arguments)?;
    fresh.setattr(intern!(py, "__cause__"), value)?;
    Ok(fresh)
}

#[pymethods]
impl Event {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Event {
        Event::blank()
    }

    fn __init__(this: &Bound<'_, Self>, env: &Bound<'_, Environment>) {
        this.borrow_mut().env = Some(env.clone().unbind());
    }

    /// The environment of the event.
    #[getter(env)]
    fn get_env<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, Environment>> {
        Event::environment(this)
    }

    /// The functions that are called with the event when it is processed; None afterwards.
    #[getter(callbacks)]
    fn get_callbacks<'py>(this: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyList>>> {
        Callbacks::list(this)
    }

    #[setter(callbacks)]
    fn set_callbacks(this: &Bound<'_, Self>, callbacks: Option<Bound<'_, PyList>>) {
        let callbacks = match callbacks {
            Some(list) => Callbacks::List(list.unbind()),
            None => Callbacks::Processed,
        };
        let before = std::mem::replace(&mut this.borrow_mut().callbacks, callbacks);
        drop(before);
    }

    /// True if the event has been triggered: it has a value, and is or was scheduled.
    #[getter(triggered)]
    fn get_triggered(this: &Bound<'_, Self>) -> bool {
        Event::is_triggered(this)
    }

    /// True if the event's callbacks have been called.
    #[getter(processed)]
    fn get_processed(this: &Bound<'_, Self>) -> bool {
        matches!(this.borrow_mut().callbacks, Callbacks::Processed)
    }

    /// True if the event has succeeded, False if it has failed. Raises AttributeError before either.
    #[getter(ok)]
    fn get_ok(this: &Bound<'_, Self>) -> PyResult<bool> {
        Event::is_ok(this)
    }

    /// True if the exception of the failed event was handled, and does not end the run.
    #[getter(defused)]
    fn get_defused(this: &Bound<'_, Self>) -> bool {
        this.borrow_mut().defused
    }

    /// Marks the exception as handled, whatever the value.
    #[setter(defused)]
    fn set_defused(this: &Bound<'_, Self>, _value: &Bound<'_, PyAny>) {
        this.borrow_mut().defused = true;
    }

    /// The value of the event. Raises AttributeError if it was not triggered.
    #[getter(value)]
    fn get_value<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Event::value_of(this)
    }

    #[getter(_ok)]
    fn get_raw_ok(this: &Bound<'_, Self>) -> PyResult<bool> {
        Event::is_ok(this)
    }

    #[setter(_ok)]
    fn set_raw_ok(this: &Bound<'_, Self>, ok: bool) {
        this.borrow_mut().ok = Some(ok);
    }

    #[getter(_value)]
    fn get_raw_value<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match &this.borrow_mut().value {
            Some(value) => Ok(value.bind(this.py()).clone()),
            None => Ok(Names::get(this.py())?.pending.bind(this.py()).clone()),
        }
    }

    #[setter(_value)]
    fn set_raw_value(this: &Bound<'_, Self>, value: Bound<'_, PyAny>) -> PyResult<()> {
        let is_pending = value.is(Names::get(this.py())?.pending.bind(this.py()));
        let value = (!is_pending).then(|| value.unbind());
        let before = std::mem::replace(&mut this.borrow_mut().value, value);
        drop(before);
        Ok(())
    }

    /// Triggers the event with the outcome of another; can be used as a callback of it.
    fn trigger(this: &Bound<'_, Self>, event: &Bound<'_, Event>) -> PyResult<()> {
        let ok = Event::is_ok(event)?;
        let value = Event::get_raw_value(event)?;
        {
            let mut inner = this.borrow_mut();
            (inner.ok, inner.value) = (Some(ok), Some(value.unbind()));
        }
        Environment::schedule_event(&Event::environment(this)?, this, NORMAL, None)
    }

    /// Triggers the event with a value, and returns it. Raises RuntimeError if it was triggered before.
    #[pyo3(signature = (value=None))]
    fn succeed<'py>(
        this: &Bound<'py, Self>,
        value: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Event>> {
        let value = value.unwrap_or_else(|| this.py().None().into_bound(this.py()));
        Event::finish(this, true, value)?;
        Ok(this.clone())
    }

    /// Lets the event fail with an exception, and returns it. Raises RuntimeError if it was triggered before.
    fn fail<'py>(
        this: &Bound<'py, Self>,
        exception: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Event>> {
        if !Event::is_triggered(this) && !exception.is_instance_of::<PyBaseException>() {
            return Err(PyTypeError::new_err(format!(
                "{} is not an exception.",
                exception.str()?
            )));
        }
        Event::finish(this, false, exception)?;
        Ok(this.clone())
    }

    /// Both events: a condition that is triggered when this and the other have been processed.
    fn __and__<'py>(
        this: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Event::condition(this, other, true)
    }

    /// Either event: a condition that is triggered when this or the other has been processed.
    fn __or__<'py>(
        this: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Event::condition(this, other, false)
    }

    /// Waits for the event in an `async def` process, and returns its value.
    fn __await__(this: &Bound<'_, Self>) -> Wait {
        Wait {
            event: this.clone().unbind(),
            is_awaited: false,
        }
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        let description = this.call_method0(intern!(this.py(), "_desc"))?;
        Ok(format!(
            "<{} object at {:#x}>",
            description.str()?,
            this.as_ptr() as usize
        ))
    }

    fn _desc(this: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("{}()", this.get_type().name()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.env)?;
        visit.call(&self.value)?;
        self.callbacks.traverse(visit)
    }

    fn __clear__(&mut self) {
        self.env = None;
        self.value = None;
        self.callbacks = Callbacks::Processed;
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            release::later(value);
        }
        std::mem::replace(&mut self.callbacks, Callbacks::Processed).release();
    }
}

/// An event that is processed when a delay has passed.
#[pyclass(extends = Event, subclass, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Timeout {
    delay: Number,
}

impl Timeout {
    pub fn new_in<'py>(
        env: &Bound<'py, Environment>,
        delay: &Bound<'py, PyAny>,
        value: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Timeout>> {
        let delay = Timeout::checked(delay)?;
        let value = value.map_or_else(|| env.py().None(), Bound::unbind);
        let due = delay.clone_ref(env.py());
        let event = PyClassInitializer::from(Event::triggered(env, value, Callbacks::None));
        let timeout = Bound::new(env.py(), event.add_subclass(Timeout { delay }))?;
        Environment::schedule_event(env, timeout.as_super(), NORMAL, Some(due))?;
        Ok(timeout)
    }

    fn checked(delay: &Bound<'_, PyAny>) -> PyResult<Number> {
        let number = Number::of(delay);
        if number.is_less(delay.py(), &Number::Int(0))? {
            return Err(PyValueError::new_err(format!(
                "Negative delay {}",
                delay.str()?
            )));
        }
        if number.is_nan() {
            return Err(PyValueError::new_err(
                "the delay is not a number; give 0 or more",
            ));
        }
        Ok(number)
    }
}

#[pymethods]
impl Timeout {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Timeout> {
        PyClassInitializer::from(Event::blank()).add_subclass(Timeout {
            delay: Number::Int(0),
        })
    }

    #[pyo3(signature = (env, delay, value=None))]
    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        delay: &Bound<'_, PyAny>,
        value: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let delay = Timeout::checked(delay)?;
        let due = delay.clone_ref(env.py());
        {
            let mut inner = this.borrow_mut();
            inner.delay = delay;
            let event = inner.as_super();
            event.env = Some(env.clone().unbind());
            event.value = Some(value.unwrap_or_else(|| env.py().None()));
            event.ok = Some(true);
        }
        Environment::schedule_event(env, this.as_super(), NORMAL, Some(due))
    }

    #[getter]
    fn _delay<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        this.borrow().delay.to_python(this.py())
    }

    fn _desc(this: &Bound<'_, Self>) -> PyResult<String> {
        let value = Event::value_of(this.as_super())?;
        let value = match value.is_none() {
            true => String::new(),
            false => format!(", value={}", value.str()?),
        };
        Ok(format!(
            "{}({}{value})",
            this.get_type().name()?,
            Timeout::_delay(this).str()?
        ))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.delay {
            Number::Other(delay) => visit.call(delay),
            _ => Ok(()),
        }
    }

    fn __clear__(&mut self) {
        self.delay = Number::Int(0);
    }
}

/// What `await event` iterates over: the event, for the process to wait for, and then the event's value.
#[pyclass(module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Wait {
    event: Py<Event>,
    is_awaited: bool,
}

#[pymethods]
impl Wait {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let event = self.event.bind(py);
        if self.is_awaited {
            return Err(PyStopIteration::new_err(
                (Event::value_of(event)?.unbind(),),
            ));
        }
        self.is_awaited = true;
        Ok(event.clone().into_any())
    }

    fn send<'py>(
        &mut self,
        py: Python<'py>,
        _value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.__next__(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event)
    }
}

/// True or False of Python.
pub fn truth(py: Python<'_>, value: bool) -> Bound<'_, PyAny> {
    PyBool::new(py, value).to_owned().into_any()
}
