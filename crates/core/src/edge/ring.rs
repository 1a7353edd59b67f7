//! The ring: a lock-free edge of one sender and one receiver, for `async` code and for threads.
//!
//! # How it works
//!
//! Messages are stored in a ring of slots between two positions that only grow: the *head*, where the next message is
//! received, and the *tail*, where the next message is put. Each is an atomic word in its own cache line, with a few
//! flag bits:
//!
//! | bit | in the tail | in the head |
//! |---|---|---|
//! | *aborted* | nothing more can be sent | nothing more can be received; the edge is aborted |
//! | *waits* | the receiver waits for messages | the sender waits for capacity |
//! | *closed* | the sender has closed | |
//!
//! **One operation decides.** A sender writes its message into a free slot and publishes it by a compare-exchange of
//! the tail; a whole batch takes one compare-exchange. A receiver copies a message out and acquires it by a
//! compare-exchange of the head. Both operations expect that no flag is set, and fail otherwise. So the operation that
//! publishes or takes a message also detects an earlier abort, and a waiting other end. Neither a fence nor a second
//! read of a flag is needed.
//!
//! **Abort** sets the flag in the tail, then in the head. An edge counts as aborted when the head has the flag. A
//! thread that finds the tail aborted sets the head's flag itself before it reports the abort. So after any thread has
//! observed an abort, no message is sent or received. Once its flag is set, neither word changes any more. So the
//! thread that set the head's flag is the only owner of the messages between the two positions, and drops them.
//!
//! **A receive during an abort** has copied its message when its compare-exchange fails. The receiver discards the copy
//! without dropping it, because the message belongs to the thread that aborts. Both threads only read the slot, and no
//! thread writes to slots between head and tail, so there is no data race.
//!
//! **Caches.** Each end caches the last known position of the other end, and reads it again only when that position
//! allows no further message to be moved. The end first reads a plain word in which the other end stores its progress,
//! because reading a word that was just changed by an atomic exchange takes nearly as long as the exchange. Only if the
//! plain word allows no further message either, the end reads the other end's position itself. Counters that only one
//! end uses have their own cache line.
//!
//! **Waiting.** The end that waits stores its waker in a cell and sets *waits* in the other end's word, by a
//! compare-exchange that expects the value for which the end has to wait. If the compare-exchange fails, the other end
//! has made progress, and the wait is over. If it succeeds, the next operation on that word finds the flag and clears
//! it. The thread that clears the flag may take the waker.
//!
//! **`drop_oldest`** lets the sender take messages at the head and reuse their memory. Therefore, with this policy a
//! receiver must not copy a message before it has moved the head. With this policy slots hold numbers of cells (module
//! `order`): the end that moves the head owns the cell, and the receiver returns the cell after it has read it.
//!
//! **A limit by weight** concerns only the sender (module `load`): it remembers the weights of the messages that it has
//! put, and learns from the head which of them were received.
//!
//! Sources: L. Lamport, "Specifying Concurrent Program Modules" (1983), for the ring with one producer and one
//! consumer; P. Lee, T. Bu, G. Chandranmenon, "A lock-free, cache-efficient multi-core synchronization mechanism"
//! (2010), for cached positions.

mod load;
#[cfg(all(test, loom))]
mod loom;
mod order;
mod receiver;
mod sender;
mod shared;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;

use super::flavour::{Flavour, Ring};
use super::options::Options;
use super::weigh::Weigh;
pub(super) use receiver::RingReceiver;
pub(super) use sender::{Deferred, NoCapacity, ReceiverView, RingSender};
pub(super) use shared::{RingEdge, WakerRegistration};
use std::sync::Arc;

impl<T: Send + 'static, W: Weigh<T>> Flavour<T> for Ring<W> {
    type SenderEnd = RingSender<T, W>;
    type ReceiverEnd = RingReceiver<T, W>;
}

/// Creates both ends of a ring and their shared state.
pub(super) fn ends<T: Send + 'static, W: Weigh<T>>(
    options: &Options,
) -> (RingSender<T, W>, RingReceiver<T, W>) {
    let ring = Arc::new(RingEdge::new(options));
    for handle in options.handles() {
        handle.attach(&ring);
    }
    (RingSender::new(Arc::clone(&ring)), RingReceiver::new(ring))
}
