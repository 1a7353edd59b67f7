//! The end of a queue that accepts messages.

use super::contents::{Fate, Refused};
use super::shared::QueueEdge;
use crate::edge::batch::Batch;
use crate::edge::error::{Aborted, TryCollectError};
use crate::edge::flavour::Collecting;
use crate::edge::park::spin_until;
use crate::edge::weigh::Weigh;
use crate::sync::Ordering;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A collecting end of a [`queue`](crate::edge::queue()).
pub struct QueueCollecting<T: Send + 'static, W: Weigh<T>> {
    queue: Arc<QueueEdge<T, W>>,
    /// The number of its offer, if it waits.
    offer: Option<u64>,
    closed: bool,
    /// The edge holds nothing: a collect is over when the emitter has the message.
    rendezvous: bool,
}

impl<T: Send + 'static, W: Weigh<T>> QueueCollecting<T, W> {
    pub(super) fn new(queue: Arc<QueueEdge<T, W>>, rendezvous: bool) -> QueueCollecting<T, W> {
        QueueCollecting {
            queue,
            offer: None,
            closed: false,
            rendezvous,
        }
    }

    #[inline]
    fn put(&self, message: T) -> Result<(), Refused<T>> {
        if self.closed {
            return Err(Refused::Aborted(message));
        }
        let weight = W::weight(&message);
        self.queue
            .change(|contents, later| contents.put(message, weight, later))
    }

    /// Waits for what has become of an offer.
    fn poll_offer(
        &mut self,
        number: u64,
        context: &Context<'_>,
    ) -> Poll<Result<(), Aborted<Option<T>>>> {
        let fate = match self.is_decided(number) {
            true => Fate::Accepted,
            false => self
                .queue
                .change(|contents, later| contents.renew(number, context.waker(), later)),
        };
        let result = match fate {
            Fate::Accepted => Ok(()),
            Fate::Waiting => return Poll::Pending,
            Fate::Aborted(message) => Err(Aborted(message)),
        };
        self.offer = None;
        Poll::Ready(result)
    }

    /// The message has been put, or waits in the line with this number.
    fn offered(&mut self, number: Option<u64>) -> Poll<Result<(), Aborted<T>>> {
        self.offer = number;
        match number {
            None => Poll::Ready(Ok(())),
            Some(_) => Poll::Pending,
        }
    }

    /// Whether an offer of this end has left the line, which it does when it is accepted.
    #[inline]
    fn is_decided(&self, number: u64) -> bool {
        self.queue.decided.load(Ordering::Acquire) > number
    }
}

impl<T: Send + 'static, W: Weigh<T>> Collecting<T> for QueueCollecting<T, W> {
    type Edge = QueueEdge<T, W>;

    #[inline]
    fn edge(&self) -> &Arc<QueueEdge<T, W>> {
        &self.queue
    }

    #[inline]
    fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        self.put(message).map_err(|refused| match refused {
            Refused::Full(message, _) => TryCollectError::Full(message),
            Refused::Aborted(message) => TryCollectError::Aborted(message),
        })
    }

    #[inline]
    fn collect_at_once(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        // What is wrongly taken to be full is looked at under the lock, before anything waits.
        match self.rendezvous || self.queue.crowded.load(Ordering::Relaxed) {
            true => Err(TryCollectError::Full(message)),
            false => self.try_collect(message),
        }
    }

    fn poll_collect(
        &mut self,
        waiting: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>> {
        if let Some(message) = waiting.take() {
            if self.closed {
                return Poll::Ready(Err(Aborted(message)));
            }
            let weight = W::weight(&message);
            let offered = self.queue.change(|contents, later| {
                contents.put_or_offer(message, weight, context.waker(), later)
            });
            return match offered {
                Ok(number) => self.offered(number),
                Err(aborted) => Poll::Ready(Err(aborted)),
            };
        }
        match self.offer {
            None => Poll::Ready(Ok(())),
            Some(number) => self.poll_offer(number, context).map(|result| match result {
                Err(Aborted(Some(message))) => Err(Aborted(message)),
                // An offer with a message comes back with it.
                Ok(()) | Err(Aborted(None)) => Ok(()),
            }),
        }
    }

    fn try_collect_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        if batch.rest().is_empty() {
            return Ok(true);
        }
        if self.closed {
            return Err(Aborted(()));
        }
        let weights: Vec<u64> = match W::ALL_ONE {
            true => Vec::new(),
            false => batch.rest().iter().map(W::weight).collect(),
        };
        let mut weights = weights.into_iter();
        self.queue.change(|contents, later| {
            while let Some(message) = batch.next() {
                let weight = weights.next().unwrap_or(1);
                match contents.put(message, weight, later) {
                    Ok(()) => {}
                    Err(Refused::Full(message, _)) => {
                        batch.give_back(message);
                        return Ok(false);
                    }
                    Err(Refused::Aborted(message)) => {
                        batch.give_back(message);
                        return Err(Aborted(()));
                    }
                }
            }
            Ok(true)
        })
    }

    fn collect_all_at_once(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        match self.rendezvous && !batch.rest().is_empty() {
            true => Ok(false),
            false => self.try_collect_all(batch),
        }
    }

    fn poll_collect_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        loop {
            let first = match self.offer {
                // The first of the rest is in the line.
                Some(_) => None,
                None => match self.collect_all_at_once(batch) {
                    Ok(true) => return Poll::Ready(Ok(())),
                    Ok(false) => batch.next(),
                    Err(aborted) => return Poll::Ready(Err(aborted)),
                },
            };
            match self.poll_collect(&mut { first }, context) {
                Poll::Ready(Ok(())) => {}
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(Aborted(message))) => {
                    batch.give_back(message);
                    return Poll::Ready(Err(Aborted(())));
                }
            }
        }
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        if self.closed {
            return Poll::Ready(Err(Aborted(())));
        }
        if let Some(number) = self.offer {
            return self
                .poll_offer(number, context)
                .map_err(|Aborted(_)| Aborted(()));
        }
        let found = self
            .queue
            .change(|contents, later| contents.find_room(context.waker(), later));
        match found {
            Err(aborted) => Poll::Ready(Err(aborted)),
            Ok(number) => self.offered(number).map_err(|Aborted(_)| Aborted(())),
        }
    }

    fn withdraw(&mut self, waiting: &mut Option<T>) {
        let Some(number) = self.offer.take() else {
            return;
        };
        if !self.is_decided(number) {
            let message = self
                .queue
                .change(|contents, later| contents.withdraw(number, later));
            *waiting = message;
        }
    }

    fn linger(&self, polled: bool) -> bool {
        if polled && let Some(number) = self.offer {
            spin_until(|| self.is_decided(number));
        }
        polled
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.queue.change(|contents, later| contents.leave(later));
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> Clone for QueueCollecting<T, W> {
    fn clone(&self) -> Self {
        if !self.closed {
            self.queue.change(|contents, _| contents.join());
        }
        QueueCollecting {
            queue: Arc::clone(&self.queue),
            offer: None,
            closed: self.closed,
            rendezvous: self.rendezvous,
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> Drop for QueueCollecting<T, W> {
    fn drop(&mut self) {
        let mut message = None;
        self.withdraw(&mut message);
        self.close();
    }
}
