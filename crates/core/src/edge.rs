//! Edges: one-way, bounded connections between two actors or tasks, which can be aborted.
//!
//! [`collect`](Collect::collect) accepts a message and waits while the edge is full;
//! [`emit`](Emit::emit) yields the next one, in order. There are two ways to end:
//!
//! - **close**: no more is collected, what is buffered is still emitted, then `emit` ends.
//! - **abort**: both ends stop at once. What is buffered is dropped, a waiting `collect` gives its
//!   message back in [`Aborted`], a waiting `emit` ends. **Abort wins**: once
//!   [`abort`](TryCollect::abort) has returned, nothing is collected and nothing is emitted any
//!   more, on any thread.
//!
//! Either end can abort, and so can any [`AbortHandle`], one of which can hold a whole graph of edges.
//! To drop the collecting end is to close; to drop the emitting end is to abort, for no one would
//! read what is left.
//!
//! Three flavours keep one contract, the traits [`TryCollect`] and [`TryEmit`], [`Collect`] and
//! [`Emit`] for those that wait in `async` code, [`BlockingCollect`] and [`BlockingEmit`] for those
//! that block a thread:
//!
//! | | waits | what it is |
//! |---|---|---|
//! | [`ring()`] | async and blocking | lock-free ring of one collector and one emitter; batches |
//! | [`tokio()`] | async | tokio's `mpsc` channel, and another for the abort |
//! | [`crossbeam()`] | blocking | a crossbeam channel joined by `select!` with another for the abort |
//!
//! [`FanOut`] sends to many edges, [`Merge`] reads from many. A [`Meter`] tells what an edge has
//! done, also while it works and after it has gone.
//!
//! Edges need no executor: a future of an edge waits on any that polls it, such as tokio's, or one
//! on which actors live on the wall clock. On the virtual executor foreign wakers do not wake an
//! actor, so edges are not for actors there.
//!
//! ```
//! use corsair::edge::{self, AbortHandle, Aborted, Options};
//!
//! async fn example() -> Result<(), Aborted<u32>> {
//!     let handle = AbortHandle::new();
//!     let (mut tx, mut rx) = edge::ring::<u32>(Options::new(64).abort_handle(handle.clone()));
//!     tx.collect(1).await?;
//!     tx.collect(2).await?;
//!     assert_eq!(rx.emit().await, Some(1));
//!     handle.abort();
//!     assert_eq!(rx.emit().await, None, "what was buffered is gone");
//!     assert!(rx.is_aborted());
//!     assert_eq!(tx.meter().read().dropped_by_abort, 1);
//!     Ok(())
//! }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
//! ```

mod abort;
mod channel;
mod clock;
mod contract;
mod counters;
pub mod crossbeam;
mod error;
mod fan_out;
mod merge;
mod meter;
mod options;
mod park;
pub mod ring;
mod sending;
pub mod tokio;

pub use self::crossbeam::crossbeam;
pub use self::tokio::tokio;
pub use abort::AbortHandle;
pub use contract::{BlockingCollect, BlockingEmit, Collect, Emit, TryCollect, TryEmit};
pub use error::{Aborted, TryCollectError, TryEmitError};
pub use fan_out::{Branch, FanOut};
pub use merge::Merge;
pub use meter::{EdgeStatistics, Meter, State};
pub use options::{MAX_CAPACITY, Options, Overflow, OverflowError};
pub use ring::{Collector, Emitter, One, Weigh, ring, ring_weighed};
