//! Divides the work among workers: the [`Strategy`] trait, and one file per strategy.

mod chunked;
mod encode_job;
#[cfg(feature = "tokio")]
mod parallel_tasks;
mod parallel_threads;
mod pooled;
mod serial;

pub use chunked::Chunked;
#[cfg(feature = "tokio")]
pub use parallel_tasks::ParallelTasks;
pub use parallel_threads::ParallelThreads;
pub use pooled::Pooled;
pub use serial::Serial;

use crate::{Batch, Format, MarshalError};
use serde::Serialize;

/// A way to marshal a slice of values.
///
/// Every strategy returns the same documents and the same error; see the guarantees of the
/// [crate](crate). The strategies differ in time and memory.
pub trait Strategy {
    /// Returns the name of the strategy, for tables.
    fn name(&self) -> &'static str;

    /// Returns the maximum number of workers that encode.
    fn workers(&self) -> usize;

    /// Marshals `values` into `batch`, and reuses its memory.
    ///
    /// # Errors
    ///
    /// If a value cannot be encoded or its `Serialize` implementation panics, the error is about the failed value with
    /// the lowest index. [`MarshalError::Workers`] if the system cannot start a thread. The batch is empty after an
    /// error.
    fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), MarshalError>;

    /// Marshals `values` into a new batch.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`marshal_into`](Strategy::marshal_into).
    fn marshal<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
    ) -> Result<Batch<F>, MarshalError> {
        let mut batch = Batch::new();
        self.marshal_into(format, values, &mut batch)?;
        Ok(batch)
    }
}
