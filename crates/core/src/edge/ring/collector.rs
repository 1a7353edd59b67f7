//! The end of a ring that accepts messages.

mod put;

use super::batch::Batch;
use super::order::Free;
use super::shared::{ABORTED, Ring, position};
use super::slots::View;
use super::weigh::{One, Weigh};
use crate::edge::abort::Abort;
use crate::edge::park::{block_on, spin_until};
use crate::edge::{Aborted, Meter, Overflow, State, TryCollectError};
use crate::sync::Ordering;
use put::{Lack, Look};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The collecting end of a [`ring`](super::ring()). Dropping it closes the edge.
pub struct Collector<T: Send + 'static, W: Weigh<T> = One> {
    ring: Arc<Ring<T, W>>,
    /// Those of the ring, which keeps them.
    slots: View<T>,
    /// Where the next message is put.
    tail: u64,
    /// Where the emitter was last seen.
    head: u64,
    /// This many messages, counted from there, may be put without looking again: as many as fit,
    /// and no more than the high-water mark, so that what never grows is not counted.
    limit: u64,
    /// The high-water mark; the largest number without statistics.
    mark: u64,
    /// With `drop_oldest`.
    free: Option<Free>,
    closed: bool,
    /// The time spent blocked is running.
    blocked: bool,
}

impl<T: Send + 'static, W: Weigh<T>> Collector<T, W> {
    pub(super) fn new(ring: Arc<Ring<T, W>>) -> Collector<T, W> {
        Collector {
            tail: 0,
            head: 0,
            limit: if ring.statistics { 0 } else { ring.capacity },
            mark: if ring.statistics { 0 } else { u64::MAX },
            free: ring.order.is_some().then(|| Free::all(ring.slots.len())),
            closed: false,
            blocked: false,
            slots: ring.slots.view(),
            ring,
        }
    }

    /// As [`TryCollect::try_collect`](crate::edge::TryCollect::try_collect). O(1), without locks.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        if self.tail - self.head >= self.limit && !self.glance() {
            match self.make_room(1) {
                Ok(room) => self.raise_mark(room),
                Err(Lack::Full) => return Err(TryCollectError::Full(message)),
                Err(Lack::Aborted) => return Err(TryCollectError::Aborted(message)),
                Err(Lack::Drop) => {
                    self.count_dropped(std::slice::from_ref(&message));
                    return Ok(());
                }
            }
        }
        self.put(message).map_err(TryCollectError::from)
    }

    /// As [`Collect::collect`](crate::edge::Collect::collect).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub async fn collect(&mut self, message: T) -> Result<(), Aborted<T>> {
        let mut message = message;
        loop {
            message = match self.try_collect(message) {
                Ok(()) => return Ok(()),
                Err(TryCollectError::Aborted(message)) => return Err(Aborted(message)),
                Err(TryCollectError::Full(message)) => message,
            };
            if self.ready().await.is_err() {
                return Err(Aborted(message));
            }
        }
    }

    /// Accepts all messages of a vector, in order and many at once, and waits for room as often as
    /// it has to. What could not be collected is left in the vector, also if the future is dropped
    /// before it is ready.
    ///
    /// # Errors
    /// [`Aborted`] when the edge takes no more.
    pub async fn collect_all(&mut self, messages: &mut Vec<T>) -> Result<(), Aborted<()>> {
        let mut batch = Batch::new(messages);
        while !self.put_all(&mut batch)? {
            self.ready().await?;
        }
        Ok(())
    }

    /// As [`Collect::ready`](crate::edge::Collect::ready).
    ///
    /// # Errors
    /// As there.
    pub async fn ready(&mut self) -> Result<(), Aborted<()>> {
        Ready(self).await
    }

    /// As [`BlockingCollect::collect_blocking`](crate::edge::BlockingCollect::collect_blocking).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn collect_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        let mut message = message;
        loop {
            message = match self.try_collect(message) {
                Ok(()) => return Ok(()),
                Err(TryCollectError::Aborted(message)) => return Err(Aborted(message)),
                Err(TryCollectError::Full(message)) => message,
            };
            if self.ready_blocking().is_err() {
                return Err(Aborted(message));
            }
        }
    }

    /// As [`collect_all`](Collector::collect_all), blocking the thread.
    ///
    /// # Errors
    /// As there.
    pub fn collect_all_blocking(&mut self, messages: &mut Vec<T>) -> Result<(), Aborted<()>> {
        let mut batch = Batch::new(messages);
        while !self.put_all(&mut batch)? {
            self.ready_blocking()?;
        }
        Ok(())
    }

    /// As [`TryCollect::close`](crate::edge::TryCollect::close).
    pub fn close(&mut self) {
        self.closed = true;
        // So that no message is put without looking.
        self.limit = 0;
        self.ring.close();
    }

    /// As [`TryCollect::abort`](crate::edge::TryCollect::abort). Drops what is buffered: O(messages).
    pub fn abort(&self) {
        self.ring.abort();
    }

    /// Whether the edge still takes messages.
    pub fn state(&self) -> State {
        self.ring.state()
    }

    /// Whether the edge was aborted before everything was emitted.
    pub fn is_aborted(&self) -> bool {
        self.state() == State::Aborted
    }

    /// How many messages are buffered now.
    pub fn buffered(&self) -> usize {
        match self.ring.head.load(Ordering::Acquire) {
            head if head & ABORTED != 0 => 0,
            head => (self.tail - position(head)) as usize,
        }
    }

    /// How many messages it holds at most.
    pub fn capacity(&self) -> usize {
        self.ring.capacity as usize
    }

    /// Reads the edge's statistics.
    pub fn meter(&self) -> Meter {
        Meter::new(Arc::clone(&self.ring) as _)
    }

    fn ready_blocking(&mut self) -> Result<(), Aborted<()>> {
        if let Look::Full(seen) = self.look(1) {
            self.block();
            spin_until(|| self.ring.head.load(Ordering::Relaxed) != seen);
        }
        block_on(|context| self.poll_ready(context))
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        loop {
            match self.look(1) {
                Look::Full(seen) if self.ring.overflow == Overflow::Block => {
                    if self.ring.await_room(seen, context.waker()) {
                        self.block();
                        return Poll::Pending;
                    }
                }
                Look::Room(_) | Look::Full(_) => {
                    self.rest();
                    return Poll::Ready(Ok(()));
                }
                Look::Aborted => {
                    self.rest();
                    return Poll::Ready(Err(Aborted(())));
                }
            }
        }
    }

    /// It begins to be blocked, or still is.
    fn block(&mut self) {
        if self.ring.statistics && !self.blocked {
            self.blocked = true;
            self.ring.collected.blocked.begin();
        }
    }

    /// It is not blocked.
    fn rest(&mut self) {
        if self.blocked {
            self.blocked = false;
            self.ring.collected.blocked.end();
        }
    }
}

/// Waits for room.
struct Ready<'a, T: Send + 'static, W: Weigh<T>>(&'a mut Collector<T, W>);

impl<T: Send + 'static, W: Weigh<T>> Future for Ready<'_, T, W> {
    type Output = Result<(), Aborted<()>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll_ready(context)
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for Ready<'_, T, W> {
    fn drop(&mut self) {
        self.0.rest();
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for Collector<T, W> {
    fn drop(&mut self) {
        self.ring.close();
    }
}
