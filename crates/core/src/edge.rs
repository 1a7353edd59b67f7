//! Edges: one-way, bounded connections between actors, tasks or threads, which can be aborted.
//!
//! [`send`](Sender::send) accepts a message and waits while the edge is full;
//! [`recv`](Receiver::recv) yields the next one, in order. There are two ways to end:
//!
//! - **close**: no more is sent, what is buffered is still received, then `recv` ends.
//! - **abort**: both ends stop at once. What is buffered is dropped, a waiting `send` gives its
//!   message back in [`Aborted`], a waiting `recv` ends. **Abort wins**: once
//!   [`abort`](Sender::abort) has returned, nothing is sent and nothing is received any
//!   more, on any thread.
//!
//! Either end can abort, and so can any [`AbortHandle`], one of which can hold a whole graph of edges.
//! To drop the sending end is to close; to drop the receiving end is to abort, for what is left has no
//! reader.
//!
//! There are two flavours, with the same two ends, [`Sender`] and [`Receiver`]:
//!
//! | | senders | what it is |
//! |---|---|---|
//! | [`ring()`] | one | lock-free; the quickest |
//! | [`queue()`] | any number: they can be cloned | a ring whose senders meet at a short lock; those that wait are served in their order; with capacity 0 a rendezvous |
//!
//! Both ends wait in `async` code or block their thread, whichever method is called, with or without a time-out, one
//! message or many at once. A receiver is an [iterator](Receiver::iter) and a [`Stream`](futures_core::Stream), a
//! sender can be made a [`Sink`](Sender::into_sink).
//!
//! | | at once | in `async` code | blocking the thread |
//! |---|---|---|---|
//! | send | [`try_send`](Sender::try_send) | [`send`](Sender::send) | [`send_blocking`](Sender::send_blocking) |
//! | with a time-out | | [`send_until`](Sender::send_until) | [`send_timeout`](Sender::send_timeout) |
//! | many | [`try_send_all`](Sender::try_send_all) | [`send_all`](Sender::send_all) | [`send_all_blocking`](Sender::send_all_blocking) |
//! | recv | [`try_recv`](Receiver::try_recv) | [`recv`](Receiver::recv) | [`recv_blocking`](Receiver::recv_blocking) |
//! | with a time-out | | [`recv_until`](Receiver::recv_until) | [`recv_timeout`](Receiver::recv_timeout) |
//! | many | [`try_recv_many`](Receiver::try_recv_many) | [`recv_many`](Receiver::recv_many) | [`recv_many_blocking`](Receiver::recv_many_blocking) |
//!
//! [`Options`] say how much an edge holds, in messages and [by weight](Options::weight_limit), and what a full edge
//! does. [`FanOut`] sends to many edges, [`Merge`] reads from many. A [`Meter`] reads the statistics of an edge,
//! also while the edge works and after it has gone.
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
//!     tx.send(1).await?;
//!     tx.send(2).await?;
//!     assert_eq!(rx.recv().await, Some(1));
//!     handle.abort();
//!     assert_eq!(rx.recv().await, None, "what was buffered is gone");
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
mod counters;
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
mod receiver;
#[expect(missing_debug_implementations, reason = "not to be seen outside")]
mod ring;
mod sender;
mod sink;
mod weigh;

pub use abort::AbortHandle;
pub use error::{Aborted, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError};
pub use fan_out::{Branch, FanOut};
pub use flavour::{Flavour, Queue, Ring};
pub use iter::{IntoIter, Iter, TryIter};
pub use merge::Merge;
pub use meter::{EdgeStatistics, Meter, State};
pub use open::{queue, queue_weighed, ring, ring_weighed};
pub use options::{MAX_CAPACITY, Options, Overflow, OverflowError};
pub use receiver::Receiver;
pub use sender::Sender;
pub use sink::SenderSink;
pub use weigh::{Bytes, One, Weigh};
