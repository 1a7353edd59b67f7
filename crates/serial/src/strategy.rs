//! How the work is divided: the [`Strategy`] trait, one file per strategy.

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
/// Every strategy gives the same documents and the same error; see the guarantees of the
/// [crate](crate). They differ in time and memory.
pub trait Strategy {
    /// Name of the strategy, in tables.
    fn name(&self) -> &'static str;

    /// How many workers encode, at most.
    fn workers(&self) -> usize;

    /// Marshals `values` into `batch`, and reuses its memory.
    ///
    /// # Errors
    ///
    /// The first value by index that cannot be encoded or whose `Serialize` implementation panics;
    /// [`MarshalError::Workers`] where the system refuses a thread. The batch is empty then.
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
    /// As [`marshal_into`](Strategy::marshal_into).
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
