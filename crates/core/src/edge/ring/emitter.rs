//! The end of a ring that yields messages.

use super::shared::{ABORTED, CLOSED, IsAborted, Ring, own, position};
use super::slots::View;
use super::weigh::{One, Weigh};
use crate::edge::abort::Abort;
use crate::edge::contract::{BlockingEmit, Emit, TryEmit};
use crate::edge::park::{block_on, spin_until};
use crate::edge::{Meter, State, TryEmitError};
use crate::sync::Ordering;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The emitting end of a [`ring`](super::ring()). Dropping it aborts the edge, unless it was closed
/// and everything has been emitted.
pub struct Emitter<T: Send + 'static, W: Weigh<T> = One> {
    ring: Arc<Ring<T, W>>,
    /// Those of the ring, which keeps them.
    slots: View<T>,
    /// Where the next message lies; with `drop_oldest` the head knows better.
    head: u64,
    /// Up to where messages have been seen.
    tail: u64,
    /// With `drop_oldest`.
    ordered: bool,
    /// With `drop_oldest`: how many cells have been given back.
    returns: u64,
    /// With `drop_oldest`: the cells just taken.
    cells: Vec<u32>,
    /// The time spent blocked is running.
    blocked: bool,
}

/// Why there is no message.
enum Lack {
    /// There is none as long as the tail is this.
    Empty(u64),
    Closed,
    Aborted,
}

impl From<IsAborted> for Lack {
    fn from(_: IsAborted) -> Lack {
        Lack::Aborted
    }
}

impl<T: Send + 'static, W: Weigh<T>> Emitter<T, W> {
    pub(super) fn new(ring: Arc<Ring<T, W>>) -> Emitter<T, W> {
        Emitter {
            head: 0,
            tail: 0,
            ordered: ring.order.is_some(),
            returns: 0,
            cells: Vec::new(),
            blocked: false,
            slots: ring.slots.view(),
            ring,
        }
    }

    /// As [`TryEmit::try_emit`]. O(1), without locks.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn try_emit(&mut self) -> Result<T, TryEmitError> {
        self.take().map_err(|lack| match lack {
            Lack::Empty(_) => TryEmitError::Empty,
            Lack::Closed => TryEmitError::Closed,
            Lack::Aborted => TryEmitError::Aborted,
        })
    }

    /// As [`Emit::emit`].
    #[inline]
    pub async fn emit(&mut self) -> Option<T> {
        match self.take() {
            Ok(message) => return Some(message),
            Err(Lack::Empty(_)) => {}
            Err(_) => return None,
        }
        Waiting(self, |emitter: &mut Self, context: &mut Context<'_>| {
            emitter.poll_emit(context)
        })
        .await
    }

    /// Waits for messages and appends as many as there are to a vector, at most `max`, and at
    /// least one, also if `max` is 0. Returns how many; 0 when there will be none any more. A future
    /// that is dropped before it is ready has taken nothing.
    #[inline]
    pub async fn emit_many(&mut self, messages: &mut Vec<T>, max: usize) -> usize {
        match self.take_many(messages, max) {
            Ok(count) => return count,
            Err(Lack::Empty(_)) => {}
            Err(_) => return 0,
        }
        Waiting(self, |emitter: &mut Self, context: &mut Context<'_>| {
            emitter
                .poll(context, |emitter| emitter.take_many(messages, max))
                .map(|count| count.unwrap_or(0))
        })
        .await
    }

    /// As [`Emit::poll_emit`].
    pub fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll(context, Self::take)
    }

    /// As [`emit_many`](Emitter::emit_many), without waiting.
    ///
    /// # Errors
    /// As [`TryEmit::try_emit`].
    pub fn try_emit_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
    ) -> Result<usize, TryEmitError> {
        self.take_many(messages, max).map_err(|lack| match lack {
            Lack::Empty(_) => TryEmitError::Empty,
            Lack::Closed => TryEmitError::Closed,
            Lack::Aborted => TryEmitError::Aborted,
        })
    }

    /// As [`BlockingEmit::emit_blocking`].
    #[inline]
    pub fn emit_blocking(&mut self) -> Option<T> {
        match self.take() {
            Ok(message) => Some(message),
            Err(Lack::Empty(seen)) => self.block_until(seen, Self::take),
            Err(_) => None,
        }
    }

    /// As [`emit_many`](Emitter::emit_many), blocking the thread.
    pub fn emit_many_blocking(&mut self, messages: &mut Vec<T>, max: usize) -> usize {
        match self.take_many(messages, max) {
            Ok(count) => count,
            Err(Lack::Empty(seen)) => self
                .block_until(seen, |emitter| emitter.take_many(messages, max))
                .unwrap_or(0),
            Err(_) => 0,
        }
    }

    /// As [`TryEmit::abort`]. Drops what is buffered: O(messages).
    pub fn abort(&self) {
        self.ring.abort();
    }

    /// Whether the edge still takes messages, and how it ended.
    pub fn state(&self) -> State {
        self.ring.state()
    }

    /// Whether the edge was aborted before everything was emitted.
    pub fn is_aborted(&self) -> bool {
        self.state() == State::Aborted
    }

    /// How many messages are buffered now.
    pub fn buffered(&self) -> usize {
        let head = self.ring.head.0.load(Ordering::Acquire);
        let tail = self.ring.tail.0.load(Ordering::Acquire);
        match head & ABORTED {
            0 => (position(tail) - position(head)).min(self.ring.capacity) as usize,
            _ => 0,
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

    /// So many messages have been taken.
    #[inline]
    fn moved(&mut self, count: u64) {
        self.head += count;
        // Releases their slots.
        self.ring.taken.0.store(self.head, Ordering::Release);
    }

    /// Whether the collector has told of messages after the head.
    #[inline]
    fn glance(&mut self) -> bool {
        let published = self.ring.published.0.load(Ordering::Acquire);
        let more = published > self.head;
        if more {
            self.tail = published;
        }
        more
    }

    /// Looks where the collector is, if it has put anything after `head`.
    #[cold]
    fn look(&mut self, head: u64) -> Result<(), Lack> {
        let seen = self.ring.tail.0.load(Ordering::Acquire);
        if seen & ABORTED != 0 {
            drop(self.ring.settle(seen));
            return Err(match self.ring.state() {
                State::Aborted => Lack::Aborted,
                _ => Lack::Closed,
            });
        }
        self.tail = position(seen);
        match (self.tail == head, seen & CLOSED) {
            (false, _) => Ok(()),
            (true, 0) => Err(Lack::Empty(seen)),
            (true, _) => Err(Lack::Closed),
        }
    }

    /// The next message.
    #[inline(always)]
    fn take(&mut self) -> Result<T, Lack> {
        if self.ordered {
            return self.take_cell();
        }
        if self.head == self.tail && !self.glance() {
            self.look(self.head)?;
        }
        // SAFETY: it is published; the collector writes there only after the head has passed.
        let copy = unsafe { self.slots.copy(self.head) };
        // SAFETY: this is the emitter, and the policy is not to drop the oldest.
        unsafe { self.ring.advance(self.head, 1) }?;
        self.moved(1);
        // SAFETY: taken just now; there is no other owner.
        let message = unsafe { own(copy) };
        if !W::ALL_ONE {
            self.count(std::slice::from_ref(&message));
        }
        Ok(message)
    }

    /// Appends the next messages, at least one.
    fn take_many(&mut self, messages: &mut Vec<T>, max: usize) -> Result<usize, Lack> {
        let max = max.max(1) as u64;
        let before = messages.len();
        if self.ordered {
            self.take_cells(max)?;
            messages.reserve(self.cells.len());
            self.empty_cells(|message| messages.push(message));
            self.count(&messages[before..]);
            return Ok(messages.len() - before);
        }
        if self.tail - self.head < max && !self.glance() {
            self.look(self.head)?;
        }
        let count = max.min(self.tail - self.head);
        messages.reserve(count as usize);
        for (at, spare) in (self.head..self.head + count).zip(messages.spare_capacity_mut()) {
            // SAFETY: as in `take`.
            *spare = unsafe { self.slots.copy(at) };
        }
        // SAFETY: as in `take`.
        unsafe { self.ring.advance(self.head, count) }?;
        self.moved(count);
        // SAFETY: so many were written there, and taken just now; there is no other owner.
        unsafe { messages.set_len(before + count as usize) };
        if !W::ALL_ONE {
            self.count(&messages[before..]);
        }
        Ok(count as usize)
    }

    /// With `drop_oldest`: the next message.
    #[inline(never)]
    fn take_cell(&mut self) -> Result<T, Lack> {
        self.take_cells(1)?;
        let mut message = None;
        self.empty_cells(|it| message = Some(it));
        self.count(message.as_slice());
        message.ok_or(Lack::Closed)
    }

    /// With `drop_oldest`: takes the cells of the next messages, at least one and at most `max`.
    fn take_cells(&mut self, max: u64) -> Result<(), Lack> {
        loop {
            let seen = self.ring.head.0.load(Ordering::Acquire);
            if seen & ABORTED != 0 {
                return Err(Lack::Aborted);
            }
            let head = position(seen);
            if self.tail < head.saturating_add(max) {
                self.look(head)?;
            }
            let count = max.min(self.tail - head);
            let order = self.ring.order.as_ref();
            self.cells.clear();
            self.cells.extend(
                order
                    .into_iter()
                    .flat_map(|order| (head..head + count).map(|at| order.number(at))),
            );
            if self.ring.take(seen, count) {
                return Ok(());
            }
        }
    }

    /// With `drop_oldest`: passes the messages of the cells just taken on, and gives the cells back.
    fn empty_cells(&mut self, mut pass: impl FnMut(T)) {
        let Some(order) = &self.ring.order else {
            unreachable!("an edge that drops the oldest has an order");
        };
        for number in self.cells.drain(..) {
            // SAFETY: this end has moved the head past the position that held the number, so the cell
            // and its message are its own until it gives the cell back.
            let message = unsafe { own(self.slots.copy(u64::from(number))) };
            order.give_back(self.returns, number);
            self.returns += 1;
            pass(message);
        }
    }

    /// These have been emitted.
    fn count(&self, messages: &[T]) {
        if self.ring.statistics {
            let weight = messages.iter().map(W::weight).sum();
            self.ring.emitted.0.weight.add(weight);
        }
    }

    /// Takes what there is, or arranges to be woken.
    fn poll<R>(
        &mut self,
        context: &mut Context<'_>,
        mut take: impl FnMut(&mut Self) -> Result<R, Lack>,
    ) -> Poll<Option<R>> {
        loop {
            let taken = match take(self) {
                Ok(taken) => Some(taken),
                Err(Lack::Empty(seen)) => {
                    if self.ring.await_message(seen, context.waker()) {
                        self.block();
                        return Poll::Pending;
                    }
                    continue;
                }
                Err(_) => None,
            };
            self.rest();
            return Poll::Ready(taken);
        }
    }

    /// Takes what there is as soon as there is something.
    #[cold]
    fn block_until<R>(
        &mut self,
        seen: u64,
        mut take: impl FnMut(&mut Self) -> Result<R, Lack>,
    ) -> Option<R> {
        self.block();
        spin_until(|| self.ring.tail.0.load(Ordering::Relaxed) != seen);
        block_on(|context| self.poll(context, &mut take))
    }

    /// It begins to be blocked, or still is.
    fn block(&mut self) {
        if self.ring.statistics && !self.blocked {
            self.blocked = true;
            self.ring.emitted.0.blocked.begin();
        }
    }

    /// As [`Emit::rest`].
    pub fn rest(&mut self) {
        if self.blocked {
            self.blocked = false;
            self.ring.emitted.0.blocked.end();
        }
    }
}

/// Waits by a poll of the emitter.
struct Waiting<'a, T: Send + 'static, W: Weigh<T>, P>(&'a mut Emitter<T, W>, P);

// The poll is not pinned.
impl<T: Send + 'static, W: Weigh<T>, P> Unpin for Waiting<'_, T, W, P> {}

impl<T, W, P, R> Future for Waiting<'_, T, W, P>
where
    T: Send + 'static,
    W: Weigh<T>,
    P: FnMut(&mut Emitter<T, W>, &mut Context<'_>) -> Poll<R>,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let Waiting(emitter, poll) = self.get_mut();
        poll(emitter, context)
    }
}

impl<T: Send + 'static, W: Weigh<T>, P> Drop for Waiting<'_, T, W, P> {
    fn drop(&mut self) {
        self.0.rest();
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for Emitter<T, W> {
    fn drop(&mut self) {
        self.ring.abort();
    }
}

impl<T: Send + 'static, W: Weigh<T>> fmt::Debug for Emitter<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static, W: Weigh<T>> TryEmit for Emitter<T, W> {
    type Message = T;

    fn try_emit(&mut self) -> Result<T, TryEmitError> {
        self.try_emit()
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

impl<T: Send + 'static, W: Weigh<T>> Emit for Emitter<T, W> {
    fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_emit(context)
    }

    fn emit(&mut self) -> impl Future<Output = Option<T>> + Send {
        self.emit()
    }

    fn rest(&mut self) {
        self.rest();
    }
}

impl<T: Send + 'static, W: Weigh<T>> BlockingEmit for Emitter<T, W> {
    fn emit_blocking(&mut self) -> Option<T> {
        self.emit_blocking()
    }

    fn wait_any(emitters: &mut [Self]) {
        block_on(|context| {
            let mut ready = emitters.is_empty();
            for emitter in emitters.iter_mut() {
                ready |= emitter.poll_some(context);
            }
            if ready {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        emitters.iter_mut().for_each(Emitter::rest);
    }
}

impl<T: Send + 'static, W: Weigh<T>> Emitter<T, W> {
    /// Whether a `try_emit` would find anything; if not, arranges to be woken.
    fn poll_some(&mut self, context: &mut Context<'_>) -> bool {
        self.poll(context, |emitter| {
            let head = position(emitter.ring.head.0.load(Ordering::Acquire));
            emitter.look(head)
        })
        .is_ready()
    }
}
