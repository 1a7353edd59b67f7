//! The end of a ring that accepts messages.

use super::batch::Batch;
use super::order::Free;
use super::shared::{ABORTED, IsAborted, Ring, own, position};
use super::slots::View;
use super::weigh::{One, Weigh};
use crate::edge::abort::Abort;
use crate::edge::contract::{BlockingCollect, Collect, TryCollect};
use crate::edge::park::{block_on, spin_until};
use crate::edge::{Aborted, Meter, Overflow, State, TryCollectError};
use crate::sync::Ordering;
use std::fmt;
use std::mem::MaybeUninit;
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
    /// So many messages, counted from there, may be put without looking again: as many as fit,
    /// and no more than the high-water mark, so that nobody has to count what never grows.
    limit: u64,
    /// The high-water mark; the largest number without statistics.
    mark: u64,
    /// With `drop_oldest`.
    free: Option<Free>,
    closed: bool,
    /// The time spent blocked is running.
    blocked: bool,
}

/// Why there is no room.
enum Lack {
    /// The edge is full, and its policy is to block.
    Full,
    /// The policy is to drop the message.
    Drop,
    Aborted,
}

/// What the collector sees of the other end.
enum Look {
    /// For so many messages.
    Room(u64),
    /// None, as long as the head is this.
    Full(u64),
    Aborted,
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

    /// As [`TryCollect::try_collect`]. O(1), without locks.
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

    /// As [`Collect::collect`].
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
        while let Err(lack) = self.put_all(&mut batch) {
            match lack {
                Lack::Full => self.ready().await?,
                Lack::Drop => unreachable!("a batch is dropped where its room is made"),
                Lack::Aborted => return Err(Aborted(())),
            }
        }
        Ok(())
    }

    /// As [`Collect::ready`].
    ///
    /// # Errors
    /// As there.
    pub async fn ready(&mut self) -> Result<(), Aborted<()>> {
        Ready(self).await
    }

    /// As [`BlockingCollect::collect_blocking`].
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
        while let Err(lack) = self.put_all(&mut batch) {
            match lack {
                Lack::Full => self.ready_blocking()?,
                Lack::Drop => unreachable!("a batch is dropped where its room is made"),
                Lack::Aborted => return Err(Aborted(())),
            }
        }
        Ok(())
    }

    /// As [`TryCollect::close`].
    pub fn close(&mut self) {
        self.closed = true;
        // So that no message is put without looking.
        self.limit = 0;
        self.ring.close();
    }

    /// As [`TryCollect::abort`]. Drops what is buffered: O(messages).
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
        match self.ring.head.0.load(Ordering::Acquire) {
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

    /// Whether what the emitter has told makes room, without reaching a new mark.
    #[inline]
    fn glance(&mut self) -> bool {
        self.head = self.head.max(self.ring.taken.0.load(Ordering::Acquire));
        self.tail - self.head < self.limit
    }

    /// Looks where the emitter is: room for so many messages, at least one and at most `wanted`.
    fn look(&mut self, wanted: u64) -> Look {
        let seen = self.ring.head.0.load(Ordering::Acquire);
        if self.closed || seen & ABORTED != 0 {
            return Look::Aborted;
        }
        self.head = position(seen);
        match self.ring.capacity - (self.tail - self.head) {
            0 => Look::Full(seen),
            room => Look::Room(room.min(wanted)),
        }
    }

    /// Room for at least one message and at most `wanted`, if the policy can make any.
    #[cold]
    fn make_room(&mut self, wanted: u64) -> Result<u64, Lack> {
        loop {
            let seen = match self.look(wanted) {
                Look::Room(room) => return Ok(room),
                Look::Aborted => return Err(Lack::Aborted),
                Look::Full(seen) => seen,
            };
            match self.ring.overflow {
                Overflow::Block => return Err(Lack::Full),
                Overflow::DropNewest => return Err(Lack::Drop),
                Overflow::DropOldest => self.drop_oldest(seen, wanted.min(self.ring.capacity)),
                Overflow::Abort => {
                    self.ring.abort();
                    return Err(Lack::Aborted);
                }
            }
        }
    }

    /// Drops so many of the messages that lie at the head, if it is still as it was `seen`.
    fn drop_oldest(&mut self, seen: u64, count: u64) {
        let (Some(free), Some(order)) = (&mut self.free, &self.ring.order) else {
            unreachable!("an edge that drops the oldest has an order");
        };
        let oldest = position(seen);
        if !self.ring.take(seen, count) {
            return;
        }
        let dropped: Vec<T> = (oldest..oldest + count)
            .map(|at| {
                let number = order.number(at);
                free.put(number);
                // SAFETY: this end has moved the head past them; so the cells are its own.
                unsafe { own(self.slots.copy(u64::from(number))) }
            })
            .collect();
        self.count_dropped(&dropped);
    }

    /// These messages are dropped by the policy.
    fn count_dropped(&self, messages: &[T]) {
        if self.ring.statistics {
            let weight = messages.iter().map(W::weight).sum();
            self.ring.collected.0.dropped.add(weight);
        }
    }

    /// `count` messages are about to be put, and the emitter has just been looked for.
    fn raise_mark(&mut self, count: u64) {
        let filled = self.tail - self.head + count;
        if filled > self.mark {
            self.mark = filled;
            self.ring.collected.0.high_water.set(filled);
        }
        self.limit = self.ring.capacity.min(self.mark);
    }

    /// Puts a message where there is room.
    #[inline(always)]
    fn put(&mut self, message: T) -> Result<(), Aborted<T>> {
        let weight = match W::ALL_ONE {
            true => 0,
            false => W::weight(&message),
        };
        let cell = self.fill(self.tail, MaybeUninit::new(message));
        // SAFETY: this is the collector, and the message is there.
        match unsafe { self.ring.publish(self.tail, 1) } {
            Ok(()) => {
                self.moved(1, weight);
                Ok(())
            }
            Err(IsAborted) => {
                self.unfill(1);
                // SAFETY: it was not published, so it is still this end's, and here is its one owner.
                Err(Aborted(unsafe { own(self.slots.copy(cell)) }))
            }
        }
    }

    /// Puts as much of a batch as there is room for; `Ok` if that is all of it.
    fn put_all(&mut self, batch: &mut Batch<'_, T>) -> Result<(), Lack> {
        while !batch.rest().is_empty() {
            let wanted = batch.rest().len() as u64;
            let count = match self.limit.saturating_sub(self.tail - self.head) {
                room if room >= wanted => wanted,
                _ => match self.make_room(wanted) {
                    Ok(room) => {
                        self.raise_mark(room);
                        room
                    }
                    Err(Lack::Drop) => {
                        self.count_dropped(batch.rest());
                        batch.discard();
                        return Ok(());
                    }
                    Err(lack) => return Err(lack),
                },
            };
            let messages = &batch.rest()[..count as usize];
            let weight = match W::ALL_ONE {
                true => 0,
                false => messages.iter().map(W::weight).sum(),
            };
            for (at, message) in (self.tail..).zip(messages) {
                // SAFETY: a bitwise copy, which is forgotten unless it is published.
                let copy = unsafe { std::ptr::from_ref(message).cast::<MaybeUninit<T>>().read() };
                self.fill(at, copy);
            }
            // SAFETY: this is the collector, and the messages are there.
            match unsafe { self.ring.publish(self.tail, count) } {
                // SAFETY: those published belong to the edge.
                Ok(()) => unsafe { batch.taken(count as usize) },
                Err(IsAborted) => {
                    self.unfill(count);
                    return Err(Lack::Aborted);
                }
            }
            self.moved(count, weight);
        }
        Ok(())
    }

    /// Writes to the slot of a position that is not published and for which there is room. Returns
    /// which cell that is.
    #[inline(always)]
    fn fill(&mut self, at: u64, message: MaybeUninit<T>) -> u64 {
        let cell = match &mut self.free {
            None => at,
            Some(free) => match &self.ring.order {
                Some(order) => free.fill(order, at),
                None => at,
            },
        };
        // SAFETY: where there is room the emitter has been, and it will be here only after the
        // publication; a free cell is the collector's.
        unsafe { self.slots.write(cell, message) };
        cell
    }

    /// The cells of so many messages at the tail were filled in vain.
    #[cold]
    fn unfill(&mut self, count: u64) {
        if let (Some(free), Some(order)) = (&mut self.free, &self.ring.order) {
            (self.tail..self.tail + count).for_each(|at| free.put(order.number(at)));
        }
    }

    /// So many messages, of this weight together, have been published.
    #[inline]
    fn moved(&mut self, count: u64, weight: u64) {
        self.tail += count;
        // Releases the messages.
        self.ring.published.0.store(self.tail, Ordering::Release);
        if !W::ALL_ONE && self.ring.statistics {
            self.ring.collected.0.weight.add(weight);
        }
    }

    fn ready_blocking(&mut self) -> Result<(), Aborted<()>> {
        if let Look::Full(seen) = self.look(1) {
            self.block();
            spin_until(|| self.ring.head.0.load(Ordering::Relaxed) != seen);
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
            self.ring.collected.0.blocked.begin();
        }
    }

    /// It is not blocked.
    fn rest(&mut self) {
        if self.blocked {
            self.blocked = false;
            self.ring.collected.0.blocked.end();
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

impl<T: Send + 'static, W: Weigh<T>> fmt::Debug for Collector<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static, W: Weigh<T>> TryCollect for Collector<T, W> {
    type Message = T;

    fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        self.try_collect(message)
    }

    fn close(&mut self) {
        self.close();
    }

    fn abort(&self) {
        self.abort();
    }

    fn state(&self) -> State {
        self.state()
    }

    fn meter(&self) -> Meter {
        self.meter()
    }
}

impl<T: Send + 'static, W: Weigh<T>> Collect for Collector<T, W> {
    fn collect(&mut self, message: T) -> impl Future<Output = Result<(), Aborted<T>>> + Send {
        self.collect(message)
    }

    fn ready(&mut self) -> impl Future<Output = Result<(), Aborted<()>>> + Send {
        self.ready()
    }
}

impl<T: Send + 'static, W: Weigh<T>> BlockingCollect for Collector<T, W> {
    fn collect_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        self.collect_blocking(message)
    }
}
