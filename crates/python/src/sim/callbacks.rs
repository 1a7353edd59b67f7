//! The callbacks of an event.

use super::agenda::FIRST;
use super::classes::{
    BaseResource, Callback, Callbacks, Condition, Environment, Event, Process, Request,
};
use super::names::Names;
use super::process::Interruption;
use super::release;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};

impl Callback {
    /// Calls the callback for an event that is being processed.
    pub fn call(self, env: &Bound<'_, Environment>, event: &Bound<'_, Event>) -> PyResult<()> {
        let py = env.py();
        match self {
            Callback::Resume(process) => Process::resume(process.bind(py), env, event.clone()),
            Callback::Check(condition) => Condition::check(condition.bind(py), event),
            Callback::BuildValue => Condition::build_value(event.cast()?),
            Callback::Interrupt => Interruption::interrupt(event.cast()?, env),
            Callback::TriggerGet(resource) => BaseResource::trigger_get(resource.bind(py)),
            Callback::TriggerPut(resource) => BaseResource::trigger_put(resource.bind(py)),
            Callback::Renege(request) => Request::renege(request.bind(py)),
            Callback::Stop => Err(stop(event)?),
            Callback::Python(callback) => callback.call1(py, (event,)).map(drop),
        }
    }

    /// Returns the callback as Python sees it: a bound method, equal to all others of the same object.
    pub fn to_python<'py>(&self, event: &Bound<'py, Event>) -> PyResult<Bound<'py, PyAny>> {
        let py = event.py();
        match self {
            Callback::Resume(process) => process.bind(py).getattr(intern!(py, "_resume")),
            Callback::Check(condition) => condition.bind(py).getattr(intern!(py, "_check")),
            Callback::BuildValue => event.getattr(intern!(py, "_build_value")),
            Callback::Interrupt => event.getattr(intern!(py, "_interrupt")),
            Callback::TriggerGet(resource) => {
                resource.bind(py).getattr(intern!(py, "_trigger_get"))
            }
            Callback::TriggerPut(resource) => {
                resource.bind(py).getattr(intern!(py, "_trigger_put"))
            }
            Callback::Renege(request) => request.bind(py).getattr(intern!(py, "_renege")),
            Callback::Stop => Names::get(py)?
                .stop_simulation
                .bind(py)
                .getattr(intern!(py, "callback")),
            Callback::Python(callback) => Ok(callback.bind(py).clone()),
        }
    }

    /// Returns true if both callbacks resume the same process, or check the same condition.
    pub fn is_same(&self, other: &Callback) -> bool {
        match (self, other) {
            (Callback::Resume(a), Callback::Resume(b)) => a.is(b),
            (Callback::Check(a), Callback::Check(b)) => a.is(b),
            _ => false,
        }
    }

    fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Callback::Resume(process) => visit.call(process),
            Callback::Check(condition) => visit.call(condition),
            Callback::TriggerGet(resource) | Callback::TriggerPut(resource) => visit.call(resource),
            Callback::Renege(request) => visit.call(request),
            Callback::Python(callback) => visit.call(callback),
            Callback::BuildValue | Callback::Interrupt | Callback::Stop => Ok(()),
        }
    }
}

/// Returns the exception that ends `Environment.run` when the event is processed.
fn stop(event: &Bound<'_, Event>) -> PyResult<PyErr> {
    let py = event.py();
    let value = Event::value_of(event)?;
    if Event::is_ok(event)? {
        let stop = Names::get(py)?.stop_simulation.bind(py).call1((value,))?;
        return Ok(PyErr::from_value(stop));
    }
    Ok(PyErr::from_value(value))
}

impl Callbacks {
    /// Adds a callback. Returns false if the event was processed.
    pub fn push(event: &Bound<'_, Event>, callback: Callback) -> PyResult<bool> {
        let py = event.py();
        let callbacks = &event.get().callbacks;
        let more = match callbacks.take(py) {
            Callbacks::Processed => {
                callbacks.set(py, Callbacks::Processed);
                return Ok(false);
            }
            Callbacks::None => Callbacks::One(callback),
            Callbacks::One(one) => Callbacks::Many(vec![one, callback]),
            Callbacks::Many(mut many) => {
                many.push(callback);
                Callbacks::Many(many)
            }
            Callbacks::List(list) => {
                let seen = list.bind(py).clone();
                callbacks.set(py, Callbacks::List(list));
                seen.append(callback.to_python(event)?)?;
                return Ok(true);
            }
        };
        callbacks.set(py, more);
        Ok(true)
    }

    /// Removes the first equal callback. Returns false if there is none, or if the event was processed.
    pub fn remove(event: &Bound<'_, Event>, callback: &Callback) -> PyResult<bool> {
        let py = event.py();
        let callbacks = &event.get().callbacks;
        match callbacks.take(py) {
            Callbacks::One(one) if one.is_same(callback) => Ok(true),
            Callbacks::Many(mut many) => {
                let place = many.iter().position(|other| other.is_same(callback));
                let removed = place.map(|place| many.remove(place));
                callbacks.set(py, Callbacks::Many(many));
                Ok(removed.is_some())
            }
            Callbacks::List(list) => {
                let seen = list.bind(py).clone();
                callbacks.set(py, Callbacks::List(list));
                let callback = callback.to_python(event)?;
                let found = seen.contains(&callback)?;
                if found {
                    seen.call_method1(intern!(py, "remove"), (callback,))?;
                }
                Ok(found)
            }
            others => {
                callbacks.set(py, others);
                Ok(false)
            }
        }
    }

    /// Returns the list for Python; `None` if the event was processed.
    pub fn list<'py>(event: &Bound<'py, Event>) -> PyResult<Option<Bound<'py, PyList>>> {
        let py = event.py();
        let callbacks = &event.get().callbacks;
        let list = match callbacks.take(py) {
            Callbacks::Processed => {
                callbacks.set(py, Callbacks::Processed);
                return Ok(None);
            }
            Callbacks::List(list) => list.into_bound(py),
            others => {
                let list = PyList::empty(py);
                for callback in others.into_vec() {
                    list.append(callback.to_python(event)?)?;
                }
                list
            }
        };
        callbacks.set(py, Callbacks::List(list.clone().unbind()));
        Ok(Some(list))
    }

    /// Calls all callbacks in order. An error ends the run; the remaining callbacks are called when the run continues.
    pub fn call_all(self, env: &Bound<'_, Environment>, event: &Bound<'_, Event>) -> PyResult<()> {
        match self {
            Callbacks::None => Ok(()),
            Callbacks::One(one) => one.call(env, event).or_else(|error| {
                suspend(env, event, Callbacks::None, &error)?;
                Err(error)
            }),
            Callbacks::Many(many) => {
                let mut rest = many.into_iter();
                while let Some(callback) = rest.next() {
                    if let Err(error) = callback.call(env, event) {
                        suspend(env, event, Callbacks::Many(rest.collect()), &error)?;
                        return Err(error);
                    }
                }
                Ok(())
            }
            Callbacks::List(list) => {
                let list = list.into_bound(env.py());
                let mut place = 0;
                while place < list.len() {
                    if let Err(error) = list.get_item(place)?.call1((event,)) {
                        let rest = list.get_slice(place + 1, list.len());
                        suspend(env, event, Callbacks::List(rest.unbind()), &error)?;
                        return Err(error);
                    }
                    place += 1;
                }
                Ok(())
            }
            Callbacks::Processed => Err(pyo3::exceptions::PyTypeError::new_err(
                "'NoneType' object is not iterable: the event was processed before; an event is scheduled once",
            )),
        }
    }

    fn into_vec(self) -> Vec<Callback> {
        match self {
            Callbacks::One(one) => vec![one],
            Callbacks::Many(many) => many,
            _ => Vec::new(),
        }
    }

    /// Drops the callbacks of an event that is dropped.
    pub fn release(self) {
        if matches!(self, Callbacks::Processed) {
            return;
        }
        for callback in self.into_vec() {
            match callback {
                Callback::Resume(process) => release::later(process.into_any()),
                Callback::Check(condition) => release::later(condition.into_any()),
                _ => {}
            }
        }
    }

    pub fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Callbacks::None | Callbacks::Processed => Ok(()),
            Callbacks::One(one) => one.traverse(visit),
            Callbacks::Many(many) => many.iter().try_for_each(|one| one.traverse(visit)),
            Callbacks::List(list) => visit.call(list),
        }
    }
}

/// If a callback has stopped the run, returns the remaining callbacks to the event and schedules it again.
fn suspend(
    env: &Bound<'_, Environment>,
    event: &Bound<'_, Event>,
    rest: Callbacks,
    error: &PyErr,
) -> PyResult<()> {
    let py = env.py();
    if !error.is_instance(py, Names::get(py)?.stop_simulation.bind(py)) {
        return Ok(());
    }
    event.get().callbacks.set(py, rest);
    Environment::schedule_event(env, event, FIRST, None)
}
