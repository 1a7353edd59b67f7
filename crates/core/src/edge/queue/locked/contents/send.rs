//! The senders' operations on the contents of a queue: putting messages, offering them, and waiting.

use super::Contents;
use crate::edge::batch::Batch;
use crate::edge::error::Aborted;
use crate::edge::meter::State;
use crate::edge::options::Overflow;
use crate::edge::queue::deferred::DeferredWork;
use crate::edge::queue::line::OfferState;
use std::task::Waker;

/// A message that was not put into the queue, and the reason.
pub(in crate::edge::queue) enum SendRefusal<T> {
    Full(T, u64),
    Aborted(T),
}

impl<T> Contents<T> {
    /// Puts a message if the policy allows it.
    #[inline]
    pub(in crate::edge::queue) fn put(
        &mut self,
        message: T,
        weight: u64,
        later: &mut DeferredWork<T>,
    ) -> Result<(), SendRefusal<T>> {
        if self.state != State::Open {
            return Err(SendRefusal::Aborted(message));
        }
        if self.fits(weight) && self.line.is_empty() {
            self.push(message, weight, later);
            return Ok(());
        }
        match self.overflow {
            Overflow::Block => Err(SendRefusal::Full(message, weight)),
            _ => self.put_beyond(message, weight, later),
        }
    }

    /// Puts a message into a full queue, following the overflow policy.
    #[cold]
    fn put_beyond(
        &mut self,
        message: T,
        weight: u64,
        later: &mut DeferredWork<T>,
    ) -> Result<(), SendRefusal<T>> {
        match self.overflow {
            Overflow::Block => return Err(SendRefusal::Full(message, weight)),
            Overflow::Abort => {
                self.abort(later);
                return Err(SendRefusal::Aborted(message));
            }
            Overflow::DropOldest => {
                while self.most > 0
                    && !self.fits(weight)
                    && let Some((oldest, its_weight)) = self.pop()
                {
                    self.dropped_by_overflow += its_weight;
                    later.drop(oldest);
                }
            }
            Overflow::DropNewest => {}
        }
        if self.fits(weight) {
            self.push(message, weight, later);
        } else {
            self.sent += weight;
            self.dropped_by_overflow += weight;
            later.drop(message);
        }
        Ok(())
    }

    /// Puts as much of a batch as the policy allows. Returns true if the whole batch was put.
    pub(in crate::edge::queue) fn put_all(
        &mut self,
        batch: &mut Batch<'_, T>,
        weights: Vec<u64>,
        later: &mut DeferredWork<T>,
    ) -> Result<bool, Aborted<()>> {
        if !self.weighs && self.state == State::Open && self.line.is_empty() {
            let count = self.current_capacity().saturating_sub(self.messages.len());
            let before = self.messages.len();
            self.messages.extend(batch.by_ref().take(count));
            let count = self.messages.len() - before;
            if count > 0 {
                self.sent += count as u64;
                self.high_water = self.high_water.max(self.messages.len());
                self.notify_receiver(later);
            }
        }
        let mut weights = weights.into_iter();
        while let Some(message) = batch.next() {
            let weight = weights.next().unwrap_or(1);
            match self.put(message, weight, later) {
                Ok(()) => {}
                Err(SendRefusal::Full(message, _)) => {
                    batch.give_back(message);
                    return Ok(false);
                }
                Err(SendRefusal::Aborted(message)) => {
                    batch.give_back(message);
                    return Err(Aborted(()));
                }
            }
        }
        Ok(true)
    }

    /// Puts a message, or adds it to the line of waiting senders and returns the number of the offer.
    pub(in crate::edge::queue) fn put_or_offer(
        &mut self,
        message: T,
        weight: u64,
        waker: &Waker,
        later: &mut DeferredWork<T>,
    ) -> Result<Option<u64>, Aborted<T>> {
        let meets = self.most == 0 && self.overflow == Overflow::Block;
        let (message, weight) = match meets && self.state == State::Open {
            // At a rendezvous, a send is complete when the receiver has the message, not when the receiver waits.
            true => (message, weight),
            false => match self.put(message, weight, later) {
                Ok(()) => return Ok(None),
                Err(SendRefusal::Full(message, weight)) => (message, weight),
                Err(SendRefusal::Aborted(message)) => return Err(Aborted(message)),
            },
        };
        Ok(Some(self.offer(Some((message, weight)), waker, later)))
    }

    /// Returns `None` if there is capacity for a message; otherwise adds the sender to the line and returns the number
    /// of its offer.
    pub(in crate::edge::queue) fn find_capacity(
        &mut self,
        waker: &Waker,
        later: &mut DeferredWork<T>,
    ) -> Result<Option<u64>, Aborted<()>> {
        if self.state != State::Open {
            return Err(Aborted(()));
        }
        let waits =
            self.overflow == Overflow::Block && !(self.has_capacity() && self.line.is_empty());
        Ok(waits.then(|| self.offer(None, waker, later)))
    }

    /// Adds an offer to the line of an open edge that is full. Returns its number.
    fn offer(
        &mut self,
        message: Option<(T, u64)>,
        waker: &Waker,
        later: &mut DeferredWork<T>,
    ) -> u64 {
        if self.statistics {
            self.blocked_sending.begin();
        }
        if message.is_some() && self.most == 0 {
            self.notify_receiver(later);
        }
        self.line.add(message, waker)
    }

    /// Returns the state of an offer, and replaces its waker if it still waits.
    pub(in crate::edge::queue) fn renew(
        &mut self,
        number: u64,
        waker: &Waker,
        later: &mut DeferredWork<T>,
    ) -> OfferState<T> {
        if !self.line.contains(number) {
            return OfferState::Accepted;
        }
        if self.state == State::Aborted {
            return OfferState::Aborted(self.withdraw(number, later));
        }
        later.old = self.line.renew(number, waker);
        OfferState::Waiting
    }

    /// Removes an offer from the line, if it is still there.
    pub(in crate::edge::queue) fn withdraw(
        &mut self,
        number: u64,
        later: &mut DeferredWork<T>,
    ) -> Option<T> {
        let offer = self.line.remove(number)?;
        if self.statistics {
            self.blocked_sending.end();
        }
        later.old = offer.waker;
        // Lighter messages behind the removed one may fit.
        self.admit(later);
        offer.message.map(|(message, _)| message)
    }

    pub(in crate::edge::queue) fn join(&mut self) {
        self.senders += 1;
    }

    /// Removes a sender. Removing the last sender closes the edge.
    pub(in crate::edge::queue) fn leave(&mut self, later: &mut DeferredWork<T>) {
        self.senders -= 1;
        if self.senders == 0 && self.state == State::Open {
            self.state = State::Closed;
            self.notify_receiver(later);
        }
    }
}
