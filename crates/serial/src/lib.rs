//! Bulk marshalling: each value of a slice is encoded as one document, in the order of the slice,
//! on any number of workers.
//!
//! The following holds for every [`Strategy`], every [`Format`] and any number of workers:
//!
//! * the documents are those that [`Serial`] writes, byte for byte, in the order of the values;
//! * the caller owns the [`Batch`]: no later run overwrites the batch unless the caller passes it in again;
//! * if values fail, the returned error is about the failed value with the lowest index; the other workers stop early,
//!   and the batch is then empty, never partly filled;
//! * a panic inside a `Serialize` implementation is also reported as an error, and the workers stay usable.
//!
//! The strategies trade memory for fewer allocations. A batch keeps its buffers, one per worker, for the next run. The
//! share of each worker varies from run to run, and its buffer grows to the largest share so far. So a batch may use
//! several times the memory of one run, until it is dropped.
//!
//! [`Chunked`] is the recommended strategy. The others are for comparison, and for slices that are encoded so quickly
//! that threads do not help.
//!
//! ```
//! use corsair_serial::{Batch, Chunked, Json, Strategy};
//!
//! let records = corsair_testing::people::generate(1_000, 7);
//! let chunked = Chunked::new(2)?;
//!
//! let mut batch = Batch::new();
//! for _ in 0..3 {
//!     chunked.marshal_into(&Json, &records, &mut batch)?; // the buffers are those of the last run
//! }
//! assert_eq!(batch.len(), 1_000);
//! assert_eq!(batch.get(17), Some(serde_json::to_vec(&records[17])?.as_slice()));
//!
//! let mut file = Vec::new();
//! batch.write_ndjson(&mut file)?; // vectored: the documents are not copied together first
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod error;
mod failure;
mod format;
mod strategy;
mod worker_buffer;

pub use batch::{Batch, Documents};
pub use error::MarshalError;
#[cfg(feature = "sonic")]
pub use format::Sonic;
pub use format::{Format, Json, JsonLines, Postcard};
#[cfg(feature = "tokio")]
pub use strategy::ParallelTasks;
pub use strategy::{Chunked, ParallelThreads, Pooled, Serial, Strategy};
