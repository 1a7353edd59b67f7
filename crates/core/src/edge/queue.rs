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
//! line: a collector whose number is lower has been served. `arrivals` counts what an emitter may wait for.

mod blocked;
mod collecting;
mod contents;
mod emitting;
mod later;
#[cfg(all(test, loom))]
mod loom;

use super::abort::Abort;
use super::flavour::{Flavour, Queue};
use super::meter::Source;
use super::weigh::Weigh;
use super::{EdgeStatistics, Options, Overflow, State};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use collecting::QueueCollecting;
use contents::Contents;
use crossbeam_utils::CachePadded;
use emitting::QueueEmitting;
use later::Later;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError};

impl<T: Send + 'static, W: Weigh<T>> Flavour<T> for Queue<W> {
    type Collecting = QueueCollecting<T, W>;
    type Emitting = QueueEmitting<T, W>;
}

/// Both ends of a queue, and what they share.
pub(super) fn ends<T: Send + 'static, W: Weigh<T>>(
    options: &Options,
) -> (QueueCollecting<T, W>, QueueEmitting<T, W>) {
    let queue = Arc::new(QueueEdge {
        contents: CachePadded::new(Mutex::new(Contents::new(options, W::ALL_ONE))),
        decided: CachePadded::new(AtomicU64::new(0)),
        arrivals: CachePadded::new(AtomicU64::new(0)),
        weigh: PhantomData,
    });
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

/// What all ends of a queue share.
pub struct QueueEdge<T, W> {
    contents: CachePadded<Mutex<Contents<T>>>,
    /// The number of the first offer in the line. Written under the lock.
    decided: CachePadded<AtomicU64>,
    /// Counts messages, offers, the close and the abort. Written under the lock.
    arrivals: CachePadded<AtomicU64>,
    weigh: PhantomData<fn() -> W>,
}

impl<T, W> QueueEdge<T, W> {
    /// Changes the contents, then wakes and drops what that has brought about.
    #[inline]
    fn change<R>(&self, change: impl FnOnce(&mut Contents<T>, &mut Later<T>) -> R) -> R {
        let mut later = Later::new();
        let mut contents = self.lock();
        let result = change(&mut contents, &mut later);
        self.decided.store(contents.decided(), Ordering::Release);
        self.arrivals.store(contents.arrivals(), Ordering::Release);
        drop(contents);
        later.act();
        result
    }

    /// Nothing panics with the lock held, so it is never poisoned.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Contents<T>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send, W: Weigh<T>> Abort for QueueEdge<T, W> {
    #[cold]
    fn abort(&self) {
        self.change(Contents::abort);
    }
}

impl<T: Send, W: Weigh<T>> Source for QueueEdge<T, W> {
    fn read(&self) -> EdgeStatistics {
        self.lock().read()
    }

    fn state(&self) -> State {
        self.lock().state()
    }

    fn filled(&self) -> (usize, usize) {
        self.lock().filled()
    }
}
