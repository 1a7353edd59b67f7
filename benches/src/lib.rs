//! Code that the benchmarks share: the duration of measurements, runs of the pirates with timed phases, and
//! hand-written contenders that do the same work.

pub mod event_heap;
pub mod measuring;
pub mod phases;
pub mod points;
pub mod tokio_tasks;
