//! The two ends of each flavour of edges, without methods that wait. [`Sender`](super::Sender) and
//! [`Receiver`](super::Receiver) are built on them.

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
    /// The flavour's part of a [`Sender`](super::Sender).
    #[doc(hidden)]
    type SenderEnd: SenderEnd<T>;
    /// The flavour's part of a [`Receiver`](super::Receiver).
    #[doc(hidden)]
    type ReceiverEnd: ReceiverEnd<T>;
}

/// The flavour of [`ring()`](super::ring()): one sender, one receiver, no lock.
#[derive(Debug)]
pub struct Ring<W = One>(PhantomData<fn() -> W>);

/// The flavour of [`queue()`](super::queue()): many senders, one receiver; with capacity 0 a rendezvous.
#[derive(Debug)]
pub struct Queue<W = One>(PhantomData<fn() -> W>);

/// Operations that both ends of an edge have.
pub trait EdgeControl: Abort + Source {}

impl<E: Abort + Source> EdgeControl for E {}

/// The sending end of a flavour.
pub trait SenderEnd<T>: Send + Unpin {
    fn edge(&self) -> &dyn EdgeControl;

    fn source(&self) -> Arc<dyn Source>;

    fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>>;

    /// Sends the message if this is possible without waiting.
    #[inline]
    fn send_now(&mut self, message: T) -> Result<(), TrySendError<T>> {
        self.try_send(message)
    }

    /// Polls a send. At the first poll `message` contains the message. While the result is pending, the message is in
    /// `message` or in the edge; [`withdraw`](SenderEnd::withdraw) takes it back.
    fn poll_send(
        &mut self,
        message: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>>;

    /// Sends as much of the batch as the capacity allows. Returns true if all of it was sent.
    fn try_send_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>>;

    /// Sends a batch like [`send_now`](SenderEnd::send_now). Returns true if all of it was sent.
    #[inline]
    fn send_all_now(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        self.try_send_all(batch)
    }

    /// Polls the send of a complete batch. While the result is pending, the first message may be in the edge;
    /// [`withdraw`](SenderEnd::withdraw) takes it back.
    fn poll_send_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>>;

    /// Ends a wait: this end no longer counts as blocked, and a message that the edge has not accepted is returned.
    fn withdraw(&mut self, message: &mut Option<T>);

    /// Spins for a moment until the edge has capacity, before a thread polls for the first time and may sleep. Returns
    /// true if the caller should try again.
    fn linger_for_capacity(&self) -> bool;

    /// Spins for a moment after a pending poll, before the thread sleeps. Returns true if the caller should poll again.
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

    /// True if the edge is known to be empty, so a `recv` that waits can skip its first attempt.
    #[inline]
    fn is_known_empty(&self) -> bool {
        false
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>>;

    /// Polls for many messages like [`poll_recv`](ReceiverEnd::poll_recv). Returns their number; 0 if the edge has
    /// ended.
    fn poll_recv_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize>;

    /// Returns true if `try_recv` would not report an empty edge; otherwise arranges a wake-up.
    fn poll_some(&mut self, context: &mut Context<'_>) -> bool;

    /// Ends a wait: this end no longer counts as blocked.
    fn end_wait(&mut self);

    /// Spins for a moment until a message arrives, before the thread sleeps.
    fn linger(&self);
}
