//! A pool of a limited number of threads that exists across runs. Each worker takes the next value when it is free.

use super::Strategy;
use crate::failure::FirstFailure;
use crate::worker_buffer::WorkerBuffer;
use crate::{Batch, Format, MarshalError};
use corsair::fork_join::{Pool, for_each};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pool of N threads that take values one by one.
///
/// The caller waits while the pool works. In steady state the number of allocations of a run is
/// fixed, for any number of values.
#[derive(Debug)]
pub struct Pooled {
    pool: Pool,
}

impl Pooled {
    /// Creates a pool of `workers` threads, which end when the pool is dropped. Zero means one.
    ///
    /// # Errors
    ///
    /// [`MarshalError::Workers`] if the system cannot create the threads.
    pub fn new(workers: usize) -> Result<Pooled, MarshalError> {
        let workers = workers.max(1);
        let pool = Pool::new(workers).map_err(|source| MarshalError::Workers {
            workers,
            source: Box::new(source),
        })?;
        Ok(Pooled { pool })
    }
}

impl Strategy for Pooled {
    fn name(&self) -> &'static str {
        "pooled"
    }

    fn workers(&self) -> usize {
        self.pool.workers()
    }

    fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), MarshalError> {
        let (parts, _) = batch.open(self.workers(), 0);
        let run = Run {
            format,
            values,
            next: AtomicUsize::new(0),
            first: FirstFailure::new(),
        };
        let workers = parts.len().min(values.len());
        self.pool
            .install(|| for_each(&mut parts[..workers], |part| run.work(part)));
        let outcome = run.first.into_result();
        if outcome.is_ok() {
            batch.place_blocks(values.len());
        }
        batch.settle(outcome, values.len(), 0)
    }
}

/// The data that the workers of one run share.
struct Run<'a, F, T> {
    format: &'a F,
    values: &'a [T],
    /// The value to be taken next.
    next: AtomicUsize,
    first: FirstFailure,
}

impl<F: Format, T: Serialize> Run<'_, F, T> {
    /// Serializes values, each as a separate block, until no value is left or an earlier value has
    /// failed.
    fn work(&self, part: &mut WorkerBuffer) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(value) = self.values.get(index) else {
                return;
            };
            if !self.first.is_after(index) {
                return;
            }
            part.blocks.push((index, part.len()));
            if let Err(error) = part.encode(self.format, index, value) {
                self.first.record(error);
                return;
            }
        }
    }
}
