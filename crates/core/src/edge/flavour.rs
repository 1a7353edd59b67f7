//! What a flavour of edges provides: two ends without ways to wait. [`Collector`](super::Collector) and
//! [`Emitter`](super::Emitter) build all of their methods on these.

use super::abort::Abort;
use super::batch::Batch;
use super::error::{Aborted, TryCollectError, TryEmitError};
use super::meter::Source;
use super::weigh::One;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A flavour of edges: [`Ring`] or [`Queue`].
pub trait Flavour<T: Send + 'static>: 'static {
    /// What a [`Collector`](super::Collector) is made of.
    #[doc(hidden)]
    type Collecting: Collecting<T>;
    /// What an [`Emitter`](super::Emitter) is made of.
    #[doc(hidden)]
    type Emitting: Emitting<T>;
}

/// The flavour of [`ring()`](super::ring()): one collector, one emitter, no lock.
#[derive(Debug)]
pub struct Ring<W = One>(PhantomData<fn() -> W>);

/// The flavour of [`queue()`](super::queue()): many collectors, one emitter, a rendezvous if it holds
/// nothing.
#[derive(Debug)]
pub struct Queue<W = One>(PhantomData<fn() -> W>);

/// What both ends share.
pub trait Shared: Abort + Source {}

impl<E: Abort + Source> Shared for E {}

/// The collecting end of a flavour.
pub trait Collecting<T>: Send + Unpin {
    fn edge(&self) -> &dyn Shared;

    fn source(&self) -> Arc<dyn Source>;

    fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>>;

    /// Collects at once if that is all that a `collect` which may wait has to do.
    #[inline]
    fn collect_at_once(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        self.try_collect(message)
    }

    /// Collects the message, which is there at the first poll. While this is pending the message is
    /// in `message` or with the edge, until [`withdraw`](Collecting::withdraw).
    fn poll_collect(
        &mut self,
        message: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>>;

    /// Collects from the batch as much as there is room for. Whether that is all of it.
    fn try_collect_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>>;

    /// As [`collect_at_once`](Collecting::collect_at_once), of a batch. Whether that was all of it.
    #[inline]
    fn collect_all_at_once(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        self.try_collect_all(batch)
    }

    /// Collects all of the batch. While this is pending its first message may be with the edge, until
    /// [`withdraw`](Collecting::withdraw).
    fn poll_collect_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>>;

    /// Ends a wait: this end is not blocked any more, and a message that is with the edge and has not been
    /// accepted comes back.
    fn withdraw(&mut self, message: &mut Option<T>);

    /// Before the first poll of a thread, which may sleep: waits awake for a moment for room. Whether to try
    /// again.
    fn linger_for_room(&self) -> bool;

    /// After a poll that was pending, before the thread sleeps: waits awake for a moment for what it waits
    /// for. Whether to poll again.
    fn linger(&self) -> bool {
        false
    }

    fn close(&mut self);
}

/// The emitting end of a flavour.
pub trait Emitting<T>: Send + Unpin {
    fn edge(&self) -> &dyn Shared;

    fn source(&self) -> Arc<dyn Source>;

    fn try_emit(&mut self) -> Result<T, TryEmitError>;

    fn try_emit_many(&mut self, messages: &mut Vec<T>, max: usize) -> Result<usize, TryEmitError>;

    /// Whether it is known to be empty, so that an `emit` which may wait begins with that.
    #[inline]
    fn is_known_empty(&self) -> bool {
        false
    }

    fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>>;

    /// As [`poll_emit`](Emitting::poll_emit), many; 0 when there will be none any more.
    fn poll_emit_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize>;

    /// Whether a `try_emit` would tell anything but that the edge is empty; if not, arranges to be woken.
    fn poll_some(&mut self, context: &mut Context<'_>) -> bool;

    /// Ends a wait: this end is not blocked any more.
    fn rest(&mut self);

    /// Waits awake for a moment for a message, before the thread sleeps.
    fn linger(&self);
}
