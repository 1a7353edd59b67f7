//! The ring: a lock-free edge of one sender and one receiver, for `async` code and for threads.
//!
//! # How it works
//!
//! Messages lie in a ring of slots between two positions that only grow, the *head*, where the next
//! one is received, and the *tail*, where the next one is put. Each is an atomic word of its own
//! cache line, together with a few bits:
//!
//! | bit | in the tail | in the head |
//! |---|---|---|
//! | *aborted* | nothing more can be sent | nothing more can be received; the edge is aborted |
//! | *waits* | the receiver waits for messages | the sender waits for room |
//! | *closed* | the sender has closed | |
//!
//! **One operation decides.** A sender writes its message into a free slot and publishes it by a
//! compare-exchange of the tail, a whole batch by one. A receiver copies a message out and makes it
//! its own by a compare-exchange of the head. Both expect no bit to be set: so the one operation
//! that publishes or takes also finds out whether the edge was aborted before, and whether
//! the other end is to be woken. No fence is needed, nor a second look at a flag.
//!
//! **Abort** sets the bit in the tail, then in the head. An edge counts as aborted when the head has
//! it. A thread that finds the tail aborted sets the head's bit itself before it says so; so no thread
//! can learn of an abort and then see the edge work. After the tail's bit the tail stays as it is,
//! and after the head's the head does. So the thread that has set the head's bit, and no other, owns what
//! lies between the two, and drops it.
//!
//! **A recv that is under way** has copied its message when the compare-exchange fails. The copy is
//! forgotten: the message belongs to the thread that aborts. Both only read the slot, and no thread
//! writes to slots between head and tail; so they do not race.
//!
//! **Caches.** Each end remembers where it last saw the other, and looks again only when that
//! leaves it nothing to do. It then looks at first at a plain word into which the other writes how far
//! it has come: to read a word that has just been exchanged takes nearly as long as to exchange it.
//! Only when that, too, leaves it nothing to do, it looks at the other's word itself. Counters that the
//! other end has no use for lie in a line of their own.
//!
//! **Waiting.** The end that waits puts its waker into a cell and sets *waits* in the other's word
//! by a compare-exchange from the very value that left it nothing to do. If that fails, something
//! has happened; if not, the next operation on that word finds the bit and clears it, which gives it
//! the right to take the waker.
//!
//! **`drop_oldest`** lets the sender take messages out at the head. As it then reuses their memory,
//! a receiver may no longer copy before it has taken. So with this policy slots hold numbers of cells
//! (module `order`): the end that moves the head owns the cell, and the receiver gives it back when it has read it.
//!
//! **A limit by weight** is the sender's business alone (module `load`): it remembers the weights of what it has
//! put, and sees by the head which of them have left.
//!
//! Sources: L. Lamport, "Specifying Concurrent Program Modules" (1983), for the ring of one producer
//! and one consumer; P. Lee, T. Bu, G. Chandranmenon, "A lock-free, cache-efficient multi-core
//! synchronization mechanism" (2010), for the remembered positions.

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
pub(super) use sender::{Deferred, Lack, Look, RingSender};
pub(super) use shared::{RingEdge, Wait};
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
