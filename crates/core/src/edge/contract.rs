//! The contract of all flavours: what never waits, what waits in `async` code, what blocks a thread.

use super::{Aborted, Meter, State, TryCollectError, TryEmitError};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The collecting end of an edge, as far as it never waits.
///
/// Dropping it closes the edge.
pub trait TryCollect {
    /// What travels on the edge.
    type Message;

    /// Accepts a message if that is possible at once. Policies that drop always accept; the dropped
    /// message counts as collected.
    ///
    /// # Errors
    /// [`TryCollectError::Full`] with [`Overflow::Block`](super::Overflow::Block) while there is no
    /// room, [`TryCollectError::Aborted`] when the edge takes no more. Both hold the message.
    fn try_collect(&mut self, message: Self::Message)
    -> Result<(), TryCollectError<Self::Message>>;

    /// Collects no more. What is buffered is still emitted, then `emit` ends.
    fn close(&mut self);

    /// Stops the edge at once. When this has returned, nothing is collected and nothing is emitted
    /// any more. What is buffered is dropped; a waiting `collect` gives its message back, a waiting
    /// `emit` ends. An edge that was closed and has emitted everything stays closed.
    fn abort(&self);

    /// Whether the edge still takes messages.
    fn state(&self) -> State;

    /// Reads the edge's statistics.
    fn meter(&self) -> Meter;
}

/// The emitting end of an edge, as far as it never waits.
///
/// Dropping it aborts the edge, unless it was closed and everything has been emitted.
pub trait TryEmit {
    /// What travels on the edge.
    type Message;

    /// Yields the next message if there is one.
    ///
    /// # Errors
    /// [`TryEmitError::Empty`] if there is none now; [`TryEmitError::Closed`] and
    /// [`TryEmitError::Aborted`] if there will be none any more.
    fn try_emit(&mut self) -> Result<Self::Message, TryEmitError>;

    /// As [`TryCollect::abort`].
    fn abort(&self);

    /// Whether the edge still takes messages, and how it ended.
    fn state(&self) -> State;

    /// Reads the edge's statistics.
    fn meter(&self) -> Meter;
}

/// A collecting end that waits in `async` code.
pub trait Collect: TryCollect + Send {
    /// Accepts a message, and waits while the edge is full, if its policy is to block.
    ///
    /// A future that is dropped before it is ready drops its message, which then was not
    /// collected. To keep it, wait for [`ready`](Collect::ready) and then
    /// [`try_collect`](TryCollect::try_collect).
    ///
    /// # Errors
    /// [`Aborted`] with the message when the edge takes no more.
    fn collect(
        &mut self,
        message: Self::Message,
    ) -> impl Future<Output = Result<(), Aborted<Self::Message>>> + Send;

    /// Waits until [`try_collect`](TryCollect::try_collect) would not find the edge full. No one else
    /// can take that room. May be dropped at any time.
    ///
    /// # Errors
    /// [`Aborted`] when the edge takes no more.
    fn ready(&mut self) -> impl Future<Output = Result<(), Aborted<()>>> + Send;
}

/// An emitting end that waits in `async` code.
pub trait Emit: TryEmit + Send {
    /// The next message, or `None` when there will be none any more; then
    /// [`state`](TryEmit::state) tells why. The waker is called when it is worth to ask again; only
    /// that of the last call.
    fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Message>>;

    /// Waits for the next message, `None` when there will be none any more. A future that is
    /// dropped before it is ready has taken nothing.
    fn emit(&mut self) -> impl Future<Output = Option<Self::Message>> + Send
    where
        Self: Sized,
    {
        NextMessage(self)
    }

    /// Ends the wait that a pending [`poll_emit`](Emit::poll_emit) has begun, as far as the time
    /// spent blocked is counted. To be called if something else is done before the next poll.
    fn rest(&mut self);
}

/// A collecting end that blocks its thread.
pub trait BlockingCollect: TryCollect {
    /// Accepts a message, and blocks while the edge is full, if its policy is to block.
    ///
    /// # Errors
    /// [`Aborted`] with the message when the edge takes no more.
    fn collect_blocking(&mut self, message: Self::Message) -> Result<(), Aborted<Self::Message>>;
}

/// An emitting end that blocks its thread.
pub trait BlockingEmit: TryEmit {
    /// Blocks until there is a message; `None` when there will be none any more.
    fn emit_blocking(&mut self) -> Option<Self::Message>;

    /// Blocks until at least one of these is worth a [`try_emit`](TryEmit::try_emit): it has a message
    /// or has ended. Returns at once if there are none.
    fn wait_any(emitters: &mut [Self])
    where
        Self: Sized;
}

/// Waits for the next message; its time is over when this is dropped.
struct NextMessage<'a, E: Emit>(&'a mut E);

impl<E: Emit> Future for NextMessage<'_, E> {
    type Output = Option<E::Message>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll_emit(context)
    }
}

impl<E: Emit> Drop for NextMessage<'_, E> {
    fn drop(&mut self) {
        self.0.rest();
    }
}
