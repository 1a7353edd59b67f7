//! Bulk marshalling: a slice of values becomes one encoded document per value, in the order of the
//! slice, on any number of workers.
//!
//! Whatever the [`Strategy`], the [`Format`] and the number of workers:
//!
//! * the documents are those that [`Serial`] writes, byte for byte, in the order of the values;
//! * a [`Batch`] is owned by the caller: no later run overwrites it unless it is passed in again;
//! * the first value that fails, by index, is the error that comes back, with its index; the other
//!   workers stop early; the batch is empty then, never half full;
//! * a panic inside a `Serialize` implementation is such an error too, and the workers stay usable.
//!
//! The trade-off is memory for allocations. A batch keeps its buffers, one per worker, for the next
//! run; workers take whatever ranges are left, so that each buffer grows to the largest share its
//! worker ever had: a batch may hold several times the bytes of one run, until it is dropped.
//!
//! [`Chunked`] is the one to use. The others are there to be compared with it, and because a slice
//! that is small or cheap gains nothing from threads.
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
