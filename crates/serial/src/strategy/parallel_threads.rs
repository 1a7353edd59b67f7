//! OS threads over channels: an index goes to whichever thread is free, and comes back with where
//! its document is. Threads and channels are made for the run, as in the programs it answers.

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

/// Indices on their way to a worker.
const QUEUE_PER_WORKER: usize = 4;

/// N threads of the operating system, fed value by value over `crossbeam-channel`.
///
/// For comparison: two channel operations per value and new threads per run cost more than small
/// values do. [`Chunked`](crate::Chunked) takes ranges instead.
#[derive(Clone, Copy, Debug)]
pub struct ParallelThreads {
    workers: NonZeroUsize,
}

impl ParallelThreads {
    /// `workers` threads for each run, started by it and ended with it. Zero means one.
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
        // More threads than values would only wait.
        let workers = self.workers.get().min(values.len());
        let (parts, placements) = batch.open(workers, values.len());
        let outcome = run(format, values, parts, placements);
        batch.settle(outcome, values.len(), 0)
    }
}

/// Starts a thread per part, feeds them, and gathers where the documents are.
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
                        // The gatherer outlives the workers.
                        let _ = placed.send(document);
                    }
                })
                // The threads that did start end with the channel, which is dropped on the way out.
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
