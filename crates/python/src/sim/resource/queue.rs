//! The queues of requests, which may be instances of user-defined classes.

use crate::sim::names::Names;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Removes an object from a list. Objects are compared by identity. Returns false if the object is not in the list.
pub fn remove(list: &Bound<'_, PyList>, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match list.iter().position(|other| other.is(object)) {
        Some(place) => list.del_item(place).map(|()| true),
        None => Ok(false),
    }
}

/// Adds an event to a queue, which may be an instance of a user-defined class.
pub fn enqueue(queue: &Bound<'_, PyAny>, event: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = queue.py();
    if let Ok(list) = queue.cast_exact::<PyList>() {
        return list.append(event);
    }
    if queue.get_type().is(Names::get(py)?.sorted_queue.bind(py)) {
        return insert_sorted(queue, event);
    }
    queue
        .call_method1(intern!(py, "append"), (event,))
        .map(drop)
}

/// Adds a request to the queue of a `PriorityResource`, after the requests with the same key.
fn insert_sorted(queue: &Bound<'_, PyAny>, event: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = queue.py();
    let list = queue.cast::<PyList>()?;
    let most = queue.getattr(intern!(py, "maxlen"))?;
    if !most.is_none() && list.len() >= most.extract::<usize>()? {
        return Err(PyRuntimeError::new_err(
            "Cannot append event. Queue is full.",
        ));
    }
    let key = event.getattr(intern!(py, "key"))?;
    let (mut low, mut high) = (0, list.len());
    while low < high {
        let middle = low.midpoint(high);
        match key.lt(list.get_item(middle)?.getattr(intern!(py, "key"))?)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    list.insert(low, event)
}
