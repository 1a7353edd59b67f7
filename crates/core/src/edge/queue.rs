//! The queue: an edge of any number of collectors and one emitter, for `async` code and for threads.
//!
//! # How it works
//!
//! Everything lies under one lock ([`contents`]), which is held for some dozens of instructions and never while
//! code of a message or a waker runs: messages are weighed before it is taken, and dropped after it is
//! released, and so are wakers.
//!
//! **A collector that has to wait makes an offer.** Its message goes into a line behind those of the other
//! collectors that wait. Whatever makes room takes the offers at the front of the line into the edge, and wakes
//! their collectors, which then have nothing left to do. So collectors that wait are served in
//! their order, and nothing overtakes them. A collector that gives up takes its offer out of the line.
//!
//! **A rendezvous** is an edge without room: the emitter takes the first offer itself.
//!
//! **Abort wins** because state and messages change under the same lock. Offers stay where they are: each
//! collector takes its own message back.
//!
//! **Spinning without the lock.** Offers are numbered, and `decided` tells the number of the first that is still in the
//! line: a collector whose number is lower has been served. `arrivals` counts what an emitter may wait for: as long as it
//! is what it was when the edge was found empty, the edge is empty.

mod blocked;
mod collecting;
mod contents;
mod emitting;
mod later;
#[cfg(all(test, loom))]
mod loom;
mod shared;

use super::flavour::{Flavour, Queue};
use super::options::{Options, Overflow};
use super::weigh::Weigh;
use collecting::QueueCollecting;
use emitting::QueueEmitting;
use shared::QueueEdge;
use std::sync::Arc;

impl<T: Send + 'static, W: Weigh<T>> Flavour<T> for Queue<W> {
    type Collecting = QueueCollecting<T, W>;
    type Emitting = QueueEmitting<T, W>;
}

/// Both ends of a queue, and what they share.
pub(super) fn ends<T: Send + 'static, W: Weigh<T>>(
    options: &Options,
) -> (QueueCollecting<T, W>, QueueEmitting<T, W>) {
    let queue = Arc::new(QueueEdge::new(options));
    for handle in options.handles() {
        handle.attach(&queue);
    }
    (
        QueueCollecting::new(
            Arc::clone(&queue),
            options.capacity() == 0 && options.overflow_policy() == Overflow::Block,
        ),
        QueueEmitting::new(queue),
    )
}
