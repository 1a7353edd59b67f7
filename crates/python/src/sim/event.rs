//! Events, which processes wait for.

use super::agenda::NORMAL;
use super::attached_cell::AttachedCell;
use super::classes::{Callbacks, Condition, Environment, Event, Value};
use super::names::Names;
use super::release;
use pyo3::exceptions::{
    PyAttributeError, PyBaseException, PyRuntimeError, PyStopIteration, PyTypeError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

impl Value {
    pub fn of(value: Bound<'_, PyAny>) -> Value {
        match value.is_none() {
            true => Value::None,
            false => Value::Object(value.unbind()),
        }
    }

    fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Value::Pending => None,
            Value::None => Some(py.None().into_bound(py)),
            Value::Object(value) => Some(value.bind(py).clone()),
        }
    }
}

impl Event {
    fn new_with(env: Option<Py<Environment>>) -> Event {
        Event {
            env: AttachedCell::new(env),
            callbacks: AttachedCell::new(Callbacks::None),
            value: AttachedCell::new(Value::Pending),
            ok: AttachedCell::new(None),
            defused: AttachedCell::new(false),
            attributes: AttachedCell::new(None),
        }
    }

    /// Creates an event without an environment, which `__init__` sets.
    pub fn blank() -> Event {
        Event::new_with(None)
    }

    pub fn pending(env: &Bound<'_, Environment>) -> Event {
        Event::new_with(Some(env.clone().unbind()))
    }

    pub fn triggered(env: &Bound<'_, Environment>, value: Value, callbacks: Callbacks) -> Event {
        let mut event = Event::pending(env);
        *event.callbacks.get_mut() = callbacks;
        *event.value.get_mut() = value;
        *event.ok.get_mut() = Some(true);
        event
    }

    pub fn environment<'py>(this: &Bound<'py, Event>) -> PyResult<Bound<'py, Environment>> {
        this.get().env.object(this.py()).ok_or_else(|| {
            PyRuntimeError::new_err(
                "the event has no environment; call super().__init__(env) in the __init__ of its class",
            )
        })
    }

    pub fn is_triggered(this: &Bound<'_, Event>) -> bool {
        let value = &this.get().value;
        value.with(this.py(), |value| !matches!(value, Value::Pending))
    }

    pub fn is_processed(this: &Bound<'_, Event>) -> bool {
        let callbacks = &this.get().callbacks;
        callbacks.with(this.py(), |callbacks| {
            matches!(callbacks, Callbacks::Processed)
        })
    }

    /// Returns the value, or `None` if the event has not been triggered.
    pub fn value_now<'py>(this: &Bound<'py, Event>) -> Option<Bound<'py, PyAny>> {
        let py = this.py();
        this.get().value.with(py, |value| value.get(py))
    }

    pub fn value_of<'py>(this: &Bound<'py, Event>) -> PyResult<Bound<'py, PyAny>> {
        match Event::value_now(this) {
            Some(value) => Ok(value),
            None => Err(PyAttributeError::new_err(format!(
                "Value of {} is not yet available",
                this.str()?
            ))),
        }
    }

    pub fn is_ok(this: &Bound<'_, Event>) -> PyResult<bool> {
        this.get().ok.get(this.py()).ok_or_else(|| {
            PyAttributeError::new_err(
                "the event has neither succeeded nor failed; trigger it first",
            )
        })
    }

    /// Sets the outcome, and schedules the event for the current time.
    pub fn finish(this: &Bound<'_, Event>, ok: bool, value: Value) -> PyResult<()> {
        let py = this.py();
        if Event::is_triggered(this) {
            return Err(PyRuntimeError::new_err(format!(
                "{} has already been triggered",
                this.str()?
            )));
        }
        this.get().ok.set(py, Some(ok));
        this.get().value.set(py, value);
        let env = Event::environment(this)?;
        Environment::schedule_event(&env, this, NORMAL, None)
    }

    /// Calls all callbacks, and raises the exception of a failed event that was not defused.
    pub fn process(this: &Bound<'_, Event>, env: &Bound<'_, Environment>) -> PyResult<()> {
        let (py, event) = (this.py(), this.get());
        let callbacks = event.callbacks.replace(py, Callbacks::Processed);
        callbacks.call_all(env, this)?;
        match event.ok.get(py) {
            Some(true) => Ok(()),
            Some(false) if event.defused.get(py) => Ok(()),
            Some(false) => Err(PyErr::from_value(fresh_exception(&Event::value_of(this)?)?)),
            None => Event::is_ok(this).map(drop),
        }
    }

    /// True if a model has set attributes.
    pub fn has_attributes(this: &Bound<'_, Event>) -> bool {
        let attributes = &this.get().attributes;
        attributes.with(this.py(), |attributes| attributes.is_some())
    }

    /// Returns the attributes that a model has set.
    fn attributes<'py>(this: &Bound<'py, Event>) -> Bound<'py, PyDict> {
        let py = this.py();
        let found = this.get().attributes.object(py);
        found.unwrap_or_else(|| {
            let made = PyDict::new(py);
            this.get().attributes.set(py, Some(made.clone().unbind()));
            made
        })
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

/// Returns a copy of a failed event's exception, with the original as its cause, so that several processes can raise
/// it.
pub fn fresh_exception<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let arguments = value.getattr(intern!(py, "args"))?.cast_into::<PyTuple>()?;
    let fresh = value.get_type().call1(arguments)?;
    fresh.setattr(intern!(py, "__cause__"), value)?;
    Ok(fresh)
}

/// Returns the method with which a class attribute of this name (a descriptor) sets or deletes the attribute in an
/// instance, if there is such a method.
fn descriptor<'py>(
    event: &Bound<'py, Event>,
    name: &Bound<'py, PyString>,
    method: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match event.get_type().getattr_opt(name)? {
        Some(found) => found.getattr_opt(method),
        None => Ok(None),
    }
}

#[pymethods]
impl Event {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Event {
        Event::blank()
    }

    fn __init__(this: &Bound<'_, Self>, env: &Bound<'_, Environment>) {
        this.get().env.set(this.py(), Some(env.clone().unbind()));
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
        this.get().callbacks.set(this.py(), callbacks);
    }

    /// True if the event has been triggered: it has a value, and is or was scheduled.
    #[getter(triggered)]
    fn get_triggered(this: &Bound<'_, Self>) -> bool {
        Event::is_triggered(this)
    }

    /// True if the event's callbacks have been called.
    #[getter(processed)]
    fn get_processed(this: &Bound<'_, Self>) -> bool {
        Event::is_processed(this)
    }

    /// True if the event has succeeded, False if it has failed. Raises AttributeError if it has not been triggered.
    #[getter(ok)]
    fn get_ok(this: &Bound<'_, Self>) -> PyResult<bool> {
        Event::is_ok(this)
    }

    /// True if the exception of the failed event was handled, and does not end the run.
    #[getter(defused)]
    fn get_defused(this: &Bound<'_, Self>) -> bool {
        this.get().defused.get(this.py())
    }

    /// Marks the exception as handled. The assigned value is ignored.
    #[setter(defused)]
    fn set_defused(this: &Bound<'_, Self>, _value: &Bound<'_, PyAny>) {
        this.get().defused.set(this.py(), true);
    }

    /// The value of the event. Raises AttributeError if the event has not been triggered.
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
        this.get().ok.set(this.py(), Some(ok));
    }

    #[getter(_value)]
    fn get_raw_value<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match Event::value_now(this) {
            Some(value) => Ok(value),
            None => Ok(Names::get(this.py())?.pending.bind(this.py()).clone()),
        }
    }

    #[setter(_value)]
    fn set_raw_value(this: &Bound<'_, Self>, value: Bound<'_, PyAny>) -> PyResult<()> {
        let is_pending = value.is(Names::get(this.py())?.pending.bind(this.py()));
        let value = if is_pending {
            Value::Pending
        } else {
            Value::of(value)
        };
        this.get().value.set(this.py(), value);
        Ok(())
    }

    /// Triggers the event with the outcome of another event. The method can be a callback of the other event.
    fn trigger(this: &Bound<'_, Self>, event: &Bound<'_, Event>) -> PyResult<()> {
        let ok = Event::is_ok(event)?;
        let value = Event::get_raw_value(event)?;
        this.get().ok.set(this.py(), Some(ok));
        this.get().value.set(this.py(), Value::of(value));
        Environment::schedule_event(&Event::environment(this)?, this, NORMAL, None)
    }

    /// Triggers the event with a value, and returns the event. Raises RuntimeError if the event was triggered before.
    #[pyo3(signature = (value=None))]
    fn succeed<'py>(
        this: &Bound<'py, Self>,
        value: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Event>> {
        Event::finish(this, true, value.map_or(Value::None, Value::of))?;
        Ok(this.clone())
    }

    /// Fails the event with an exception, and returns the event. Raises RuntimeError if the event was triggered before.
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
        Event::finish(this, false, Value::of(exception))?;
        Ok(this.clone())
    }

    /// A condition that is triggered when this event and the other one have been processed.
    fn __and__<'py>(
        this: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Event::condition(this, other, true)
    }

    /// A condition that is triggered when this event or the other one has been processed.
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

    /// The attributes that a model has set.
    #[getter(__dict__)]
    fn get_dict<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyDict> {
        Event::attributes(this)
    }

    /// Looks up an attribute that the class does not have among the attributes that a model has set.
    fn __getattr__<'py>(
        this: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let attributes = this.get().attributes.object(py);
        if let Some(attributes) = attributes
            && let Some(found) = attributes.get_item(name)?
        {
            return Ok(found);
        }
        // If a property of the class has raised AttributeError, it is called again, for its message.
        let object = py.get_type::<PyAny>();
        object.call_method1(intern!(py, "__getattribute__"), (this, name))
    }

    fn __setattr__(
        this: &Bound<'_, Self>,
        name: &Bound<'_, PyString>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = this.py();
        match descriptor(this, name, intern!(py, "__set__"))? {
            Some(set) => set.call1((this, value)).map(drop),
            None => {
                let attributes = this.getattr(intern!(py, "__dict__"))?;
                // An attribute of the class would take precedence.
                if this.get_type().hasattr(name)? && attributes.is(Event::attributes(this)) {
                    return Err(PyAttributeError::new_err(format!(
                        "'{}' object attribute '{name}' is read-only; override it in a subclass",
                        this.get_type().name()?
                    )));
                }
                attributes.set_item(name, value)
            }
        }
    }

    fn __delattr__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        let py = this.py();
        if let Some(delete) = descriptor(this, name, intern!(py, "__delete__"))? {
            return delete.call1((this,)).map(drop);
        }
        let attributes = this.getattr(intern!(py, "__dict__"))?;
        if !attributes.contains(name)? {
            return Err(PyAttributeError::new_err(name.clone().unbind()));
        }
        attributes.del_item(name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.env.visit(|env| visit.call(env))?;
        self.attributes.visit(|attributes| visit.call(attributes))?;
        self.value.visit(|value| match value {
            Value::Object(value) => visit.call(value),
            Value::Pending | Value::None => Ok(()),
        })?;
        self.callbacks.visit(|callbacks| callbacks.traverse(visit))
    }

    fn __clear__(&self) {
        Python::attach(|py| {
            self.env.set(py, None);
            self.attributes.set(py, None);
            self.value.set(py, Value::Pending);
            self.callbacks.set(py, Callbacks::Processed);
        });
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Value::Object(value) = std::mem::take(self.value.get_mut()) {
            release::later(value);
        }
        std::mem::replace(self.callbacks.get_mut(), Callbacks::Processed).release();
    }
}

/// The iterator of `await event`. It first yields the event, for which the process waits, and then returns the event's
/// value.
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

/// Returns Python's True or False.
pub fn truth(py: Python<'_>, value: bool) -> Bound<'_, PyAny> {
    PyBool::new(py, value).to_owned().into_any()
}
