//! The receiving end of a queue under one lock.

use super::LockedEdge;
use super::contents::Contents;
use crate::edge::abort::Abort;
use crate::edge::error::TryRecvError;
use crate::edge::flavour::{EdgeControl, ReceiverEnd};
use crate::edge::meter::{Source, State};
use crate::edge::park::spin_until;
use crate::edge::queue::deferred::DeferredWork;
use crate::edge::weigh::Weigh;
use crate::sync::Ordering;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The receiving end of a queue under one lock.
pub struct LockedReceiver<T: Send + 'static, W: Weigh<T>> {
    queue: Arc<LockedEdge<T, W>>,
    /// True while the edge may hold this end's waker and count its blocked time.
    waits: bool,
}

impl<T: Send + 'static, W: Weigh<T>> LockedReceiver<T, W> {
    pub(in crate::edge::queue) fn new(queue: Arc<LockedEdge<T, W>>) -> LockedReceiver<T, W> {
        LockedReceiver {
            queue,
            waits: false,
        }
    }

    #[inline]
    fn try_take<R>(
        &mut self,
        take: impl FnOnce(&mut Contents<T>, &mut DeferredWork<T>) -> Option<R>,
    ) -> Result<R, TryRecvError> {
        self.queue.change(|contents, later| {
            take(contents, later).ok_or_else(|| match contents.found_empty() {
                State::Open => TryRecvError::Empty,
                State::Closed => TryRecvError::Closed,
                State::Aborted => TryRecvError::Aborted,
            })
        })
    }

    /// Takes messages, or arranges a wake-up; `None` when the edge has ended.
    #[inline]
    fn poll_take<R>(
        &mut self,
        context: &Context<'_>,
        take: impl FnOnce(&mut Contents<T>, &mut DeferredWork<T>) -> Option<R>,
    ) -> Poll<Option<R>> {
        let waits = &mut self.waits;
        self.queue.change(|contents, later| {
            let taken = take(contents, later);
            if taken.is_none() && contents.found_empty() == State::Open {
                if !std::mem::replace(waits, true) {
                    contents.begin_blocked_receiving();
                }
                contents.await_message(context.waker(), later);
                return Poll::Pending;
            }
            if std::mem::replace(waits, false) {
                contents.end_wait(later);
            }
            Poll::Ready(taken)
        })
    }
}

/// Takes up to `max` messages, at least one; `None` if there are none.
fn many<T>(
    contents: &mut Contents<T>,
    messages: &mut Vec<T>,
    max: usize,
    later: &mut DeferredWork<T>,
) -> Option<usize> {
    let count = contents.take_many(messages, max.max(1), later);
    (count > 0).then_some(count)
}

impl<T: Send + 'static, W: Weigh<T>> ReceiverEnd<T> for LockedReceiver<T, W> {
    fn edge(&self) -> &dyn EdgeControl {
        &*self.queue
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.queue) as _
    }

    #[inline]
    fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.try_take(Contents::take)
    }

    #[inline]
    fn try_recv_many(&mut self, messages: &mut Vec<T>, max: usize) -> Result<usize, TryRecvError> {
        self.try_take(|contents, later| many(contents, messages, max, later))
    }

    #[inline]
    fn is_known_empty(&self) -> bool {
        self.queue.vacant.load(Ordering::Acquire)
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_take(context, Contents::take)
    }

    fn poll_recv_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize> {
        self.poll_take(context, |contents, later| {
            many(contents, messages, max, later)
        })
        .map(|count| count.unwrap_or(0))
    }

    fn poll_some(&mut self, context: &mut Context<'_>) -> bool {
        self.poll_take(context, |contents, _| contents.has_some().then_some(()))
            .is_ready()
    }

    fn end_wait(&mut self) {
        if std::mem::replace(&mut self.waits, false) {
            self.queue.change(Contents::end_wait);
        }
    }

    fn linger(&self) {
        let vacant = &self.queue.vacant;
        spin_until(|| !vacant.load(Ordering::Relaxed));
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for LockedReceiver<T, W> {
    fn drop(&mut self) {
        self.end_wait();
        self.queue.abort();
    }
}
