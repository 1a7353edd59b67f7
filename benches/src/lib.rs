//! What the benchmarks share: how long they measure, runs of the pirates with their phases timed, and
//! the contenders written by hand that do the same work.

pub mod event_heap;
pub mod measuring;
pub mod phases;
pub mod points;
pub mod tokio_tasks;
