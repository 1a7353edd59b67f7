//! Edges: one-way, bounded connections between actors, tasks or threads, which can be aborted.
//!
//! [`send`](Sender::send) accepts a message and waits while the edge is full; [`recv`](Receiver::recv) returns the next
//! message, in order. An edge can end in two ways:
//!
//! - **close**: no more messages are sent; buffered messages are still received, then `recv` returns `None`. -
//!   **abort**: both ends stop at once. Buffered messages are dropped, a waiting `send` returns its message in
//!   [`Aborted`], and a waiting `recv` returns `None`. **Abort wins**: once [`abort`](Sender::abort) has returned, no
//!   message is sent or received any more, on any thread.
//!
//! Either end can abort the edge, and so can an [`AbortHandle`], which may belong to a whole graph of edges. Dropping
//! the sender closes the edge. Dropping the receiver aborts it, because the buffered messages have no reader.
//!
//! There are two flavours with the same two ends, [`Sender`] and [`Receiver`]:
//!
//! | | senders | description |
//! |---|---|---|
//! | [`ring()`] | one | lock-free; the fastest |
//! | [`queue()`] | any number: they can be cloned | a ring whose senders share a short lock; waiting senders are served in order; with capacity 0 a rendezvous |
//!
//! Both ends have methods that wait in `async` code and methods that block their thread, with or without a time-out,
//! for one message or many. A receiver is an [iterator](Receiver::iter) and a [`Stream`](futures_core::Stream); a
//! sender can be converted to a [`Sink`](Sender::into_sink).
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
//! [`Options`] set the capacity of an edge, in messages and [by weight](Options::weight_limit), and what happens when
//! it is full. [`FanOut`] sends to many edges, [`Merge`] receives from many. A [`Meter`] reads the statistics of an
//! edge while it is in use and after it has ended.
//!
//! Edges need no executor: any executor that polls their futures works, such as tokio or the wall-clock executors of
//! this crate. On the virtual executor foreign wakers do not wake an actor, so actors cannot use edges there.
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
#[expect(missing_debug_implementations, reason = "internal to the edge")]
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
#[expect(missing_debug_implementations, reason = "internal to the edge")]
mod queue;
mod receiver;
#[expect(missing_debug_implementations, reason = "internal to the edge")]
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
