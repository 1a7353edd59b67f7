//! Edges: one-way, bounded connections between actors, tasks or threads, which can be aborted.
//!
//! [`collect`](Collector::collect) accepts a message and waits while the edge is full;
//! [`emit`](Emitter::emit) yields the next one, in order. There are two ways to end:
//!
//! - **close**: no more is collected, what is buffered is still emitted, then `emit` ends.
//! - **abort**: both ends stop at once. What is buffered is dropped, a waiting `collect` gives its
//!   message back in [`Aborted`], a waiting `emit` ends. **Abort wins**: once
//!   [`abort`](Collector::abort) has returned, nothing is collected and nothing is emitted any
//!   more, on any thread.
//!
//! Either end can abort, and so can any [`AbortHandle`], one of which can hold a whole graph of edges.
//! To drop the collecting end is to close; to drop the emitting end is to abort, for what is left has no
//! reader.
//!
//! There are two flavours, with the same two ends, [`Collector`] and [`Emitter`]:
//!
//! | | collectors | what it is |
//! |---|---|---|
//! | [`ring()`] | one | lock-free; the quickest |
//! | [`queue()`] | any number: they can be cloned | a ring whose collectors meet at a short lock; those that wait are served in their order; with capacity 0 a rendezvous |
//!
//! Both ends wait in `async` code or block their thread, whichever method is called, with or without a time-out, one
//! message or many at once. An emitter is an [iterator](Emitter::iter) and a [`Stream`](futures_core::Stream), a
//! collector can be made a [`Sink`](Collector::into_sink).
//!
//! | | at once | in `async` code | blocking the thread |
//! |---|---|---|---|
//! | collect | [`try_collect`](Collector::try_collect) | [`collect`](Collector::collect) | [`collect_blocking`](Collector::collect_blocking) |
//! | with a time-out | | [`collect_until`](Collector::collect_until) | [`collect_timeout`](Collector::collect_timeout) |
//! | many | [`try_collect_all`](Collector::try_collect_all) | [`collect_all`](Collector::collect_all) | [`collect_all_blocking`](Collector::collect_all_blocking) |
//! | emit | [`try_emit`](Emitter::try_emit) | [`emit`](Emitter::emit) | [`emit_blocking`](Emitter::emit_blocking) |
//! | with a time-out | | [`emit_until`](Emitter::emit_until) | [`emit_timeout`](Emitter::emit_timeout) |
//! | many | [`try_emit_many`](Emitter::try_emit_many) | [`emit_many`](Emitter::emit_many) | [`emit_many_blocking`](Emitter::emit_many_blocking) |
//!
//! [`Options`] say how much an edge holds, in messages and [by weight](Options::weight_limit), and what a full edge
//! does. [`FanOut`] sends to many edges, [`Merge`] reads from many. A [`Meter`] tells what an edge has
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
#[expect(missing_debug_implementations, reason = "not to be seen outside")]
mod batch;
mod clock;
mod collector;
mod counters;
mod emitter;
mod error;
mod fan_out;
mod flavour;
mod iter;
mod merge;
mod meter;
mod open;
mod options;
mod park;
#[expect(missing_debug_implementations, reason = "not to be seen outside")]
mod queue;
#[expect(missing_debug_implementations, reason = "not to be seen outside")]
mod ring;
mod sink;
mod weigh;

pub use abort::AbortHandle;
pub use collector::Collector;
pub use emitter::Emitter;
pub use error::{Aborted, CollectTimeoutError, EmitTimeoutError, TryCollectError, TryEmitError};
pub use fan_out::{Branch, FanOut};
pub use flavour::{Flavour, Queue, Ring};
pub use iter::{IntoIter, Iter, TryIter};
pub use merge::Merge;
pub use meter::{EdgeStatistics, Meter, State};
pub use open::{queue, queue_weighed, ring, ring_weighed};
pub use options::{MAX_CAPACITY, Options, Overflow, OverflowError};
pub use sink::CollectorSink;
pub use weigh::{Bytes, One, Weigh};
