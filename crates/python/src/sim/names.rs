//! Finds the classes of `corsair.sim` that are written in Python and used from Rust.

use super::classes::Timeout;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The classes and functions, imported once.
#[derive(Debug)]
pub struct Names {
    pub stop_simulation: Py<PyAny>,
    pub empty_schedule: Py<PyAny>,
    pub interrupt: Py<PyAny>,
    pub preempted: Py<PyAny>,
    pub sorted_queue: Py<PyAny>,
    /// A function that creates the error message for a process that yields something other than an event.
    pub invalid_yield: Py<PyAny>,
    /// A function that converts a patience or a limit, which may be a distribution, to a number.
    pub sample: Py<PyAny>,
    /// The value of an event that has not been triggered.
    pub pending: Py<PyAny>,
    pub heap_push: Py<PyAny>,
    pub heap_pop: Py<PyAny>,
    /// The offset of the list of weak references in a timeout; 0 if the offset is unknown.
    pub weak_list: usize,
}

impl Names {
    pub fn get(py: Python<'_>) -> PyResult<&Names> {
        static NAMES: PyOnceLock<Names> = PyOnceLock::new();
        NAMES.get_or_try_init(py, || {
            let module = py.import("corsair.sim._native")?;
            let heap = py.import("heapq")?;
            let name = |name: &str| module.getattr(name).map(Bound::unbind);
            Ok(Names {
                stop_simulation: name("StopSimulation")?,
                empty_schedule: name("EmptySchedule")?,
                interrupt: name("Interrupt")?,
                preempted: name("Preempted")?,
                sorted_queue: name("SortedQueue")?,
                invalid_yield: name("invalid_yield")?,
                sample: py.import("corsair.sim.core")?.getattr("sample")?.unbind(),
                pending: name("PENDING")?,
                heap_push: heap.getattr("heappush")?.unbind(),
                heap_pop: heap.getattr("heappop")?.unbind(),
                weak_list: py
                    .get_type::<Timeout>()
                    .getattr("__weakrefoffset__")?
                    .extract()
                    .unwrap_or(0),
            })
        })
    }
}
