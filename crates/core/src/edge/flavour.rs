//! What a flavour of edges provides: two ends without ways to wait. [`Sender`](super::Sender) and
//! [`Receiver`](super::Receiver) build all of their methods on these.

use super::abort::Abort;
use super::batch::Batch;
use super::error::{Aborted, TryRecvError, TrySendError};
use super::meter::Source;
use super::weigh::One;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A flavour of edges: [`Ring`] or [`Queue`].
pub trait Flavour<T: Send + 'static>: 'static {
    /// What a [`Sender`](super::Sender) is made of.
    #[doc(hidden)]
    type SenderEnd: SenderEnd<T>;
    /// What an [`Receiver`](super::Receiver) is made of.
    #[doc(hidden)]
    type ReceiverEnd: ReceiverEnd<T>;
}

/// The flavour of [`ring()`](super::ring()): one sender, one receiver, no lock.
#[derive(Debug)]
pub struct Ring<W = One>(PhantomData<fn() -> W>);

/// The flavour of [`queue()`](super::queue()): many senders, one receiver, a rendezvous if it holds
/// nothing.
#[derive(Debug)]
pub struct Queue<W = One>(PhantomData<fn() -> W>);

/// What both ends share.
pub trait EdgeControl: Abort + Source {}

impl<E: Abort + Source> EdgeControl for E {}

/// The sending end of a flavour.
pub trait SenderEnd<T>: Send + Unpin {
    fn edge(&self) -> &dyn EdgeControl;

    fn source(&self) -> Arc<dyn Source>;

    fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>>;

    /// Sends at once if that is all that a `send` which may wait has to do.
    #[inline]
    fn send_now(&mut self, message: T) -> Result<(), TrySendError<T>> {
        self.try_send(message)
    }

    /// Sends the message, which is there at the first poll. While this is pending the message is
    /// in `message` or with the edge, until [`withdraw`](SenderEnd::withdraw).
    fn poll_send(
        &mut self,
        message: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>>;

    /// Sends as much of the batch as the capacity allows. Returns whether all of it was sent.
    fn try_send_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>>;

    /// As [`send_now`](SenderEnd::send_now), of a batch. Whether that was all of it.
    #[inline]
    fn send_all_now(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        self.try_send_all(batch)
    }

    /// Sends all of the batch. While this is pending its first message may be with the edge, until
    /// [`withdraw`](SenderEnd::withdraw).
    fn poll_send_all(
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

/// The receiving end of a flavour.
pub trait ReceiverEnd<T>: Send + Unpin {
    fn edge(&self) -> &dyn EdgeControl;

    fn source(&self) -> Arc<dyn Source>;

    fn try_recv(&mut self) -> Result<T, TryRecvError>;

    fn try_recv_many(&mut self, messages: &mut Vec<T>, max: usize) -> Result<usize, TryRecvError>;

    /// Whether it is known to be empty, so that a `recv` which may wait begins with that.
    #[inline]
    fn is_known_empty(&self) -> bool {
        false
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>>;

    /// As [`poll_recv`](ReceiverEnd::poll_recv), many; 0 when there will be none any more.
    fn poll_recv_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize>;

    /// Whether a `try_recv` would tell anything but that the edge is empty; if not, arranges to be woken.
    fn poll_some(&mut self, context: &mut Context<'_>) -> bool;

    /// Ends a wait: this end is not blocked any more.
    fn rest(&mut self);

    /// Waits awake for a moment for a message, before the thread sleeps.
    fn linger(&self);
}
