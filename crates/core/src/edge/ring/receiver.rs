//! The receiving end of a ring.

mod no_message;
mod take;

use super::shared::{RingEdge, position};
use super::slots::View;
use crate::edge::abort::Abort;
use crate::edge::error::TryRecvError;
use crate::edge::flavour::{EdgeControl, ReceiverEnd};
use crate::edge::meter::Source;
use crate::edge::park::spin_until;
use crate::edge::weigh::Weigh;
use crate::sync::Ordering;
use no_message::NoMessage;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The receiving end of a [`ring`](crate::edge::ring()).
pub struct RingReceiver<T: Send + 'static, W: Weigh<T>> {
    ring: Arc<RingEdge<T, W>>,
    /// A view of the slots, which the shared state of the ring owns.
    slots: View<T>,
    /// The position of the next message; with `drop_oldest` the shared head is authoritative.
    head: u64,
    /// The position up to which published messages are known.
    tail: u64,
    /// The value of the tail when it was last read.
    seen: u64,
    /// True if the policy is `drop_oldest`.
    ordered: bool,
    /// The number of returned cells; used with `drop_oldest`.
    returns: u64,
    /// The cells that were taken last; used with `drop_oldest`.
    cells: Vec<u32>,
    /// True while blocked time is counted.
    blocked: bool,
}

impl<T: Send + 'static, W: Weigh<T>> RingReceiver<T, W> {
    pub(in crate::edge) fn new(ring: Arc<RingEdge<T, W>>) -> RingReceiver<T, W> {
        RingReceiver {
            head: 0,
            tail: 0,
            seen: 0,
            ordered: ring.order.is_some(),
            returns: 0,
            cells: Vec::new(),
            blocked: false,
            slots: ring.slots.view(),
            ring,
        }
    }

    /// Takes messages, or arranges a wake-up.
    fn poll<R>(
        &mut self,
        context: &mut Context<'_>,
        mut take: impl FnMut(&mut Self) -> Result<R, NoMessage>,
    ) -> Poll<Option<R>> {
        loop {
            let taken = match take(self) {
                Ok(taken) => Some(taken),
                Err(NoMessage::Empty(seen)) => {
                    if self.ring.await_message(seen, context.waker()) {
                        self.block();
                        return Poll::Pending;
                    }
                    continue;
                }
                Err(_) => None,
            };
            self.end_wait();
            return Poll::Ready(taken);
        }
    }

    /// Starts to measure the time for which this end is blocked, unless that has begun.
    fn block(&mut self) {
        if self.ring.statistics && !self.blocked {
            self.blocked = true;
            self.ring.received.blocked.begin();
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> ReceiverEnd<T> for RingReceiver<T, W> {
    fn edge(&self) -> &dyn EdgeControl {
        &*self.ring
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.ring) as _
    }

    #[inline]
    fn try_recv(&mut self) -> Result<T, TryRecvError> {
        Ok(self.take()?)
    }

    #[inline]
    fn try_recv_many(&mut self, messages: &mut Vec<T>, max: usize) -> Result<usize, TryRecvError> {
        Ok(self.take_many(messages, max)?)
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll(context, Self::take)
    }

    fn poll_recv_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize> {
        self.poll(context, |end| end.take_many(messages, max))
            .map(|count| count.unwrap_or(0))
    }

    fn poll_some(&mut self, context: &mut Context<'_>) -> bool {
        self.poll(context, |end| {
            let head = position(end.ring.head.load(Ordering::Acquire));
            end.read_tail(head)
        })
        .is_ready()
    }

    fn end_wait(&mut self) {
        if self.blocked {
            self.blocked = false;
            self.ring.received.blocked.end();
        }
    }

    fn linger(&self) {
        let (ring, seen) = (&self.ring, self.seen);
        spin_until(|| ring.tail.load(Ordering::Relaxed) != seen);
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for RingReceiver<T, W> {
    fn drop(&mut self) {
        self.end_wait();
        self.ring.abort();
    }
}
