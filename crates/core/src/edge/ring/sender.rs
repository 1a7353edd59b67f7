//! The sending end of a ring.

mod no_capacity;
mod put;

use super::load::Load;
use super::order::Free;
use super::shared::{ABORTED, RingEdge, WakerRegistration, position};
use super::slots::View;
use crate::edge::batch::Batch;
use crate::edge::error::{Aborted, TrySendError};
use crate::edge::flavour::{EdgeControl, SenderEnd};
use crate::edge::meter::Source;
use crate::edge::options::Overflow;
use crate::edge::park::spin_until;
use crate::edge::weigh::Weigh;
use crate::sync::Ordering;
pub(in crate::edge) use no_capacity::{NoCapacity, ReceiverView};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The sending end of a [`ring`](crate::edge::ring()).
pub struct RingSender<T: Send + 'static, W: Weigh<T>> {
    ring: Arc<RingEdge<T, W>>,
    /// A view of the slots, which the shared state of the ring owns.
    slots: View<T>,
    /// The position of the next message.
    tail: u64,
    /// The last known position of the receiver.
    head: u64,
    /// The number of messages that may be put from `tail` on before the head must be read again. These messages fit
    /// into the ring and do not exceed the high-water mark, so the mark need not be updated. 0 with a limit by weight.
    limit: u64,
    /// The high-water mark. Without statistics, it is the largest number.
    mark: u64,
    /// The weights of buffered messages; `None` without a limit by weight.
    load: Option<Box<Load>>,
    /// The free cells; `None` without `drop_oldest`.
    free: Option<Free>,
    closed: bool,
    /// True while blocked time is counted.
    blocked: bool,
    /// True if a lock protects this end, so that foreign code must run after the lock is released.
    defers: bool,
    /// True if work was deferred.
    has_deferred: bool,
    deferred: Deferred,
}

/// Work that runs foreign code, and is therefore deferred until a lock is released.
#[derive(Debug, Default)]
pub(in crate::edge) struct Deferred {
    /// The waker to call.
    pub(in crate::edge) woken: Option<Waker>,
    /// True if the tail is aborted, so that the abort must be completed.
    pub(in crate::edge) aborted: bool,
}

impl<T: Send + 'static, W: Weigh<T>> RingSender<T, W> {
    pub(in crate::edge) fn new(ring: Arc<RingEdge<T, W>>) -> RingSender<T, W> {
        let load = (ring.weight_limit < u64::MAX).then(|| Box::new(Load::new(ring.weight_limit)));
        RingSender {
            tail: 0,
            head: 0,
            limit: match ring.statistics || load.is_some() {
                true => 0,
                false => ring.capacity,
            },
            mark: if ring.statistics { 0 } else { u64::MAX },
            load,
            free: ring.order.is_some().then(|| Free::all(ring.slots.len())),
            closed: false,
            blocked: false,
            defers: false,
            has_deferred: false,
            deferred: Deferred::default(),
            slots: ring.slots.view(),
            ring,
        }
    }

    /// Defers foreign code until [`deferred`](Self::deferred).
    pub(in crate::edge) fn deferring(mut self) -> Self {
        self.defers = true;
        self
    }

    #[inline]
    pub(in crate::edge) fn has_deferred(&self) -> bool {
        self.has_deferred
    }

    /// Takes the work deferred since the last call.
    #[cold]
    pub(in crate::edge) fn deferred(&mut self) -> Deferred {
        self.has_deferred = false;
        std::mem::take(&mut self.deferred)
    }

    /// Wakes the receiver.
    #[cold]
    fn wake(&mut self, receiver: Waker) {
        match self.defers {
            false => receiver.wake(),
            true => {
                self.has_deferred = true;
                self.deferred.woken = Some(receiver);
            }
        }
    }

    /// Completes the abort of a tail.
    #[cold]
    fn settle(&mut self, tail: u64) {
        match self.defers {
            false => drop(self.ring.settle(tail)),
            true => {
                self.has_deferred = true;
                self.deferred.aborted = true;
            }
        }
    }

    /// Returns true if the head is still `seen`; in this case this end will be woken when the head changes.
    fn awaits_capacity(&mut self, seen: u64, context: &Context<'_>) -> bool {
        let wait = self.begin_waiting(seen, context.waker());
        if wait == WakerRegistration::Waking {
            context.waker().wake_by_ref();
        }
        wait != WakerRegistration::Over
    }

    /// Registers a waker like [`RingEdge::await_capacity`]. This end then counts as blocked, unless the wait is already
    /// over.
    pub(in crate::edge) fn begin_waiting(&mut self, seen: u64, waker: &Waker) -> WakerRegistration {
        let wait = self.ring.await_capacity(seen, waker);
        if wait != WakerRegistration::Over {
            self.block();
        }
        wait
    }

    /// Starts to measure the time for which this end is blocked, unless that has begun.
    fn block(&mut self) {
        if self.ring.statistics && !self.blocked {
            self.blocked = true;
            self.ring.sent.blocked.begin();
        }
    }

    /// Stops measuring the time for which this end is blocked.
    pub(in crate::edge) fn end_wait(&mut self) {
        if self.blocked {
            self.blocked = false;
            self.ring.sent.blocked.end();
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> SenderEnd<T> for RingSender<T, W> {
    fn edge(&self) -> &dyn EdgeControl {
        &*self.ring
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.ring) as _
    }

    #[inline]
    fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        match self.reserve_and_put(message) {
            Ok(()) => Ok(()),
            Err((NoCapacity::Full(_), message)) => Err(TrySendError::Full(message)),
            Err((NoCapacity::Aborted, message)) => Err(TrySendError::Aborted(message)),
            Err((NoCapacity::Drop, message)) => {
                self.count_dropped(std::slice::from_ref(&message));
                Ok(())
            }
        }
    }

    fn poll_send(
        &mut self,
        waiting: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>> {
        while let Some(message) = waiting.take() {
            match self.reserve_and_put(message) {
                Ok(()) => {}
                Err((NoCapacity::Drop, message)) => self.count_dropped(&[message]),
                Err((NoCapacity::Aborted, message)) => {
                    self.end_wait();
                    return Poll::Ready(Err(Aborted(message)));
                }
                Err((NoCapacity::Full(seen), message)) => {
                    *waiting = Some(message);
                    if self.awaits_capacity(seen, context) {
                        return Poll::Pending;
                    }
                }
            }
        }
        self.end_wait();
        Poll::Ready(Ok(()))
    }

    fn try_send_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        Ok(self.put_all(batch)?.is_none())
    }

    fn poll_send_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        let result = loop {
            match self.put_all(batch) {
                Ok(None) => break Ok(()),
                Err(aborted) => break Err(aborted),
                Ok(Some(seen)) if self.awaits_capacity(seen, context) => return Poll::Pending,
                Ok(Some(_)) => {}
            }
        };
        self.end_wait();
        Poll::Ready(result)
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        let result = loop {
            let (seen, free_capacity) = match self.read_head() {
                ReceiverView::At(seen, free_capacity) => (seen, free_capacity),
                ReceiverView::Aborted => break Err(Aborted(())),
            };
            let has_capacity =
                free_capacity > 0 && self.load.as_ref().is_none_or(|load| load.has_capacity());
            if has_capacity || self.ring.overflow != Overflow::Block {
                break Ok(());
            }
            if self.awaits_capacity(seen, context) {
                return Poll::Pending;
            }
        };
        self.end_wait();
        Poll::Ready(result)
    }

    fn withdraw(&mut self, _: &mut Option<T>) {
        self.end_wait();
    }

    fn linger_for_capacity(&self) -> bool {
        let (ring, seen) = (&self.ring, self.head);
        spin_until(|| {
            let head = ring.head.load(Ordering::Relaxed);
            head & ABORTED != 0 || position(head) != seen
        })
    }

    fn close(&mut self) {
        self.closed = true;
        // Makes every later send check the state of the edge and find this end closed.
        self.limit = 0;
        self.ring.close();
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for RingSender<T, W> {
    fn drop(&mut self) {
        self.end_wait();
        self.ring.close();
    }
}
