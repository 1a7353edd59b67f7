//! The two ends of a queue, for both implementations.

use super::buffered::BufferedEdge;
use super::locked::{LockedEdge, LockedReceiver};
use super::sender::EdgeSender;
use crate::edge::batch::Batch;
use crate::edge::error::{Aborted, TryRecvError, TrySendError};
use crate::edge::flavour::{EdgeControl, ReceiverEnd, SenderEnd};
use crate::edge::meter::Source;
use crate::edge::ring::RingReceiver;
use crate::edge::weigh::Weigh;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A sending end of a [`queue`](crate::edge::queue()).
pub enum QueueSender<T: Send + 'static, W: Weigh<T>> {
    Buffered(EdgeSender<T, BufferedEdge<T, W>>),
    Locked(EdgeSender<T, LockedEdge<T, W>>),
}

/// The receiving end of a [`queue`](crate::edge::queue()).
pub enum QueueReceiver<T: Send + 'static, W: Weigh<T>> {
    Buffered(RingReceiver<T, W>),
    Locked(LockedReceiver<T, W>),
}

/// Calls a method of the end, whichever implementation it has.
macro_rules! either {
    ($ends:ident: $self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            $ends::Buffered(end) => end.$method($($argument),*),
            $ends::Locked(end) => end.$method($($argument),*),
        }
    };
}

impl<T: Send + 'static, W: Weigh<T>> SenderEnd<T> for QueueSender<T, W> {
    fn edge(&self) -> &dyn EdgeControl {
        either!(QueueSender: self.edge())
    }

    fn source(&self) -> Arc<dyn Source> {
        either!(QueueSender: self.source())
    }

    #[inline]
    fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        either!(QueueSender: self.try_send(message))
    }

    #[inline]
    fn send_now(&mut self, message: T) -> Result<(), TrySendError<T>> {
        either!(QueueSender: self.send_now(message))
    }

    fn poll_send(
        &mut self,
        message: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>> {
        either!(QueueSender: self.poll_send(message, context))
    }

    fn try_send_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        either!(QueueSender: self.try_send_all(batch))
    }

    fn send_all_now(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        either!(QueueSender: self.send_all_now(batch))
    }

    fn poll_send_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        either!(QueueSender: self.poll_send_all(batch, context))
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        either!(QueueSender: self.poll_ready(context))
    }

    fn withdraw(&mut self, message: &mut Option<T>) {
        either!(QueueSender: self.withdraw(message));
    }

    fn linger_for_capacity(&self) -> bool {
        either!(QueueSender: self.linger_for_capacity())
    }

    fn linger(&self) -> bool {
        either!(QueueSender: self.linger())
    }

    fn close(&mut self) {
        either!(QueueSender: self.close());
    }
}

impl<T: Send + 'static, W: Weigh<T>> Clone for QueueSender<T, W> {
    fn clone(&self) -> Self {
        match self {
            QueueSender::Buffered(end) => QueueSender::Buffered(end.clone()),
            QueueSender::Locked(end) => QueueSender::Locked(end.clone()),
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> ReceiverEnd<T> for QueueReceiver<T, W> {
    fn edge(&self) -> &dyn EdgeControl {
        either!(QueueReceiver: self.edge())
    }

    fn source(&self) -> Arc<dyn Source> {
        either!(QueueReceiver: self.source())
    }

    #[inline]
    fn try_recv(&mut self) -> Result<T, TryRecvError> {
        either!(QueueReceiver: self.try_recv())
    }

    #[inline]
    fn try_recv_many(&mut self, messages: &mut Vec<T>, max: usize) -> Result<usize, TryRecvError> {
        either!(QueueReceiver: self.try_recv_many(messages, max))
    }

    #[inline]
    fn is_known_empty(&self) -> bool {
        either!(QueueReceiver: self.is_known_empty())
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        either!(QueueReceiver: self.poll_recv(context))
    }

    fn poll_recv_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize> {
        either!(QueueReceiver: self.poll_recv_many(messages, max, context))
    }

    fn poll_some(&mut self, context: &mut Context<'_>) -> bool {
        either!(QueueReceiver: self.poll_some(context))
    }

    fn end_wait(&mut self) {
        either!(QueueReceiver: self.end_wait());
    }

    fn linger(&self) {
        either!(QueueReceiver: self.linger());
    }
}
