//! A limited pool that lives across runs: rayon splits the slice further whenever a thread is idle.

use super::Strategy;
use crate::batch::Placement;
use crate::failure::FirstFailure;
use crate::part::Part;
use crate::{Batch, Format, MarshalError};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;
use std::sync::{Mutex, PoisonError};

/// A pool of N threads, fed by work stealing.
///
/// The caller waits while the pool works. In steady state a run allocates a fixed number of times,
/// however many values there are.
#[derive(Debug)]
pub struct Pooled {
    pool: ThreadPool,
}

impl Pooled {
    /// A pool of `workers` threads, which end when it is dropped. Zero means one.
    ///
    /// # Errors
    ///
    /// [`MarshalError::Workers`] where the system refuses the threads.
    pub fn new(workers: usize) -> Result<Pooled, MarshalError> {
        let workers = workers.max(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(workers)
            .thread_name(|number| format!("marshal-{number}"))
            .build()
            .map_err(|source| MarshalError::Workers {
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
        self.pool.current_num_threads()
    }

    fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), MarshalError> {
        let (parts, placements) = batch.open(self.workers(), values.len());
        let run = Run {
            format,
            parts: parts.iter_mut().map(Mutex::new).collect(),
            nested: Mutex::new(Vec::new()),
            first: FirstFailure::new(),
        };
        self.pool.install(|| {
            placements.par_iter_mut().zip(values).enumerate().for_each(
                |(index, (placement, value))| {
                    if run.first.is_after(index) {
                        *placement = run.encode(index, value);
                    }
                },
            );
        });
        let nested = run
            .nested
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let outcome = run.first.into_result();
        batch.put_behind(self.workers(), nested);
        batch.settle(outcome, values.len(), 0)
    }
}

/// What the threads of one run share.
struct Run<'a, F> {
    format: &'a F,
    /// A part for each thread of the pool.
    parts: Vec<Mutex<&'a mut Part>>,
    /// Parts of single values that were begun while their thread was within another one.
    nested: Mutex<Vec<Part>>,
    first: FirstFailure,
}

impl<F: Format> Run<'_, F> {
    /// Encodes the value at `index`, or records why it cannot be.
    fn encode<T: Serialize>(&self, index: usize, value: &T) -> Placement {
        let thread = rayon::current_thread_index().unwrap_or(0);
        // A `Serialize` implementation that uses rayon may find itself encoding a second value on
        // the same thread while the first one waits. The thread's part is taken then.
        if let Ok(mut part) = self.parts[thread].try_lock() {
            let placement = Placement {
                part: thread,
                entry: part.len(),
            };
            if let Err(error) = part.encode(self.format, index, value) {
                self.first.record(error);
            }
            return placement;
        }
        let mut part = Part::default();
        if let Err(error) = part.encode(self.format, index, value) {
            self.first.record(error);
        }
        let mut nested = self.nested.lock().unwrap_or_else(PoisonError::into_inner);
        nested.push(part);
        Placement {
            part: self.parts.len() + nested.len() - 1,
            entry: 0,
        }
    }
}
