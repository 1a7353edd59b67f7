//! The ring: a lock-free edge of one collector and one emitter, for `async` code and for threads.
//!
//! # How it works
//!
//! Messages lie in a ring of slots between two positions that only grow, the *head*, where the next
//! one is emitted, and the *tail*, where the next one is put. Each is an atomic word of its own
//! cache line, together with a few bits:
//!
//! | bit | in the tail | in the head |
//! |---|---|---|
//! | *aborted* | nothing more can be collected | nothing more can be emitted; the edge is aborted |
//! | *waits* | the emitter waits for messages | the collector waits for room |
//! | *closed* | the collector has closed | |
//!
//! **One operation decides.** A collector writes its message into a free slot and publishes it by a
//! compare-exchange of the tail, a whole batch by one. An emitter copies a message out and makes it
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
//! **An emit that is under way** has copied its message when the compare-exchange fails. The copy is
//! forgotten: the message belongs to the one who aborts. Both only read the slot, as
//! no thread writes to slots between head and tail; so they do not race.
//!
//! **Caches.** Each end remembers where it last saw the other, and looks again only when that
//! leaves it nothing to do. It then looks at first at a plain word in which the other tells how far
//! it has come: to read a word that has just been exchanged takes nearly as long as to exchange it.
//! Only when that, too, leaves it nothing to do, it looks at the other's word itself. Counters that the
//! other end has no use for lie in a line of their own.
//!
//! **Waiting.** The end that waits puts its waker into a cell and sets *waits* in the other's word
//! by a compare-exchange from the very value that left it nothing to do. If that fails, something
//! has happened; if not, the next operation on that word finds the bit and clears it, which gives it
//! the right to take the waker.
//!
//! **`drop_oldest`** lets the collector take messages out at the head. As it then reuses their memory,
//! an emitter may no longer copy before it has taken. So with this policy slots hold numbers of cells
//! (module `order`): who moves the head owns the cell, and the emitter gives it back when it has read it.
//!
//! Sources: L. Lamport, "Specifying Concurrent Program Modules" (1983), for the ring of one producer
//! and one consumer; P. Lee, T. Bu, G. Chandranmenon, "A lock-free, cache-efficient multi-core
//! synchronization mechanism" (2010), for the remembered positions.

mod batch;
mod collector;
mod contract;
mod emitter;
#[cfg(all(test, loom))]
mod loom;
mod order;
mod shared;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;
mod weigh;

pub use collector::Collector;
pub use emitter::Emitter;
pub use weigh::{One, Weigh};

use super::Options;
use shared::Ring;
use std::sync::Arc;

/// Makes a ring edge. O(capacity).
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (mut tx, mut rx) = edge::ring(Options::new(16));
/// let reader = thread::spawn(move || {
///     let mut sum = 0;
///     while let Some(number) = rx.emit_blocking() {
///         sum += number;
///     }
///     sum
/// });
/// for number in 1..=100 {
///     tx.collect_blocking(number)?;
/// }
/// drop(tx); // closes: what is buffered is still emitted
/// assert_eq!(reader.join().unwrap(), 5050);
/// # Ok::<(), edge::Aborted<u32>>(())
/// ```
pub fn ring<T: Send + 'static>(options: Options) -> (Collector<T>, Emitter<T>) {
    ring_weighed(options)
}

/// Makes a ring edge whose statistics count every message as `W` weighs it.
///
/// ```
/// use corsair::edge::{self, Options, Weigh};
///
/// struct Points;
/// impl Weigh<Vec<f64>> for Points {
///     fn weight(batch: &Vec<f64>) -> u64 {
///         batch.len() as u64
///     }
/// }
///
/// let (mut tx, rx) = edge::ring_weighed::<Vec<f64>, Points>(Options::new(8));
/// tx.try_collect(vec![1.0, 2.0, 3.0]).expect("there is room");
/// let statistics = rx.meter().read();
/// assert_eq!((statistics.collected, statistics.buffered), (3, 1));
/// ```
pub fn ring_weighed<T: Send + 'static, W: Weigh<T>>(
    options: Options,
) -> (Collector<T, W>, Emitter<T, W>) {
    let ring = Arc::new(Ring::new(&options));
    for handle in options.handles() {
        handle.attach(&ring);
    }
    (Collector::new(Arc::clone(&ring)), Emitter::new(ring))
}
