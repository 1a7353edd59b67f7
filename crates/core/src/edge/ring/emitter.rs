//! The end of a ring that yields messages.

mod take;

use super::shared::{ABORTED, Ring, position};
use super::slots::View;
use super::weigh::{One, Weigh};
use crate::edge::abort::Abort;
use crate::edge::park::{block_on, spin_until};
use crate::edge::{Meter, State, TryEmitError};
use crate::sync::Ordering;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use take::Lack;

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

    /// As [`TryEmit::try_emit`](crate::edge::TryEmit::try_emit). O(1), without locks.
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

    /// As [`Emit::emit`](crate::edge::Emit::emit).
    #[inline]
    pub async fn emit(&mut self) -> Option<T> {
        match self.take() {
            Ok(message) => return Some(message),
            Err(Lack::Empty(_)) => {}
            Err(_) => return None,
        }
        PollEmitter(self, |emitter: &mut Self, context: &mut Context<'_>| {
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
        PollEmitter(self, |emitter: &mut Self, context: &mut Context<'_>| {
            emitter
                .poll(context, |emitter| emitter.take_many(messages, max))
                .map(|count| count.unwrap_or(0))
        })
        .await
    }

    /// As [`Emit::poll_emit`](crate::edge::Emit::poll_emit).
    pub fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll(context, Self::take)
    }

    /// As [`emit_many`](Emitter::emit_many), without waiting.
    ///
    /// # Errors
    /// As [`TryEmit::try_emit`](crate::edge::TryEmit::try_emit).
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

    /// As [`BlockingEmit::emit_blocking`](crate::edge::BlockingEmit::emit_blocking).
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

    /// As [`TryEmit::abort`](crate::edge::TryEmit::abort). Drops what is buffered: O(messages).
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
        let head = self.ring.head.load(Ordering::Acquire);
        let tail = self.ring.tail.load(Ordering::Acquire);
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
        spin_until(|| self.ring.tail.load(Ordering::Relaxed) != seen);
        block_on(|context| self.poll(context, &mut take))
    }

    /// Whether a `try_emit` would find anything; if not, arranges to be woken.
    pub(super) fn poll_some(&mut self, context: &mut Context<'_>) -> bool {
        self.poll(context, |emitter| {
            let head = position(emitter.ring.head.load(Ordering::Acquire));
            emitter.look(head)
        })
        .is_ready()
    }

    /// It begins to be blocked, or still is.
    fn block(&mut self) {
        if self.ring.statistics && !self.blocked {
            self.blocked = true;
            self.ring.emitted.blocked.begin();
        }
    }

    /// As [`Emit::rest`](crate::edge::Emit::rest).
    pub fn rest(&mut self) {
        if self.blocked {
            self.blocked = false;
            self.ring.emitted.blocked.end();
        }
    }
}

/// Waits by a poll of the emitter.
struct PollEmitter<'a, T: Send + 'static, W: Weigh<T>, P>(&'a mut Emitter<T, W>, P);

// The poll is not pinned.
impl<T: Send + 'static, W: Weigh<T>, P> Unpin for PollEmitter<'_, T, W, P> {}

impl<T, W, P, R> Future for PollEmitter<'_, T, W, P>
where
    T: Send + 'static,
    W: Weigh<T>,
    P: FnMut(&mut Emitter<T, W>, &mut Context<'_>) -> Poll<R>,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let PollEmitter(emitter, poll) = self.get_mut();
        poll(emitter, context)
    }
}

impl<T: Send + 'static, W: Weigh<T>, P> Drop for PollEmitter<'_, T, W, P> {
    fn drop(&mut self) {
        self.0.rest();
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for Emitter<T, W> {
    fn drop(&mut self) {
        self.ring.abort();
    }
}
