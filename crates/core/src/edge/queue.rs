//! The queue: an edge with any number of senders and one receiver, for `async` code and for threads.
//!
//! # How it works
//!
//! There are two implementations with the same ends ([`ends`]). A queue without weights that blocks when it is full is
//! a ring whose sending end is protected by a lock ([`buffered`]). All other queues, such as a rendezvous, keep their
//! whole state under a lock ([`locked`]). The [`lock`] is held for some dozens of instructions and never while foreign
//! code runs: messages are weighed before it is taken; messages are dropped and wakers called after it is released.
//!
//! **A sender that has to wait makes an offer.** An offer contains the sender's message, and is added to the end of the
//! [`line`] of waiting senders. The operation that frees capacity moves offers from the front of the line into the edge
//! and wakes their senders, whose sends are then complete. So waiting senders are served in order, and no message
//! overtakes theirs. A sender that stops waiting removes its offer from the line.
//!
//! **A rendezvous** is an edge without capacity: the receiver takes the first offer itself.
//!
//! **Abort wins** because the same atomic operations, or the same lock, decide about aborts and about moving messages.
//! Offers stay in the line: each sender takes its own message back.
//!
//! **Spinning before sleeping.** A thread that finds the edge full or empty polls for a moment before it makes an offer
//! or sleeps. Polling usually suffices, and is cheap for the other end, because no waker has to be stored, called and
//! dropped. Offers are numbered, and senders can read the number of the first offer in the line: offers with lower
//! numbers have been served.

mod buffered;
mod deferred;
mod ends;
mod line;
mod lock;
mod locked;
#[cfg(all(test, loom))]
mod loom;
#[expect(missing_debug_implementations, reason = "internal to the edge")]
mod sender;

use super::flavour::{Flavour, Queue};
use super::options::{Options, Overflow};
use super::ring::{RingEdge, RingReceiver};
use super::weigh::Weigh;
use buffered::BufferedEdge;
use ends::{QueueReceiver, QueueSender};
use locked::{LockedEdge, LockedReceiver};
use sender::EdgeSender;
use std::sync::Arc;

impl<T: Send + 'static, W: Weigh<T>> Flavour<T> for Queue<W> {
    type SenderEnd = QueueSender<T, W>;
    type ReceiverEnd = QueueReceiver<T, W>;
}

/// Creates both ends of a queue and their shared state.
pub(super) fn ends<T: Send + 'static, W: Weigh<T>>(
    options: &Options,
) -> (QueueSender<T, W>, QueueReceiver<T, W>) {
    let blocks = options.overflow_policy() == Overflow::Block;
    let rendezvous = options.capacity() == 0;
    if W::ALL_ONE && options.limit() == u64::MAX && blocks && !rendezvous {
        let ring = Arc::new(RingEdge::new(options));
        for handle in options.handles() {
            handle.attach(&ring);
        }
        let edge = BufferedEdge::new(Arc::clone(&ring));
        return (
            QueueSender::Buffered(EdgeSender::new(edge, false)),
            QueueReceiver::Buffered(RingReceiver::new(ring)),
        );
    }
    let edge = Arc::new(LockedEdge::new(options));
    for handle in options.handles() {
        handle.attach(&edge);
    }
    (
        QueueSender::Locked(EdgeSender::new(Arc::clone(&edge), rendezvous && blocks)),
        QueueReceiver::Locked(LockedReceiver::new(edge)),
    )
}
