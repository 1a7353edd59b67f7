//! Containers: amounts of something homogeneous.

use super::request::Get;
use crate::sim::classes::{BaseResource, Discipline, Environment, Event, Put, Value};
use crate::sim::number::{Number, positive};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

/// A container of an amount. Puts increase the amount up to the capacity, and gets decrease it down to zero.
#[pyclass(extends = BaseResource, subclass, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Container {
    level: Number,
}

/// A request to put an amount into a container.
#[pyclass(extends = Put, subclass, module = "corsair.sim.resources.container")]
#[derive(Debug, Default)]
pub struct ContainerPut {
    amount: Number,
}

/// A request to get an amount from a container.
#[pyclass(extends = Get, subclass, module = "corsair.sim.resources.container")]
#[derive(Debug, Default)]
pub struct ContainerGet {
    amount: Number,
}

/// Adds the amount if it fits.
pub fn put(this: &Bound<'_, Container>, event: &Bound<'_, ContainerPut>) -> PyResult<bool> {
    let py = this.py();
    let amount = event.borrow().amount.clone_ref(py);
    let level = this.borrow_mut().level.clone_ref(py);
    let free = BaseResource::capacity(this.as_super()).minus(py, &level)?;
    if free.is_less(py, &amount)? {
        return Ok(false);
    }
    let level = level.plus(py, &amount)?;
    this.borrow_mut().level = level;
    Event::finish(event.as_super().as_super(), true, Value::None)?;
    Ok(true)
}

/// Removes the amount if it is available.
pub fn get(this: &Bound<'_, Container>, event: &Bound<'_, ContainerGet>) -> PyResult<bool> {
    let py = this.py();
    let amount = event.borrow().amount.clone_ref(py);
    let level = this.borrow_mut().level.clone_ref(py);
    if level.is_less(py, &amount)? {
        return Ok(false);
    }
    let level = level.minus(py, &amount)?;
    this.borrow_mut().level = level;
    Event::finish(event.as_super().as_super(), true, Value::None)?;
    Ok(true)
}

fn amount(given: &Bound<'_, PyAny>) -> PyResult<Number> {
    let amount = Number::of(given);
    if !Number::Int(0).is_less(given.py(), &amount)? {
        return Err(PyValueError::new_err(format!(
            "amount(={}) must be > 0.",
            given.str()?
        )));
    }
    Ok(amount)
}

#[pymethods]
impl Container {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Container> {
        let base = PyClassInitializer::from(BaseResource::blank(Discipline::Container));
        base.add_subclass(Container {
            level: Number::Int(0),
        })
    }

    #[pyo3(signature = (env, capacity=None, init=None))]
    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        capacity: Option<&Bound<'_, PyAny>>,
        init: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = this.py();
        let capacity = positive(capacity, Number::Float(f64::INFINITY))?;
        let level = init.map_or(Number::Int(0), Number::of);
        if level.is_less(py, &Number::Int(0))? {
            return Err(PyValueError::new_err("\"init\" must be >= 0."));
        }
        if capacity.is_less(py, &level)? {
            return Err(PyValueError::new_err("\"init\" must be <= \"capacity\"."));
        }
        BaseResource::begin(this.as_super(), env, capacity)?;
        this.borrow_mut().level = level;
        Ok(())
    }

    /// The amount in the container.
    #[getter]
    fn level<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        this.borrow_mut().level.to_python(this.py())
    }

    #[getter(_level)]
    fn get_raw_level<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        Container::level(this)
    }

    #[setter(_level)]
    fn set_raw_level(this: &Bound<'_, Self>, level: &Bound<'_, PyAny>) {
        this.borrow_mut().level = Number::of(level);
    }

    /// Requests to put an amount into the container.
    fn put<'py>(
        this: &Bound<'py, Self>,
        #[pyo3(from_py_with = amount)] amount: Number,
    ) -> PyResult<Bound<'py, ContainerPut>> {
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Put::default());
        let event = Bound::new(this.py(), event.add_subclass(ContainerPut { amount }))?;
        Put::begin(event.as_super(), this.as_super())?;
        Ok(event)
    }

    /// Requests to get an amount from the container.
    fn get<'py>(
        this: &Bound<'py, Self>,
        #[pyo3(from_py_with = amount)] amount: Number,
    ) -> PyResult<Bound<'py, ContainerGet>> {
        let event = PyClassInitializer::from(Event::blank()).add_subclass(Get::default());
        let event = Bound::new(this.py(), event.add_subclass(ContainerGet { amount }))?;
        Get::begin(event.as_super(), this.as_super())?;
        Ok(event)
    }
}

/// Defines a request. The two kinds differ only in their base class.
macro_rules! amount_request {
    ($class:ident, $base:ident) => {
        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (*_arguments, **_named))]
            fn new(
                _arguments: &Bound<'_, PyTuple>,
                _named: Option<&Bound<'_, PyDict>>,
            ) -> PyClassInitializer<$class> {
                PyClassInitializer::from(Event::blank())
                    .add_subclass($base::default())
                    .add_subclass($class::default())
            }

            fn __init__(
                this: &Bound<'_, Self>,
                container: &Bound<'_, BaseResource>,
                #[pyo3(from_py_with = amount)] amount: Number,
            ) -> PyResult<()> {
                this.borrow_mut().amount = amount;
                $base::begin(this.as_super(), container)
            }

            /// The amount to be put or got.
            #[getter(amount)]
            fn get_amount<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyAny> {
                this.borrow().amount.to_python(this.py())
            }

            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                match &self.amount {
                    Number::Other(amount) => visit.call(amount),
                    _ => Ok(()),
                }
            }
        }
    };
}

amount_request!(ContainerPut, Put);
amount_request!(ContainerGet, Get);
