//! Tokio tasks that receive indices over channels. The work is divided as in
//! [`ParallelThreads`](super::ParallelThreads), but the runtime exists across runs.

use super::Strategy;
use super::encode_job::EncodeJob;
use crate::batch::Placement;
use crate::failure::FirstFailure;
use crate::worker_buffer::WorkerBuffer;
use crate::{Batch, Format, MarshalError};
use async_scoped::TokioScope;
use serde::Serialize;
use std::thread::available_parallelism;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::{channel, unbounded_channel};

/// The capacity of a task's channel, in indices.
const QUEUE_PER_WORKER: usize = 16;

/// N tokio tasks that receive values one by one over tokio's channels.
///
/// The runtime has a thread per core, for any number of tasks. This strategy is for comparison: encoding never waits,
/// so a task has no advantage over a thread. A call blocks the caller, so asynchronous code must call it in
/// `spawn_blocking`.
#[derive(Debug)]
pub struct ParallelTasks {
    /// The runtime; `None` only while the strategy is being dropped.
    runtime: Option<Runtime>,
    workers: usize,
}

impl ParallelTasks {
    /// Creates a runtime on which each run has `workers` tasks. Zero means one.
    ///
    /// # Errors
    ///
    /// Returns [`MarshalError::Workers`] if the system cannot start the threads of the runtime.
    pub fn new(workers: usize) -> Result<ParallelTasks, MarshalError> {
        let workers = workers.max(1);
        let threads = available_parallelism().map_or(1, usize::from).min(workers);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .build()
            .map_err(|source| MarshalError::Workers {
                workers: threads,
                source: Box::new(source),
            })?;
        Ok(ParallelTasks {
            runtime: Some(runtime),
            workers,
        })
    }
}

impl Drop for ParallelTasks {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // All tasks have ended. A blocking shutdown is not allowed if the last owner of the strategy is itself a
            // task.
            runtime.shutdown_background();
        }
    }
}

impl Strategy for ParallelTasks {
    fn name(&self) -> &'static str {
        "parallel (tokio)"
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), MarshalError> {
        let workers = self.workers.min(values.len());
        let (parts, placements) = batch.open(workers, values.len());
        let outcome = match &self.runtime {
            Some(runtime) if Handle::try_current().is_err() => {
                let _inside = runtime.enter();
                run(format, values, parts, placements)
            }
            _ => Err(MarshalError::InsideRuntime),
        };
        batch.settle(outcome, values.len(), 0)
    }
}

/// Spawns a task per part, distributes the values among the tasks, and collects the positions of
/// the documents.
fn run<F: Format, T: Serialize + Sync>(
    format: &F,
    values: &[T],
    parts: &mut [WorkerBuffer],
    placements: &mut [Placement],
) -> Result<(), MarshalError> {
    let first = FirstFailure::new();
    let (placed, mut gather) = unbounded_channel();
    TokioScope::scope_and_block(|scope| {
        let mut feeds = Vec::with_capacity(parts.len());
        for mut worker in EncodeJob::each(format, values, &first, parts) {
            let (feed, mut indices) = channel(QUEUE_PER_WORKER);
            let placed = placed.clone();
            feeds.push(feed);
            scope.spawn(async move {
                while let Some(index) = indices.recv().await {
                    if let Some(document) = worker.encode(index) {
                        // An error is impossible, because the receiver outlives the workers.
                        let _ = placed.send(document);
                    }
                }
            });
        }
        drop(placed);
        for (index, feed) in (0..values.len()).zip(feeds.iter().cycle()) {
            if !first.is_after(index) || feed.blocking_send(index).is_err() {
                break;
            }
        }
        drop(feeds);
        while let Some((index, placement)) = gather.blocking_recv() {
            let slot: &mut Placement = &mut placements[index];
            *slot = placement;
        }
    });
    first.into_result()
}
