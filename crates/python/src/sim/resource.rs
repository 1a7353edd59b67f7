//! The base of all shared resources: requests that wait in two queues.
//!
//! A *put* adds something and a *get* removes something. For a `Resource`, requesting a slot is a put, and releasing it
//! is a get. Requests are served in the order of their queue. A queue is served whenever a request joins it, and
//! whenever a request of the other kind was processed.

mod container;
mod queue;
mod request;
mod slots;
mod store;

pub use container::{Container, ContainerGet, ContainerPut};
pub use request::Get;
pub use slots::{PreemptiveResource, PriorityRequest, PriorityResource, Release, Resource};
pub use store::{FilterStore, FilterStoreGet, PriorityStore, Store, StoreGet, StorePut};

use super::classes::{BaseResource, Discipline, Environment, Event, ResourceOverrides};
use super::number::Number;
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

impl BaseResource {
    pub fn blank(discipline: Discipline) -> BaseResource {
        BaseResource {
            env: None,
            capacity: Number::Float(f64::INFINITY),
            puts: None,
            gets: None,
            discipline,
            class: ResourceOverrides::default(),
            attributes: None,
            observer: None,
        }
    }

    /// Implements `__init__`.
    pub fn begin(
        this: &Bound<'_, BaseResource>,
        env: &Bound<'_, Environment>,
        capacity: Number,
    ) -> PyResult<()> {
        let py = this.py();
        let class = this.get_type();
        let own = py.get_type::<BaseResource>();
        let differs =
            |name: &str| -> PyResult<bool> { Ok(!class.getattr(name)?.is(&own.getattr(name)?)) };
        let releases = py.get_type::<Resource>();
        let release = match class.hasattr("release")? {
            true => !class.getattr("release")?.is(&releases.getattr("release")?),
            false => false,
        };
        let overrides = ResourceOverrides {
            do_put: differs("_do_put")?,
            do_get: differs("_do_get")?,
            trigger_put: differs("_trigger_put")?,
            trigger_get: differs("_trigger_get")?,
            release,
        };
        let puts = this.getattr("PutQueue")?.call0()?;
        let gets = this.getattr("GetQueue")?.call0()?;
        let attributes = this.getattr(intern!(py, "__dict__")).ok();
        let mut inner = this.borrow_mut();
        inner.env = Some(env.clone().unbind());
        inner.capacity = capacity;
        inner.puts = Some(puts.unbind());
        inner.gets = Some(gets.unbind());
        inner.class = overrides;
        inner.attributes = attributes
            .and_then(|dict| dict.cast_into().ok())
            .map(Bound::unbind);
        Ok(())
    }

    pub fn environment<'py>(this: &Bound<'py, BaseResource>) -> PyResult<Bound<'py, Environment>> {
        match &this.borrow_mut().env {
            Some(env) => Ok(env.bind(this.py()).clone()),
            None => Err(uninitialised()),
        }
    }

    pub fn puts<'py>(this: &Bound<'py, BaseResource>) -> PyResult<Bound<'py, PyAny>> {
        match &this.borrow_mut().puts {
            Some(puts) => Ok(puts.bind(this.py()).clone()),
            None => Err(uninitialised()),
        }
    }

    pub fn gets<'py>(this: &Bound<'py, BaseResource>) -> PyResult<Bound<'py, PyAny>> {
        match &this.borrow_mut().gets {
            Some(gets) => Ok(gets.bind(this.py()).clone()),
            None => Err(uninitialised()),
        }
    }

    /// Calls the observer, if there is one.
    pub fn changed(this: &Bound<'_, BaseResource>) -> PyResult<()> {
        let py = this.py();
        let observer = match &this.borrow_mut().observer {
            Some(observer) => observer.clone_ref(py),
            None => return Ok(()),
        };
        observer.call0(py).map(drop)
    }

    /// True if `count` is below the capacity.
    pub fn has_room(this: &Bound<'_, BaseResource>, count: usize) -> PyResult<bool> {
        let inner = this.borrow_mut();
        let count = Number::Int(i64::try_from(count).unwrap_or(i64::MAX));
        count.is_less(this.py(), &inner.capacity)
    }

    pub fn capacity(this: &Bound<'_, BaseResource>) -> Number {
        this.borrow_mut().capacity.clone_ref(this.py())
    }

    /// Returns true if neither the class nor the instance overrides `release`.
    pub fn releases_plainly(this: &Bound<'_, BaseResource>) -> PyResult<bool> {
        let inner = this.borrow_mut();
        match &inner.attributes {
            _ if inner.class.release => Ok(false),
            Some(attributes) if !attributes.bind(this.py()).is_empty() => Ok(!attributes
                .bind(this.py())
                .contains(intern!(this.py(), "release"))?),
            _ => Ok(true),
        }
    }

    /// Serves the queued puts in order, until a put does not allow the next put to be tried.
    pub fn trigger_put(this: &Bound<'_, BaseResource>) -> PyResult<()> {
        let (overrides, discipline) = {
            let inner = this.borrow_mut();
            (inner.class, inner.discipline)
        };
        if overrides.trigger_put {
            let name = intern!(this.py(), "_trigger_put");
            return this.call_method1(name, (this.py().None(),)).map(drop);
        }
        let by_class = overrides.do_put || discipline == Discipline::Python;
        serve(&BaseResource::puts(this)?, "Put", |event| match by_class {
            true => this
                .call_method1(intern!(this.py(), "_do_put"), (event,))?
                .is_truthy(),
            false => BaseResource::put_now(this, discipline, event),
        })?;
        BaseResource::changed(this)
    }

    /// Serves the queued gets in order, until a get does not allow the next get to be tried.
    pub fn trigger_get(this: &Bound<'_, BaseResource>) -> PyResult<()> {
        let (overrides, discipline) = {
            let inner = this.borrow_mut();
            (inner.class, inner.discipline)
        };
        if overrides.trigger_get {
            let name = intern!(this.py(), "_trigger_get");
            return this.call_method1(name, (this.py().None(),)).map(drop);
        }
        let by_class = overrides.do_get || discipline == Discipline::Python;
        serve(&BaseResource::gets(this)?, "Get", |event| match by_class {
            true => this
                .call_method1(intern!(this.py(), "_do_get"), (event,))?
                .is_truthy(),
            false => BaseResource::get_now(this, discipline, event),
        })?;
        BaseResource::changed(this)
    }

    fn put_now(
        this: &Bound<'_, BaseResource>,
        discipline: Discipline,
        event: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        match discipline {
            Discipline::Slots => slots::put(this.cast()?, event.cast()?),
            Discipline::PreemptiveSlots => slots::put_or_preempt(this.cast()?, event.cast()?),
            Discipline::Container => container::put(this.cast()?, event.cast()?),
            Discipline::Store | Discipline::FilterStore => store::put(this.cast()?, event.cast()?),
            Discipline::PriorityStore => store::put_by_priority(this.cast()?, event.cast()?),
            Discipline::Python => Err(PyNotImplementedError::new_err(this.clone().unbind())),
        }
    }

    fn get_now(
        this: &Bound<'_, BaseResource>,
        discipline: Discipline,
        event: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        match discipline {
            Discipline::Slots | Discipline::PreemptiveSlots => {
                slots::get(this.cast()?, event.cast()?)
            }
            Discipline::Container => container::get(this.cast()?, event.cast()?),
            Discipline::Store => store::get(this.cast()?, event.cast()?),
            Discipline::PriorityStore => store::get_by_priority(this.cast()?, event.cast()?),
            Discipline::FilterStore => store::get_by_filter(this.cast()?, event.cast()?),
            Discipline::Python => Err(PyNotImplementedError::new_err(this.clone().unbind())),
        }
    }
}

fn uninitialised() -> PyErr {
    PyRuntimeError::new_err(
        "the resource has no environment; call super().__init__ in the __init__ of its class",
    )
}

/// Offers the events of a queue to a function, in order, until the function returns false. Removes the events that the
/// function has triggered.
fn serve(
    queue: &Bound<'_, PyAny>,
    kind: &str,
    mut offer: impl FnMut(&Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<()> {
    let py = queue.py();
    let list = queue.cast_exact::<PyList>().ok();
    let mut place = 0;
    while place < list.map_or_else(|| queue.len(), |list| Ok(list.len()))? {
        let event = match list {
            Some(list) => list.get_item(place)?,
            None => queue.get_item(place)?,
        };
        let proceeds = offer(&event)?;
        if !event.cast::<Event>().is_ok_and(Event::is_triggered) {
            place += 1;
        } else if let Some(list) = list {
            if !list.get_item(place).is_ok_and(|found| found.is(&event)) {
                return Err(PyRuntimeError::new_err(format!(
                    "{kind} queue invariant violated"
                )));
            }
            list.del_item(place)?;
        } else if !queue.call_method1(intern!(py, "pop"), (place,))?.is(&event) {
            return Err(PyRuntimeError::new_err(format!(
                "{kind} queue invariant violated"
            )));
        }
        if !proceeds {
            break;
        }
    }
    Ok(())
}

#[pymethods]
impl BaseResource {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> BaseResource {
        BaseResource::blank(Discipline::Python)
    }

    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        capacity: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        BaseResource::begin(this, env, Number::of(capacity))
    }

    /// The maximum amount or number of items in the resource, or the maximum number of its users.
    #[getter(capacity)]
    fn get_capacity<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        BaseResource::capacity(this).to_python(this.py())
    }

    #[getter(_capacity)]
    fn get_raw_capacity<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        BaseResource::get_capacity(this)
    }

    #[setter(_capacity)]
    fn set_raw_capacity(this: &Bound<'_, Self>, capacity: &Bound<'_, PyAny>) {
        let capacity = Number::of(capacity);
        let before = std::mem::replace(&mut this.borrow_mut().capacity, capacity);
        drop(before);
    }

    #[getter(_env)]
    fn get_env<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, Environment>> {
        BaseResource::environment(this)
    }

    /// The waiting puts, in the order in which they are served.
    #[getter(put_queue)]
    fn get_put_queue<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        BaseResource::puts(this)
    }

    /// The waiting gets, in the order in which they are served.
    #[getter(get_queue)]
    fn get_get_queue<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        BaseResource::gets(this)
    }

    /// Sets a function that is called without arguments whenever the state may have changed.
    fn _observe(this: &Bound<'_, Self>, observer: Py<PyAny>) {
        let before = this.borrow_mut().observer.replace(observer);
        drop(before);
    }

    fn _do_put(this: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<bool> {
        let discipline = this.borrow_mut().discipline;
        BaseResource::put_now(this, discipline, event)
    }

    fn _do_get(this: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<bool> {
        let discipline = this.borrow_mut().discipline;
        BaseResource::get_now(this, discipline, event)
    }

    /// Serves the queue of puts. Called when a put joins the queue, and when a get was processed.
    #[pyo3(signature = (get_event=None))]
    fn _trigger_put(this: &Bound<'_, Self>, get_event: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = get_event;
        let by_class = std::mem::take(&mut this.borrow_mut().class.trigger_put);
        let served = BaseResource::trigger_put(this);
        this.borrow_mut().class.trigger_put = by_class;
        served
    }

    /// Serves the queue of gets. Called when a get joins the queue, and when a put was processed.
    #[pyo3(signature = (put_event=None))]
    fn _trigger_get(this: &Bound<'_, Self>, put_event: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = put_event;
        let by_class = std::mem::take(&mut this.borrow_mut().class.trigger_get);
        let served = BaseResource::trigger_get(this);
        this.borrow_mut().class.trigger_get = by_class;
        served
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.env)?;
        visit.call(&self.puts)?;
        visit.call(&self.gets)?;
        visit.call(&self.observer)?;
        visit.call(&self.attributes)
    }

    fn __clear__(&mut self) {
        self.env = None;
        self.puts = None;
        self.gets = None;
        self.observer = None;
        self.attributes = None;
    }
}
