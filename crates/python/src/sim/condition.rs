//! Conditions: events that combine several other events.

use super::classes::{Callback, Callbacks, Condition, Environment, Evaluate, Event, Value};
use super::release;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

impl Evaluate {
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Evaluate> {
        let class = given.py().get_type::<Condition>();
        if given.eq(class.getattr("all_events")?)? {
            return Ok(Evaluate::All);
        }
        if given.eq(class.getattr("any_events")?)? {
            return Ok(Evaluate::Any);
        }
        Ok(Evaluate::Python(given.clone().unbind()))
    }
}

impl Condition {
    fn blank() -> Condition {
        Condition {
            evaluate: Evaluate::All,
            events: Vec::new(),
            processed: 0,
        }
    }

    /// Creates the condition of `&` or `|`.
    pub fn new_in<'py>(
        env: &Bound<'py, Environment>,
        all: bool,
        events: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, Condition>> {
        let condition =
            PyClassInitializer::from(Event::pending(env)).add_subclass(Condition::blank());
        let condition = Bound::new(env.py(), condition)?;
        Condition::begin(
            &condition,
            env,
            if all { Evaluate::All } else { Evaluate::Any },
            events,
        )?;
        Ok(condition)
    }

    /// Creates the condition of `all_of` or `any_of`. Each of the two has its own class.
    pub fn of_class<'py>(
        env: &Bound<'py, Environment>,
        all: bool,
        events: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Condition>> {
        let condition =
            PyClassInitializer::from(Event::pending(env)).add_subclass(Condition::blank());
        let (condition, evaluate) = match all {
            true => (
                Bound::new(env.py(), condition.add_subclass(AllOf {}))?.into_super(),
                Evaluate::All,
            ),
            false => (
                Bound::new(env.py(), condition.add_subclass(AnyOf {}))?.into_super(),
                Evaluate::Any,
            ),
        };
        Condition::begin(&condition, env, evaluate, events)?;
        Ok(condition)
    }

    fn begin(
        this: &Bound<'_, Condition>,
        env: &Bound<'_, Environment>,
        evaluate: Evaluate,
        events: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = this.py();
        let mut listed = Vec::new();
        for event in events.try_iter()? {
            let event = event?;
            let event = event.cast::<Event>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "a condition is made of events, not {}",
                    type_name(&event)
                ))
            })?;
            listed.push(event.clone());
        }
        {
            let mut inner = this.borrow_mut();
            inner.evaluate = evaluate;
            inner.events = listed.iter().map(|event| event.clone().unbind()).collect();
        }
        let env_of_event = &this.as_super().get().env;
        env_of_event.set(py, Some(env.clone().unbind()));
        if listed.is_empty() {
            let value = Bound::new(py, ConditionValue::new(py))?;
            return Event::finish(this.as_super(), true, Value::of(value.into_any()));
        }
        for event in &listed {
            if !Event::environment(event)?.is(env) {
                return Err(PyValueError::new_err(
                    "It is not allowed to mix events from different environments",
                ));
            }
        }
        for event in &listed {
            if !Callbacks::push(event, Callback::Check(this.clone().unbind()))? {
                Condition::check(this, event)?;
            }
        }
        Callbacks::push(this.as_super(), Callback::BuildValue)?;
        Ok(())
    }

    /// Counts a processed event, and triggers the condition if it is met.
    pub fn check(this: &Bound<'_, Condition>, event: &Bound<'_, Event>) -> PyResult<()> {
        let py = this.py();
        if Event::is_triggered(this.as_super()) {
            return Ok(());
        }
        let (evaluate, processed) = {
            let mut inner = this.borrow_mut();
            inner.processed += 1;
            let met = match &inner.evaluate {
                Evaluate::All => Ok(inner.processed == inner.events.len()),
                Evaluate::Any => Ok(true),
                Evaluate::Python(evaluate) => Err(evaluate.clone_ref(py)),
            };
            (met, inner.processed)
        };
        if !Event::is_ok(event)? {
            event.get().defused.set(py, true);
            return Event::finish(this.as_super(), false, Value::of(Event::value_of(event)?));
        }
        let is_met = match evaluate {
            Ok(is_met) => is_met,
            Err(evaluate) => {
                let met = evaluate
                    .bind(py)
                    .call1((Condition::_events(this)?, processed))?;
                met.is_truthy()?
            }
        };
        match is_met {
            true => Event::finish(this.as_super(), true, Value::None),
            false => Ok(()),
        }
    }

    /// Creates the value of a condition that is being processed.
    pub fn build_value(this: &Bound<'_, Condition>) -> PyResult<()> {
        let py = this.py();
        Condition::forget_checks(this)?;
        if Event::is_ok(this.as_super())? {
            let value = Bound::new(py, ConditionValue::new(py))?;
            Condition::_populate_value(this, &value)?;
            let event = this.as_super().get();
            event.value.set(py, Value::of(value.into_any()));
        }
        Ok(())
    }

    fn listed<'py>(this: &Bound<'py, Condition>) -> Vec<Bound<'py, Event>> {
        let inner = this.borrow();
        inner
            .events
            .iter()
            .map(|event| event.bind(this.py()).clone())
            .collect()
    }

    /// Removes this condition and the conditions below it from the events that they still wait for.
    fn forget_checks(this: &Bound<'_, Condition>) -> PyResult<()> {
        let mut conditions = vec![this.clone()];
        while let Some(condition) = conditions.pop() {
            let check = Callback::Check(condition.clone().unbind());
            for event in Condition::listed(&condition) {
                Callbacks::remove(&event, &check)?;
                // A processed condition has already removed the conditions below it.
                let is_processed = Event::is_processed(&event);
                if let Ok(nested) = event.cast_into::<Condition>()
                    && !is_processed
                {
                    conditions.push(nested);
                }
            }
        }
        Ok(())
    }
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object
        .get_type()
        .name()
        .map_or_else(|_| "that".to_owned(), |name| name.to_string())
}

#[pymethods]
impl Condition {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Condition> {
        PyClassInitializer::from(Event::blank()).add_subclass(Condition::blank())
    }

    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        evaluate: &Bound<'_, PyAny>,
        events: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Condition::begin(this, env, Evaluate::of(evaluate)?, events)
    }

    #[getter]
    fn _events<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(this.py(), Condition::listed(this))
    }

    #[getter]
    fn _evaluate<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let class = py.get_type::<Condition>();
        match &this.borrow().evaluate {
            Evaluate::All => class.getattr(intern!(py, "all_events")),
            Evaluate::Any => class.getattr(intern!(py, "any_events")),
            Evaluate::Python(evaluate) => Ok(evaluate.bind(py).clone()),
        }
    }

    fn _check(this: &Bound<'_, Self>, event: &Bound<'_, Event>) -> PyResult<()> {
        Condition::check(this, event)
    }

    fn _build_value(this: &Bound<'_, Self>, _event: &Bound<'_, Event>) -> PyResult<()> {
        Condition::build_value(this)
    }

    fn _remove_check_callbacks(this: &Bound<'_, Self>) -> PyResult<()> {
        Condition::forget_checks(this)
    }

    /// Adds the processed events of this condition, and of the conditions below it, to a value.
    fn _populate_value(this: &Bound<'_, Self>, value: &Bound<'_, ConditionValue>) -> PyResult<()> {
        let py = this.py();
        let list = value.borrow().events.bind(py).clone();
        let mut events = Condition::listed(this);
        events.reverse();
        while let Some(event) = events.pop() {
            if let Ok(nested) = event.cast::<Condition>() {
                events.extend(Condition::listed(nested).into_iter().rev());
            } else if Event::is_processed(&event) {
                list.append(event)?;
            }
        }
        Ok(())
    }

    /// True if all events were processed.
    #[staticmethod]
    fn all_events(events: &Bound<'_, PyAny>, count: usize) -> PyResult<bool> {
        Ok(events.len()? == count)
    }

    /// True if any event was processed, or there are no events.
    #[staticmethod]
    fn any_events(events: &Bound<'_, PyAny>, count: usize) -> PyResult<bool> {
        Ok(count > 0 || events.is_empty()?)
    }

    fn _desc(this: &Bound<'_, Self>) -> PyResult<String> {
        let evaluate = Condition::_evaluate(this)?.getattr("__name__")?;
        let events = Condition::_events(this)?;
        Ok(format!(
            "{}({}, {})",
            this.get_type().name()?,
            evaluate.str()?,
            events.str()?
        ))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Evaluate::Python(evaluate) = &self.evaluate {
            visit.call(evaluate)?;
        }
        self.events.iter().try_for_each(|event| visit.call(event))
    }

    fn __clear__(&mut self) {
        self.events = Vec::new();
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        for event in self.events.drain(..) {
            release::later(event.into_any());
        }
    }
}

/// A condition that is triggered when all of its events have been processed.
#[pyclass(extends = Condition, subclass, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct AllOf {}

#[pymethods]
impl AllOf {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<AllOf> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Condition::blank())
            .add_subclass(AllOf {})
    }

    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        events: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Condition::begin(this.as_super(), env, Evaluate::All, events)
    }
}

/// A condition that is triggered when any of its events has been processed.
#[pyclass(extends = Condition, subclass, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct AnyOf {}

#[pymethods]
impl AnyOf {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<AnyOf> {
        PyClassInitializer::from(Event::blank())
            .add_subclass(Condition::blank())
            .add_subclass(AnyOf {})
    }

    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        events: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Condition::begin(this.as_super(), env, Evaluate::Any, events)
    }
}

/// The processed events of a condition and their values, like a dict, in the order of the condition's events.
#[pyclass(module = "corsair.sim.events")]
#[derive(Debug)]
pub struct ConditionValue {
    events: Py<PyList>,
}

#[pymethods]
impl ConditionValue {
    #[new]
    fn new(py: Python<'_>) -> ConditionValue {
        ConditionValue {
            events: PyList::empty(py).unbind(),
        }
    }

    /// The events.
    #[getter(events)]
    fn get_events<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.events.bind(py).clone()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if !self.__contains__(key)? {
            return Err(PyKeyError::new_err(key.str()?.to_string()));
        }
        key.getattr(intern!(key.py(), "_value"))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.events.bind(key.py()).contains(key)
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        compare: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let equal = if let Ok(other) = other.cast::<ConditionValue>() {
            self.events.bind(py).eq(other.borrow().events.bind(py))?
        } else if let Ok(other) = other.cast::<PyDict>() {
            self.todict(py)?.eq(other)?
        } else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        match compare {
            CompareOp::Eq => Ok(super::event::truth(py, equal)),
            CompareOp::Ne => Ok(super::event::truth(py, !equal)),
            _ => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    #[classattr]
    const __hash__: Option<Py<PyAny>> = None;

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<ConditionValue {}>", self.todict(py)?.str()?))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)
    }

    /// The events.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.events.bind(py).try_iter()
    }

    /// The values of the events.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let events = self.events.bind(py).iter();
        let values = events
            .map(|event| event.getattr(intern!(py, "_value")))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, values)?.try_iter()
    }

    /// The events, each with its value.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let events = self.events.bind(py).iter();
        let items = events
            .map(|event| Ok((event.clone(), event.getattr(intern!(py, "_value"))?)))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, items)?.try_iter()
    }

    /// A dict of the events and their values.
    fn todict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for event in self.events.bind(py) {
            dict.set_item(&event, event.getattr(intern!(py, "_value"))?)?;
        }
        Ok(dict)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.events)
    }
}
