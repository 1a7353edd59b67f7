//! The two ends of a queue, of either kind.

use super::buffered::BufferedEdge;
use super::collecting::CollectingEnd;
use super::locked::{LockedEdge, LockedEmitting};
use crate::edge::batch::Batch;
use crate::edge::error::{Aborted, TryCollectError, TryEmitError};
use crate::edge::flavour::{Collecting, Emitting, Shared};
use crate::edge::meter::Source;
use crate::edge::ring::RingEmitting;
use crate::edge::weigh::Weigh;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A collecting end of a [`queue`](crate::edge::queue()).
pub enum QueueCollecting<T: Send + 'static, W: Weigh<T>> {
    Buffered(CollectingEnd<T, BufferedEdge<T, W>>),
    Locked(CollectingEnd<T, LockedEdge<T, W>>),
}

/// The emitting end of a [`queue`](crate::edge::queue()).
pub enum QueueEmitting<T: Send + 'static, W: Weigh<T>> {
    Buffered(RingEmitting<T, W>),
    Locked(LockedEmitting<T, W>),
}

/// Calls a method of whichever end it is.
macro_rules! either {
    ($ends:ident: $self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            $ends::Buffered(end) => end.$method($($argument),*),
            $ends::Locked(end) => end.$method($($argument),*),
        }
    };
}

impl<T: Send + 'static, W: Weigh<T>> Collecting<T> for QueueCollecting<T, W> {
    fn edge(&self) -> &dyn Shared {
        either!(QueueCollecting: self.edge())
    }

    fn source(&self) -> Arc<dyn Source> {
        either!(QueueCollecting: self.source())
    }

    #[inline]
    fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        either!(QueueCollecting: self.try_collect(message))
    }

    #[inline]
    fn collect_at_once(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        either!(QueueCollecting: self.collect_at_once(message))
    }

    fn poll_collect(
        &mut self,
        message: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>> {
        either!(QueueCollecting: self.poll_collect(message, context))
    }

    fn try_collect_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        either!(QueueCollecting: self.try_collect_all(batch))
    }

    fn collect_all_at_once(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        either!(QueueCollecting: self.collect_all_at_once(batch))
    }

    fn poll_collect_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        either!(QueueCollecting: self.poll_collect_all(batch, context))
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        either!(QueueCollecting: self.poll_ready(context))
    }

    fn withdraw(&mut self, message: &mut Option<T>) {
        either!(QueueCollecting: self.withdraw(message));
    }

    fn linger_for_room(&self) -> bool {
        either!(QueueCollecting: self.linger_for_room())
    }

    fn linger(&self) -> bool {
        either!(QueueCollecting: self.linger())
    }

    fn close(&mut self) {
        either!(QueueCollecting: self.close());
    }
}

impl<T: Send + 'static, W: Weigh<T>> Clone for QueueCollecting<T, W> {
    fn clone(&self) -> Self {
        match self {
            QueueCollecting::Buffered(end) => QueueCollecting::Buffered(end.clone()),
            QueueCollecting::Locked(end) => QueueCollecting::Locked(end.clone()),
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> Emitting<T> for QueueEmitting<T, W> {
    fn edge(&self) -> &dyn Shared {
        either!(QueueEmitting: self.edge())
    }

    fn source(&self) -> Arc<dyn Source> {
        either!(QueueEmitting: self.source())
    }

    #[inline]
    fn try_emit(&mut self) -> Result<T, TryEmitError> {
        either!(QueueEmitting: self.try_emit())
    }

    #[inline]
    fn try_emit_many(&mut self, messages: &mut Vec<T>, max: usize) -> Result<usize, TryEmitError> {
        either!(QueueEmitting: self.try_emit_many(messages, max))
    }

    #[inline]
    fn is_known_empty(&self) -> bool {
        either!(QueueEmitting: self.is_known_empty())
    }

    fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        either!(QueueEmitting: self.poll_emit(context))
    }

    fn poll_emit_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize> {
        either!(QueueEmitting: self.poll_emit_many(messages, max, context))
    }

    fn poll_some(&mut self, context: &mut Context<'_>) -> bool {
        either!(QueueEmitting: self.poll_some(context))
    }

    fn rest(&mut self) {
        either!(QueueEmitting: self.rest());
    }

    fn linger(&self) {
        either!(QueueEmitting: self.linger());
    }
}
