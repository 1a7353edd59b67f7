//! The sending end of a queue.

use super::line::{LineHint, OfferState};
use crate::edge::abort::Abort;
use crate::edge::batch::Batch;
use crate::edge::error::{Aborted, TrySendError};
use crate::edge::flavour::{EdgeControl, SenderEnd};
use crate::edge::meter::Source;
use crate::edge::park::spin_until;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The operations of sending ends on the shared state.
pub trait SendTarget<T>: Abort + Source + 'static {
    fn line_hint(&self) -> &LineHint;

    /// True if the edge is full; a hint.
    fn is_full(&self) -> bool;

    fn put(&self, message: T) -> Result<(), TrySendError<T>>;

    /// Puts as much of a batch as possible. Returns true if the whole batch was put.
    fn put_all(&self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>>;

    /// Puts a message, or adds it to the line of waiting senders and returns the number of the
    /// offer.
    fn put_or_offer(&self, message: T, waker: &Waker) -> Result<Option<u64>, Aborted<T>>;

    /// Returns `None` if there is capacity for a message; otherwise adds the sender to the line and
    /// returns the number of its offer.
    fn find_capacity(&self, waker: &Waker) -> Result<Option<u64>, Aborted<()>>;

    /// Returns the state of an offer, and replaces its waker if it still waits.
    fn renew(&self, number: u64, waker: &Waker) -> OfferState<T>;

    /// Removes an offer from the line, if it is still there.
    fn withdraw(&self, number: u64) -> Option<T>;

    /// Records that the edge has one more sender.
    fn join(&self);

    /// Removes a sender. Removing the last sender closes the edge.
    fn leave(&self);
}

/// A sending end.
pub struct EdgeSender<T: Send + 'static, E: SendTarget<T>> {
    edge: Arc<E>,
    /// The number of the sender's offer, if the sender waits.
    offer: Option<u64>,
    closed: bool,
    /// True if the edge has no capacity, so a send is complete when the receiver has the message.
    rendezvous: bool,
    messages: PhantomData<fn(T)>,
}

impl<T: Send + 'static, E: SendTarget<T>> EdgeSender<T, E> {
    pub(super) fn new(edge: Arc<E>, rendezvous: bool) -> EdgeSender<T, E> {
        EdgeSender {
            edge,
            offer: None,
            closed: false,
            rendezvous,
            messages: PhantomData,
        }
    }

    /// Waits for the outcome of an offer.
    fn poll_offer(
        &mut self,
        number: u64,
        context: &Context<'_>,
    ) -> Poll<Result<(), Aborted<Option<T>>>> {
        let fate = match self.is_decided(number) {
            true => OfferState::Accepted,
            false => self.edge.renew(number, context.waker()),
        };
        let result = match fate {
            OfferState::Accepted => Ok(()),
            OfferState::Waiting => return Poll::Pending,
            OfferState::Aborted(message) => Err(Aborted(message)),
        };
        self.offer = None;
        Poll::Ready(result)
    }

    /// Handles the result of an offer: the message was put, or waits in the line with this number.
    fn offered(&mut self, number: Option<u64>) -> Poll<Result<(), Aborted<T>>> {
        self.offer = number;
        match number {
            None => Poll::Ready(Ok(())),
            Some(_) => Poll::Pending,
        }
    }

    #[inline]
    fn is_decided(&self, number: u64) -> bool {
        self.edge.line_hint().is_decided(number)
    }
}

impl<T: Send + 'static, E: SendTarget<T>> SenderEnd<T> for EdgeSender<T, E> {
    fn edge(&self) -> &dyn EdgeControl {
        &*self.edge
    }

    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.edge) as _
    }

    #[inline]
    fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        match self.closed {
            true => Err(TrySendError::Aborted(message)),
            false => self.edge.put(message),
        }
    }

    #[inline]
    fn send_now(&mut self, message: T) -> Result<(), TrySendError<T>> {
        // The hint may be outdated: before an end waits, the state is checked under the lock.
        match self.rendezvous || self.edge.line_hint().is_crowded() {
            true => Err(TrySendError::Full(message)),
            false => self.try_send(message),
        }
    }

    fn poll_send(
        &mut self,
        waiting: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>> {
        if let Some(message) = waiting.take() {
            if self.closed {
                return Poll::Ready(Err(Aborted(message)));
            }
            return match self.edge.put_or_offer(message, context.waker()) {
                Ok(number) => self.offered(number),
                Err(aborted) => Poll::Ready(Err(aborted)),
            };
        }
        match self.offer {
            None => Poll::Ready(Ok(())),
            Some(number) => self.poll_offer(number, context).map(|result| match result {
                Err(Aborted(Some(message))) => Err(Aborted(message)),
                // An aborted offer with a message returns its message, so this offer had none.
                Ok(()) | Err(Aborted(None)) => Ok(()),
            }),
        }
    }

    fn try_send_all(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        if batch.remaining().is_empty() {
            return Ok(true);
        }
        if self.closed {
            return Err(Aborted(()));
        }
        self.edge.put_all(batch)
    }

    fn send_all_now(&mut self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        match self.rendezvous && !batch.remaining().is_empty() {
            true => Ok(false),
            false => self.try_send_all(batch),
        }
    }

    fn poll_send_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        loop {
            let first = match self.offer {
                // The first remaining message is in the line.
                Some(_) => None,
                None => match self.send_all_now(batch) {
                    Ok(true) => return Poll::Ready(Ok(())),
                    Ok(false) => batch.next(),
                    Err(aborted) => return Poll::Ready(Err(aborted)),
                },
            };
            match self.poll_send(&mut { first }, context) {
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
        match self.edge.find_capacity(context.waker()) {
            Err(aborted) => Poll::Ready(Err(aborted)),
            Ok(number) => self.offered(number).map_err(|Aborted(_)| Aborted(())),
        }
    }

    fn withdraw(&mut self, waiting: &mut Option<T>) {
        let Some(number) = self.offer.take() else {
            return;
        };
        if !self.is_decided(number) {
            *waiting = self.edge.withdraw(number);
        }
    }

    fn linger_for_capacity(&self) -> bool {
        let edge = &self.edge;
        !self.rendezvous && spin_until(|| !edge.is_full())
    }

    fn linger(&self) -> bool {
        let Some(number) = self.offer else {
            return false;
        };
        let hint = self.edge.line_hint();
        spin_until(|| hint.is_decided(number))
    }

    fn close(&mut self) {
        // Withdraws the offer of a future that was leaked.
        self.withdraw(&mut None);
        if !std::mem::replace(&mut self.closed, true) {
            self.edge.leave();
        }
    }
}

impl<T: Send + 'static, E: SendTarget<T>> Clone for EdgeSender<T, E> {
    fn clone(&self) -> Self {
        if !self.closed {
            self.edge.join();
        }
        EdgeSender {
            edge: Arc::clone(&self.edge),
            offer: None,
            closed: self.closed,
            rendezvous: self.rendezvous,
            messages: PhantomData,
        }
    }
}

impl<T: Send + 'static, E: SendTarget<T>> Drop for EdgeSender<T, E> {
    fn drop(&mut self) {
        self.close();
    }
}
