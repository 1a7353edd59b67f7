//! OS threads that receive indices over channels. Each index is sent to a thread that is free, and the thread returns
//! the position of the document. Threads and channels are created for each run, as in the programs with which this
//! strategy is compared.

use super::Strategy;
use super::encode_job::EncodeJob;
use crate::batch::Placement;
use crate::failure::FirstFailure;
use crate::worker_buffer::WorkerBuffer;
use crate::{Batch, Format, MarshalError};
use crossbeam_channel::{bounded, unbounded};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::thread;

/// The capacity of the channel per worker, in indices.
const QUEUE_PER_WORKER: usize = 4;

/// N threads of the operating system that receive values one by one over `crossbeam-channel`.
///
/// This strategy is for comparison: two channel operations per value and new threads per run cost
/// more than encoding a small value. [`Chunked`](crate::Chunked) takes ranges instead.
#[derive(Clone, Copy, Debug)]
pub struct ParallelThreads {
    workers: NonZeroUsize,
}

impl ParallelThreads {
    /// Creates a strategy with `workers` threads, which start and end with each run. Zero means
    /// one.
    pub const fn new(workers: usize) -> ParallelThreads {
        ParallelThreads {
            workers: match NonZeroUsize::new(workers) {
                Some(workers) => workers,
                None => NonZeroUsize::MIN,
            },
        }
    }
}

impl Strategy for ParallelThreads {
    fn name(&self) -> &'static str {
        "parallel (threads)"
    }

    fn workers(&self) -> usize {
        self.workers.get()
    }

    fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), MarshalError> {
        // With more threads than values, some threads would have nothing to do.
        let workers = self.workers.get().min(values.len());
        let (parts, placements) = batch.open(workers, values.len());
        let outcome = run(format, values, parts, placements);
        batch.settle(outcome, values.len(), 0)
    }
}

/// Starts a thread per part, distributes the values among the threads, and collects the positions
/// of the documents.
fn run<F: Format, T: Serialize + Sync>(
    format: &F,
    values: &[T],
    parts: &mut [WorkerBuffer],
    placements: &mut [Placement],
) -> Result<(), MarshalError> {
    let workers = parts.len();
    let first = FirstFailure::new();
    let (feed, indices) = bounded(workers * QUEUE_PER_WORKER);
    let (placed, gather) = unbounded();
    thread::scope(|scope| {
        for mut worker in EncodeJob::each(format, values, &first, parts) {
            let (indices, placed) = (indices.clone(), placed.clone());
            thread::Builder::new()
                .spawn_scoped(scope, move || {
                    for document in indices.iter().filter_map(|index| worker.encode(index)) {
                        // An error is impossible, because the receiver outlives the workers.
                        let _ = placed.send(document);
                    }
                })
                // The started threads end when the channel is dropped, on return from this function.
                .map_err(|source| MarshalError::Workers {
                    workers,
                    source: Box::new(source),
                })?;
        }
        drop((indices, placed));
        for index in 0..values.len() {
            if !first.is_after(index) || feed.send(index).is_err() {
                break;
            }
        }
        drop(feed);
        for (index, placement) in gather {
            placements[index] = placement;
        }
        Ok(())
    })?;
    first.into_result()
}
