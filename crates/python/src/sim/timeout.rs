//! Events that are processed when a delay has passed.

use super::agenda::NORMAL;
use super::attached_cell::{AttachedCell, has_weak_references, is_only_reference};
use super::classes::{Callbacks, Environment, Event, Timeout, Value};
use super::names::Names;
use super::number::Number;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

impl Timeout {
    pub fn new_in<'py>(
        env: &Bound<'py, Environment>,
        delay: &Bound<'py, PyAny>,
        value: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Timeout>> {
        let py = env.py();
        let delay = Timeout::checked(delay)?;
        let value = value.map_or(Value::None, Value::of);
        let due = delay.clone_ref(py);
        let spare = env.borrow_mut().spare.take();
        if let Some(spare) = spare {
            let spare = spare.into_bound(py);
            spare.get().delay.set(py, delay);
            let event = spare.as_super().get();
            event.env.set(py, Some(env.clone().unbind()));
            event.value.set(py, value);
            Environment::schedule_event(env, spare.as_super(), NORMAL, Some(due))?;
            return Ok(spare);
        }
        let event = PyClassInitializer::from(Event::triggered(env, value, Callbacks::None));
        let timeout = Bound::new(
            py,
            event.add_subclass(Timeout {
                delay: AttachedCell::new(delay),
            }),
        )?;
        Environment::schedule_event(env, timeout.as_super(), NORMAL, Some(due))?;
        Ok(timeout)
    }

    /// Prepares a processed event for reuse by [`Timeout::new_in`], if there is no other reference to the event.
    pub fn recycle(event: Bound<'_, Event>, env: &Bound<'_, Environment>) -> PyResult<()> {
        let py = env.py();
        if !is_only_reference(&event) || !event.is_exact_instance_of::<Timeout>() {
            return Ok(());
        }
        if Event::has_attributes(&event) {
            return Ok(());
        }
        if has_weak_references(&event, Names::get(py)?.weak_list) {
            return Ok(());
        }
        let Ok(spare) = event.cast_into::<Timeout>() else {
            return Ok(());
        };
        let event = spare.as_super().get();
        // The spare event does not refer to its environment, because the cycle could be freed only by the garbage
        // collector.
        if let Some(env) = event.env.take(py) {
            env.drop_ref(py);
        }
        // Dropping the value may run Python code, which can no longer reach the event.
        event.value.set(py, Value::None);
        event.ok.set(py, Some(true));
        event.defused.set(py, false);
        event.callbacks.set(py, Callbacks::None);
        spare.get().delay.set(py, Number::Int(0));
        let before = env.borrow_mut().spare.replace(spare.unbind());
        drop(before);
        Ok(())
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
            delay: AttachedCell::new(Number::Int(0)),
        })
    }

    #[pyo3(signature = (env, delay, value=None))]
    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        delay: &Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = env.py();
        let delay = Timeout::checked(delay)?;
        let due = delay.clone_ref(py);
        this.get().delay.set(py, delay);
        let event = this.as_super().get();
        event.env.set(py, Some(env.clone().unbind()));
        event.value.set(py, value.map_or(Value::None, Value::of));
        event.ok.set(py, Some(true));
        Environment::schedule_event(env, this.as_super(), NORMAL, Some(due))
    }

    #[getter]
    fn _delay<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        let py = this.py();
        this.get().delay.with(py, |delay| delay.to_python(py))
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
        self.delay.visit(|delay| match delay {
            Number::Other(delay) => visit.call(delay),
            _ => Ok(()),
        })
    }

    fn __clear__(&self) {
        Python::attach(|py| self.delay.set(py, Number::Int(0)));
    }
}
