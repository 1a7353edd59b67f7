//! Puts and gets: requests to a resource.

use super::queue::{enqueue, remove};
use crate::sim::classes::{
    BaseResource, Callback, Callbacks, Environment, Event, Process, Put, RequestFields,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

impl RequestFields {
    fn of(resource: &Bound<'_, BaseResource>, env: &Bound<'_, Environment>) -> RequestFields {
        RequestFields {
            resource: Some(resource.clone().unbind()),
            process: Environment::active_process(env),
        }
    }

    fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.resource)?;
        visit.call(&self.process)
    }
}

/// A request to get something from a resource. Used as a context manager, it is cancelled at the end if it is still
/// waiting.
#[pyclass(extends = Event, subclass, module = "corsair.sim.resources.base")]
#[derive(Debug, Default)]
pub struct Get {
    pub asked: RequestFields,
}

impl Put {
    /// Implements `__init__`: the request joins the queue, and may be served at once.
    pub fn begin(this: &Bound<'_, Put>, resource: &Bound<'_, BaseResource>) -> PyResult<()> {
        let env = BaseResource::environment(resource)?;
        let asked = RequestFields::of(resource, &env);
        this.borrow_mut().asked = asked;
        let event = this.as_super().get();
        event.env.set(this.py(), Some(env.unbind()));
        enqueue(&BaseResource::puts(resource)?, this)?;
        Callbacks::push(
            this.as_super(),
            Callback::TriggerGet(resource.clone().unbind()),
        )?;
        BaseResource::trigger_put(resource)
    }

    pub fn resource_of<'py>(this: &Bound<'py, Put>) -> Option<Bound<'py, BaseResource>> {
        let inner = this.borrow_mut();
        Some(inner.asked.resource.as_ref()?.bind(this.py()).clone())
    }

    pub fn process_of(this: &Bound<'_, Put>) -> Option<Py<Process>> {
        let inner = this.borrow_mut();
        Some(inner.asked.process.as_ref()?.clone_ref(this.py()))
    }

    /// Removes the request from the queue, unless it was served.
    pub fn withdraw(this: &Bound<'_, Put>) -> PyResult<()> {
        match Put::resource_of(this) {
            Some(resource) if !Event::is_triggered(this.as_super()) => {
                leave(&BaseResource::puts(&resource)?, this)?;
                BaseResource::changed(&resource)
            }
            _ => Ok(()),
        }
    }
}

impl Get {
    /// Implements `__init__`: the request joins the queue, and may be served at once.
    pub fn begin(this: &Bound<'_, Get>, resource: &Bound<'_, BaseResource>) -> PyResult<()> {
        let env = BaseResource::environment(resource)?;
        let asked = RequestFields::of(resource, &env);
        this.borrow_mut().asked = asked;
        let event = this.as_super().get();
        event.env.set(this.py(), Some(env.unbind()));
        enqueue(&BaseResource::gets(resource)?, this)?;
        Callbacks::push(
            this.as_super(),
            Callback::TriggerPut(resource.clone().unbind()),
        )?;
        BaseResource::trigger_get(resource)
    }

    fn withdraw(this: &Bound<'_, Get>) -> PyResult<()> {
        let resource = this
            .borrow()
            .asked
            .resource
            .as_ref()
            .map(|found| found.clone_ref(this.py()));
        match resource {
            Some(resource) if !Event::is_triggered(this.as_super()) => {
                let resource = resource.bind(this.py());
                leave(&BaseResource::gets(resource)?, this)?;
                BaseResource::changed(resource)
            }
            _ => Ok(()),
        }
    }
}

fn leave(queue: &Bound<'_, PyAny>, event: &Bound<'_, PyAny>) -> PyResult<()> {
    match queue.cast::<PyList>() {
        Ok(list) if remove(list, event)? => Ok(()),
        Ok(_) => Err(PyValueError::new_err(
            "the request does not wait in its queue",
        )),
        Err(_) => queue
            .call_method1(intern!(queue.py(), "remove"), (event,))
            .map(drop),
    }
}

#[pymethods]
impl Put {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Put> {
        PyClassInitializer::from(Event::blank()).add_subclass(Put::default())
    }

    fn __init__(this: &Bound<'_, Self>, resource: &Bound<'_, BaseResource>) -> PyResult<()> {
        Put::begin(this, resource)
    }

    /// The resource of the request.
    #[getter]
    fn resource<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, BaseResource>> {
        Put::resource_of(this)
    }

    /// The process that made the request; None if it was made outside of processes.
    #[getter]
    fn proc(this: &Bound<'_, Self>) -> Option<Py<Process>> {
        Put::process_of(this)
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(this: &Bound<'_, Self>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        this.call_method0(intern!(this.py(), "cancel")).map(drop)
    }

    /// Cancels the request if it is still waiting.
    fn cancel(this: &Bound<'_, Self>) -> PyResult<()> {
        Put::withdraw(this)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.asked.traverse(visit)
    }

    fn __clear__(&mut self) {
        self.asked = RequestFields::default();
    }
}

#[pymethods]
impl Get {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Get> {
        PyClassInitializer::from(Event::blank()).add_subclass(Get::default())
    }

    fn __init__(this: &Bound<'_, Self>, resource: &Bound<'_, BaseResource>) -> PyResult<()> {
        Get::begin(this, resource)
    }

    /// The resource of the request.
    #[getter]
    fn resource<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, BaseResource>> {
        let inner = this.borrow();
        Some(inner.asked.resource.as_ref()?.bind(this.py()).clone())
    }

    /// The process that made the request; None if it was made outside of processes.
    #[getter]
    fn proc(this: &Bound<'_, Self>) -> Option<Py<Process>> {
        let inner = this.borrow();
        Some(inner.asked.process.as_ref()?.clone_ref(this.py()))
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(this: &Bound<'_, Self>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        this.call_method0(intern!(this.py(), "cancel")).map(drop)
    }

    /// Cancels the request if it is still waiting.
    fn cancel(this: &Bound<'_, Self>) -> PyResult<()> {
        Get::withdraw(this)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.asked.traverse(visit)
    }

    fn __clear__(&mut self) {
        self.asked = RequestFields::default();
    }
}
