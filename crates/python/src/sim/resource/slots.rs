//! Resources with a limited number of slots, which are granted in the order of requests, by priority, or with
//! preemption.

use super::queue::remove;
use super::request::Get;
use crate::sim::classes::{
    BaseResource, Callback, Callbacks, Discipline, Environment, Event, Put, Request, Timeout, Value,
};
use crate::sim::names::Names;
use crate::sim::number::{Number, positive};
use pyo3::exceptions::PyGeneratorExit;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

/// A resource with slots, which processes request and release.
#[pyclass(extends = BaseResource, subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Resource {
    users: Py<PyList>,
}

/// A resource whose queue is ordered by priority; smaller numbers are served first.
#[pyclass(extends = Resource, subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct PriorityResource {}

/// A resource whose requests can preempt a user with a lower priority; that user is interrupted.
#[pyclass(extends = PriorityResource, subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct PreemptiveResource {}

/// A request for a slot with a priority.
#[pyclass(extends = Request, subclass, module = "corsair.sim.resources.resource")]
#[derive(Debug)]
pub struct PriorityRequest {
    priority: Number,
    preempt: bool,
    time: Number,
    key: Option<Py<PyAny>>,
}

/// An event that releases a slot.
#[pyclass(extends = Get, subclass, module = "corsair.sim.resources.resource")]
#[derive(Debug, Default)]
pub struct Release {
    request: Option<Py<PyAny>>,
}

fn users<'py>(this: &Bound<'py, Resource>) -> Bound<'py, PyList> {
    this.borrow_mut().users.bind(this.py()).clone()
}

/// Grants a slot if one is free.
pub fn put(this: &Bound<'_, Resource>, event: &Bound<'_, Request>) -> PyResult<bool> {
    let users = users(this);
    if !BaseResource::has_room(this.as_super(), users.len())? {
        return Ok(false);
    }
    users.append(event)?;
    let now = Environment::now(&BaseResource::environment(this.as_super())?);
    event.borrow_mut().usage_since = Some(now);
    Event::finish(event.as_super().as_super(), true, Value::None).map(|()| false)
}

/// Grants a slot, if necessary by preempting the user with the lowest priority.
pub fn put_or_preempt(
    this: &Bound<'_, Resource>,
    event: &Bound<'_, PriorityRequest>,
) -> PyResult<bool> {
    let py = this.py();
    let users = users(this);
    if event.borrow().preempt && !BaseResource::has_room(this.as_super(), users.len())? {
        let mut least: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = None;
        for user in &users {
            let key = user.getattr(intern!(py, "key"))?;
            if least
                .as_ref()
                .map_or(Ok(true), |(_, least)| key.gt(least))?
            {
                least = Some((user, key));
            }
        }
        let own = event.getattr(intern!(py, "key"))?;
        if let Some((user, key)) = least
            && key.gt(&own)?
        {
            remove(&users, &user)?;
            let by = Put::process_of(event.as_super().as_super());
            let since = user.getattr(intern!(py, "usage_since"))?;
            let cause = Names::get(py)?
                .preempted
                .bind(py)
                .call1((by, since, this))?;
            user.getattr(intern!(py, "proc"))?
                .call_method1(intern!(py, "interrupt"), (cause,))?;
        }
    }
    put(this, event.as_super())
}

/// Takes back the slot of a request, if the request has one.
pub fn get(this: &Bound<'_, Resource>, event: &Bound<'_, Release>) -> PyResult<bool> {
    let py = this.py();
    let request = event
        .borrow_mut()
        .request
        .as_ref()
        .map(|request| request.bind(py).clone());
    if let Some(request) = request {
        remove(&users(this), &request)?;
    }
    Event::finish(event.as_super().as_super(), true, Value::None).map(|()| false)
}

/// The patience of a customer, and the longest queue that the customer joins; each is a number or a distribution.
struct Temper<'a, 'py> {
    patience: Option<&'a Bound<'py, PyAny>>,
    balk: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Temper<'_, 'py> {
    fn sample(
        env: &Bound<'py, Environment>,
        given: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(given) = given else { return Ok(None) };
        Names::get(env.py())?
            .sample
            .bind(env.py())
            .call1((env, given))
            .map(Some)
    }

    /// Makes a request, unless the queue is too long. A waiting request ends when its patience is over.
    fn begin(
        &self,
        request: &Bound<'py, Request>,
        resource: &Bound<'py, Resource>,
    ) -> PyResult<()> {
        let base = resource.as_super();
        if self.patience.is_none() && self.balk.is_none() {
            return Put::begin(request.as_super(), base);
        }
        let py = request.py();
        let env = BaseResource::environment(base)?;
        let longest = Temper::sample(&env, self.balk)?;
        let patience = Temper::sample(&env, self.patience)?;
        if let Some(longest) = longest
            && !BaseResource::has_room(base, users(resource).len())?
            && longest.le(BaseResource::puts(base)?.len()?)?
        {
            let event = request.as_super().as_super().get();
            event.env.set(py, Some(env.unbind()));
            return give_up(request, intern!(py, "balked"));
        }
        Put::begin(request.as_super(), base)?;
        if let Some(patience) = patience
            && !Event::is_triggered(request.as_super().as_super())
        {
            let end = Timeout::new_in(&env, &patience, None)?;
            Callbacks::push(end.as_super(), Callback::Renege(request.clone().unbind()))?;
        }
        Ok(())
    }
}

/// Ends a request that was not granted, with the reason as its value.
fn give_up(request: &Bound<'_, Request>, why: &Bound<'_, PyString>) -> PyResult<()> {
    Event::finish(
        request.as_super().as_super(),
        true,
        Value::of(why.clone().into_any()),
    )
}

impl Request {
    /// Ends a waiting request when its patience has ended.
    pub fn renege(this: &Bound<'_, Request>) -> PyResult<()> {
        let put = this.as_super();
        if Event::is_triggered(put.as_super()) {
            return Ok(());
        }
        // A cancelled request does not wait, and its event is never triggered.
        let Some(resource) = Put::resource_of(put) else {
            return Ok(());
        };
        if !BaseResource::puts(&resource)?.contains(this)? {
            return Ok(());
        }
        Put::withdraw(put)?;
        give_up(this, intern!(this.py(), "reneged"))
    }

    fn leave(this: &Bound<'_, Request>, raised: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = this.py();
        Put::withdraw(this.as_super())?;
        // A closed generator keeps its slot, because releasing it would resume other processes during the cleanup.
        if raised.is_some_and(|raised| raised.is(py.get_type::<PyGeneratorExit>())) {
            return Ok(());
        }
        let Some(resource) = Put::resource_of(this.as_super()) else {
            return Ok(());
        };
        match resource.cast::<Resource>() {
            Ok(resource) if BaseResource::releases_plainly(resource.as_super())? => {
                Resource::release(resource, this.as_any()).map(drop)
            }
            _ => resource
                .call_method1(intern!(py, "release"), (this,))
                .map(drop),
        }
    }
}

fn blank(py: Python<'_>, discipline: Discipline) -> PyClassInitializer<Resource> {
    PyClassInitializer::from(BaseResource::blank(discipline)).add_subclass(Resource {
        users: PyList::empty(py).unbind(),
    })
}

#[pymethods]
impl Resource {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Resource> {
        blank(_arguments.py(), Discipline::Slots)
    }

    #[pyo3(signature = (env, capacity=None))]
    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        capacity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        BaseResource::begin(this.as_super(), env, positive(capacity, Number::Int(1))?)
    }

    /// The requests that have a slot.
    #[getter(users)]
    fn get_users<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyList> {
        users(this)
    }

    #[setter(users)]
    fn set_users(this: &Bound<'_, Self>, users: Py<PyList>) {
        let before = std::mem::replace(&mut this.borrow_mut().users, users);
        drop(before);
    }

    /// The requests that wait for a slot; an alias of `put_queue`.
    #[getter(queue)]
    fn get_queue<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        BaseResource::puts(this.as_super())
    }

    /// The number of slots in use.
    #[getter(count)]
    fn get_count(this: &Bound<'_, Self>) -> usize {
        users(this).len()
    }

    /// Requests a slot.
    ///
    /// `patience` is the maximum waiting time, after which the request ends with the value "reneged". If `balk` or more
    /// requests are waiting, the request does not join the queue and ends at once with the value "balked". Both may be
    /// numbers, distributions of corsair, or functions without arguments.
    #[pyo3(signature = (*, patience=None, balk=None))]
    fn request<'py>(
        this: &Bound<'py, Self>,
        patience: Option<&Bound<'py, PyAny>>,
        balk: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Request>> {
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Put::default());
        let event = Bound::new(this.py(), event.add_subclass(Request::default()))?;
        Temper { patience, balk }.begin(&event, this)?;
        Ok(event)
    }

    /// Releases the slot of a request, if it has one.
    fn release<'py>(
        this: &Bound<'py, Self>,
        request: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Release>> {
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Get::default());
        let request = Some(request.clone().unbind());
        let event = Bound::new(this.py(), event.add_subclass(Release { request }))?;
        Get::begin(event.as_super(), this.as_super())?;
        Ok(event)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.users)
    }
}

#[pymethods]
impl PriorityResource {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PriorityResource> {
        blank(_arguments.py(), Discipline::Slots).add_subclass(PriorityResource {})
    }

    /// Requests a slot with a priority. See `Resource.request` for `patience` and `balk`.
    #[pyo3(signature = (priority=None, preempt=true, *, patience=None, balk=None))]
    fn request<'py>(
        this: &Bound<'py, Self>,
        priority: Option<&Bound<'py, PyAny>>,
        preempt: bool,
        patience: Option<&Bound<'py, PyAny>>,
        balk: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PriorityRequest>> {
        let py = this.py();
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Put::default());
        let event = event
            .add_subclass(Request::default())
            .add_subclass(PriorityRequest::blank());
        let event = Bound::new(py, event)?;
        let priority = priority.map_or_else(|| PyInt::new(py, 0).into_any(), Clone::clone);
        PriorityRequest::set(&event, this.as_super(), &priority, preempt)?;
        Temper { patience, balk }.begin(event.as_super(), this.as_super())?;
        Ok(event)
    }
}

#[pymethods]
impl PreemptiveResource {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PreemptiveResource> {
        blank(_arguments.py(), Discipline::PreemptiveSlots)
            .add_subclass(PriorityResource {})
            .add_subclass(PreemptiveResource {})
    }
}

#[pymethods]
impl Request {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Request> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Put::default())
            .add_subclass(Request::default())
    }

    fn __init__(this: &Bound<'_, Self>, resource: &Bound<'_, BaseResource>) -> PyResult<()> {
        Put::begin(this.as_super(), resource)
    }

    /// The time at which the slot was granted; None before that.
    #[getter(usage_since)]
    fn get_usage_since<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        let inner = this.borrow_mut();
        Some(inner.usage_since.as_ref()?.to_python(this.py()))
    }

    #[setter(usage_since)]
    fn set_usage_since(this: &Bound<'_, Self>, since: Option<&Bound<'_, PyAny>>) {
        this.borrow_mut().usage_since = since.map(Number::of);
    }

    /// True if the request was granted a slot.
    #[getter(granted)]
    fn get_granted(this: &Bound<'_, Self>) -> bool {
        this.borrow_mut().usage_since.is_some()
    }

    fn _renege(this: &Bound<'_, Self>, _event: &Bound<'_, PyAny>) -> PyResult<()> {
        Request::renege(this)
    }

    #[pyo3(signature = (exc_type=None, exc_value=None, traceback=None))]
    fn __exit__(
        this: &Bound<'_, Self>,
        exc_type: Option<&Bound<'_, PyAny>>,
        exc_value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (exc_value, traceback);
        Request::leave(this, exc_type)
    }
}

impl PriorityRequest {
    fn blank() -> PriorityRequest {
        PriorityRequest {
            priority: Number::Int(0),
            preempt: true,
            time: Number::Int(0),
            key: None,
        }
    }

    fn set(
        this: &Bound<'_, PriorityRequest>,
        resource: &Bound<'_, Resource>,
        priority: &Bound<'_, PyAny>,
        preempt: bool,
    ) -> PyResult<()> {
        let py = this.py();
        let time = Environment::now(&BaseResource::environment(resource.as_super())?);
        let waits = PyBool::new(py, !preempt).to_owned().into_any();
        let key = PyTuple::new(py, [priority.clone(), time.to_python(py), waits])?;
        let mut inner = this.borrow_mut();
        inner.priority = Number::of(priority);
        inner.preempt = preempt;
        inner.time = time;
        inner.key = Some(key.into_any().unbind());
        Ok(())
    }
}

#[pymethods]
impl PriorityRequest {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PriorityRequest> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Put::default())
            .add_subclass(Request::default())
            .add_subclass(PriorityRequest::blank())
    }

    #[pyo3(signature = (resource, priority=None, preempt=true))]
    fn __init__(
        this: &Bound<'_, Self>,
        resource: &Bound<'_, Resource>,
        priority: Option<&Bound<'_, PyAny>>,
        preempt: bool,
    ) -> PyResult<()> {
        let py = this.py();
        let priority = priority.map_or_else(|| PyInt::new(py, 0).into_any(), Clone::clone);
        PriorityRequest::set(this, resource, &priority, preempt)?;
        Put::begin(this.as_super().as_super(), resource.as_super())
    }

    /// The priority: a smaller number is served first.
    #[getter(priority)]
    fn get_priority<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        this.borrow_mut().priority.to_python(this.py())
    }

    /// True if the request can preempt a user with a lower priority.
    #[getter(preempt)]
    fn get_preempt(this: &Bound<'_, Self>) -> bool {
        this.borrow_mut().preempt
    }

    /// The time at which the request was made.
    #[getter(time)]
    fn get_time<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        this.borrow_mut().time.to_python(this.py())
    }

    /// The sort key of the request: priority, time, and False if the request preempts.
    #[getter(key)]
    fn get_key<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        let inner = this.borrow_mut();
        Some(inner.key.as_ref()?.bind(this.py()).clone())
    }

    #[setter(key)]
    fn set_key(this: &Bound<'_, Self>, key: Py<PyAny>) {
        let before = this.borrow_mut().key.replace(key);
        drop(before);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.key)
    }

    fn __clear__(&mut self) {
        self.key = None;
    }
}

#[pymethods]
impl Release {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Release> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Get::default())
            .add_subclass(Release::default())
    }

    fn __init__(
        this: &Bound<'_, Self>,
        resource: &Bound<'_, BaseResource>,
        request: Py<PyAny>,
    ) -> PyResult<()> {
        this.borrow_mut().request = Some(request);
        Get::begin(this.as_super(), resource)
    }

    /// The request whose slot is given back.
    #[getter(request)]
    fn get_request<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        let inner = this.borrow_mut();
        Some(inner.request.as_ref()?.bind(this.py()).clone())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)
    }

    fn __clear__(&mut self) {
        self.request = None;
    }
}
