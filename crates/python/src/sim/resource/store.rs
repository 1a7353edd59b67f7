//! Stores of distinct items, which are taken out in order, by priority, or by a filter.

use super::request::Get;
use crate::sim::classes::{BaseResource, Discipline, Environment, Event, Put, Value};
use crate::sim::names::Names;
use crate::sim::number::{Number, positive};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

/// A store of items, which leave in the order of their arrival.
#[pyclass(extends = BaseResource, subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Store {
    items: Py<PyAny>,
}

/// A store of items that can be ordered. The smallest item leaves first.
#[pyclass(extends = Store, subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct PriorityStore {}

/// A store from which each request takes the first item that its filter accepts.
#[pyclass(extends = Store, subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct FilterStore {}

/// A request to put an item into a store.
#[pyclass(extends = Put, subclass, module = "corsair.sim.resources.store")]
#[derive(Debug, Default)]
pub struct StorePut {
    item: Option<Py<PyAny>>,
}

/// A request to get an item from a store.
#[pyclass(extends = Get, subclass, module = "corsair.sim.resources.store")]
#[derive(Debug, Default)]
pub struct StoreGet {}

/// A request to get an item that a filter accepts.
#[pyclass(extends = StoreGet, subclass, module = "corsair.sim.resources.store")]
#[derive(Debug, Default)]
pub struct FilterStoreGet {
    /// The filter; `None` accepts every item.
    filter: Option<Py<PyAny>>,
}

fn items<'py>(this: &Bound<'py, Store>) -> Bound<'py, PyAny> {
    this.borrow_mut().items.bind(this.py()).clone()
}

/// Returns the item of a put, if the store has capacity for it.
fn fitting<'py>(
    this: &Bound<'py, Store>,
    event: &Bound<'py, StorePut>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let py = this.py();
    let items = items(this);
    if !BaseResource::has_room(this.as_super(), items.len()?)? {
        return Ok(None);
    }
    let item = event
        .borrow_mut()
        .item
        .as_ref()
        .map(|item| item.clone_ref(py));
    Ok(Some((
        items,
        item.unwrap_or_else(|| py.None()).into_bound(py),
    )))
}

fn accept(event: &Bound<'_, StorePut>) -> PyResult<bool> {
    Event::finish(event.as_super().as_super(), true, Value::None).map(|()| false)
}

/// Appends an item if there is capacity.
pub fn put(this: &Bound<'_, Store>, event: &Bound<'_, StorePut>) -> PyResult<bool> {
    let Some((items, item)) = fitting(this, event)? else {
        return Ok(false);
    };
    match items.cast_exact::<PyList>() {
        Ok(list) => list.append(item)?,
        Err(_) => drop(items.call_method1(intern!(this.py(), "append"), (item,))?),
    }
    accept(event)
}

/// Adds an item to the heap if there is capacity.
pub fn put_by_priority(this: &Bound<'_, Store>, event: &Bound<'_, StorePut>) -> PyResult<bool> {
    let Some((items, item)) = fitting(this, event)? else {
        return Ok(false);
    };
    Names::get(this.py())?
        .heap_push
        .bind(this.py())
        .call1((items, item))?;
    accept(event)
}

/// Gets the first item.
pub fn get(this: &Bound<'_, Store>, event: &Bound<'_, StoreGet>) -> PyResult<bool> {
    let items = items(this);
    if items.is_empty()? {
        return Ok(false);
    }
    let item = match items.cast_exact::<PyList>() {
        Ok(list) => {
            let item = list.get_item(0)?;
            list.del_item(0)?;
            item
        }
        Err(_) => items.call_method1(intern!(this.py(), "pop"), (0,))?,
    };
    Event::finish(event.as_super().as_super(), true, Value::of(item)).map(|()| false)
}

/// Gets the smallest item.
pub fn get_by_priority(this: &Bound<'_, Store>, event: &Bound<'_, StoreGet>) -> PyResult<bool> {
    let items = items(this);
    if items.is_empty()? {
        return Ok(false);
    }
    let item = Names::get(this.py())?
        .heap_pop
        .bind(this.py())
        .call1((items,))?;
    Event::finish(event.as_super().as_super(), true, Value::of(item)).map(|()| false)
}

/// Gets the first item that the filter accepts. Even if there is no such item, the next request in the queue may be
/// tried, because the filter of that request may accept another item.
pub fn get_by_filter(this: &Bound<'_, Store>, event: &Bound<'_, FilterStoreGet>) -> PyResult<bool> {
    let py = this.py();
    let items = items(this);
    let filter = event
        .borrow_mut()
        .filter
        .as_ref()
        .map(|filter| filter.bind(py).clone());
    for item in items.try_iter()? {
        let item = item?;
        let accepts = match &filter {
            Some(filter) => filter.call1((&item,))?.is_truthy()?,
            None => true,
        };
        if accepts {
            items.call_method1(intern!(py, "remove"), (&item,))?;
            Event::finish(
                event.as_super().as_super().as_super(),
                true,
                Value::of(item),
            )?;
            break;
        }
    }
    Ok(true)
}

fn blank(py: Python<'_>, discipline: Discipline) -> PyClassInitializer<Store> {
    PyClassInitializer::from(BaseResource::blank(discipline)).add_subclass(Store {
        items: PyList::empty(py).into_any().unbind(),
    })
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Store> {
        blank(_arguments.py(), Discipline::Store)
    }

    #[pyo3(signature = (env, capacity=None))]
    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        capacity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let capacity = positive(capacity, Number::Float(f64::INFINITY))?;
        BaseResource::begin(this.as_super(), env, capacity)
    }

    /// The items in the store.
    #[getter(items)]
    fn get_items<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        items(this)
    }

    #[setter(items)]
    fn set_items(this: &Bound<'_, Self>, items: Py<PyAny>) {
        let before = std::mem::replace(&mut this.borrow_mut().items, items);
        drop(before);
    }

    /// Requests to put an item into the store.
    fn put<'py>(this: &Bound<'py, Self>, item: Py<PyAny>) -> PyResult<Bound<'py, StorePut>> {
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Put::default());
        let event = Bound::new(this.py(), event.add_subclass(StorePut { item: Some(item) }))?;
        Put::begin(event.as_super(), this.as_super())?;
        Ok(event)
    }

    /// Requests to get an item from the store.
    fn get<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, StoreGet>> {
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Get::default());
        let event = Bound::new(this.py(), event.add_subclass(StoreGet {}))?;
        Get::begin(event.as_super(), this.as_super())?;
        Ok(event)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.items)
    }
}

#[pymethods]
impl PriorityStore {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PriorityStore> {
        blank(_arguments.py(), Discipline::PriorityStore).add_subclass(PriorityStore {})
    }
}

#[pymethods]
impl FilterStore {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<FilterStore> {
        blank(_arguments.py(), Discipline::FilterStore).add_subclass(FilterStore {})
    }

    /// Requests to get the first item that a filter accepts.
    #[pyo3(signature = (filter=None))]
    fn get<'py>(
        this: &Bound<'py, Self>,
        filter: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, FilterStoreGet>> {
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Get::default());
        let event = event
            .add_subclass(StoreGet {})
            .add_subclass(FilterStoreGet { filter });
        let event = Bound::new(this.py(), event)?;
        Get::begin(event.as_super().as_super(), this.as_super().as_super())?;
        Ok(event)
    }
}

#[pymethods]
impl StorePut {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<StorePut> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Put::default())
            .add_subclass(StorePut::default())
    }

    fn __init__(
        this: &Bound<'_, Self>,
        store: &Bound<'_, BaseResource>,
        item: Py<PyAny>,
    ) -> PyResult<()> {
        this.borrow_mut().item = Some(item);
        Put::begin(this.as_super(), store)
    }

    /// The item.
    #[getter(item)]
    fn get_item<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        let inner = this.borrow_mut();
        Some(inner.item.as_ref()?.bind(this.py()).clone())
    }

    #[setter(item)]
    fn set_item(this: &Bound<'_, Self>, item: Py<PyAny>) {
        let before = this.borrow_mut().item.replace(item);
        drop(before);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.item)
    }

    fn __clear__(&mut self) {
        self.item = None;
    }
}

#[pymethods]
impl FilterStoreGet {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<FilterStoreGet> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Get::default())
            .add_subclass(StoreGet::default())
            .add_subclass(FilterStoreGet::default())
    }

    #[pyo3(signature = (resource, filter=None))]
    fn __init__(
        this: &Bound<'_, Self>,
        resource: &Bound<'_, BaseResource>,
        filter: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        this.borrow_mut().filter = filter;
        Get::begin(this.as_super().as_super(), resource)
    }

    /// The filter; None if every item is accepted.
    #[getter(filter)]
    fn get_filter<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        let inner = this.borrow_mut();
        Some(inner.filter.as_ref()?.bind(this.py()).clone())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.filter)
    }

    fn __clear__(&mut self) {
        self.filter = None;
    }
}

#[pymethods]
impl StoreGet {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<StoreGet> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Get::default())
            .add_subclass(StoreGet::default())
    }
}
