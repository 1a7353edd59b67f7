//! The queue: an edge of any number of senders and one receiver, for `async` code and for threads.
//!
//! # How it works
//!
//! There are two kinds, with the same ends ([`ends`]). One that holds messages of one weight and blocks
//! when it is full is a ring whose sending end lies under a lock ([`buffered`]). Of all others, such as a
//! rendezvous, everything lies under a lock ([`locked`]). The [`lock`] is held for some dozens of instructions and never
//! while code of a message is run or a waker called: messages are weighed before it is taken, and dropped after it is
//! released, and wakers are called then.
//!
//! **A sender that has to wait makes an offer.** Its message goes into a [`line`] behind those of the other
//! senders that wait. Whatever makes room takes the offers at the front of the line into the edge, and wakes
//! their senders, which then have nothing left to do. So senders that wait are served in
//! their order, and nothing overtakes them. A sender that gives up takes its offer out of the line.
//!
//! **A rendezvous** is an edge without room: the receiver takes the first offer itself.
//!
//! **Abort wins** because it is decided where messages move: in the words of the ring, or under the same lock. Offers
//! stay where they are: each sender takes its own message back.
//!
//! **Waiting awake.** A thread that finds the edge full, or empty, looks for a moment at words that
//! say so, before it makes an offer and sleeps, or sleeps. Most often that is enough, and costs the other end nothing:
//! no waker has to be stored, called and dropped. Offers are numbered, and senders read the number of the
//! first that is still in the line: one whose number is lower has been served.

mod buffered;
mod deferred;
mod ends;
mod line;
mod lock;
mod locked;
#[cfg(all(test, loom))]
mod loom;
#[expect(missing_debug_implementations, reason = "not to be seen outside")]
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
