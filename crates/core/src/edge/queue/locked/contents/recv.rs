//! The receiver's operations on the contents of a queue: taking messages, and waiting.

use super::Contents;
use crate::edge::meter::State;
use crate::edge::queue::deferred::DeferredWork;
use std::task::Waker;

impl<T> Contents<T> {
    /// Records that the receiver found the edge empty, and returns the state of the edge.
    #[inline]
    pub(in crate::edge::queue) fn found_empty(&mut self) -> State {
        self.vacant = self.state == State::Open;
        self.state
    }

    /// True if there is a message for the receiver.
    pub(in crate::edge::queue) fn has_some(&self) -> bool {
        let offered = || self.state != State::Aborted && self.line.has_message();
        !self.messages.is_empty() || offered()
    }

    /// Takes the next message for the receiver.
    #[inline]
    pub(in crate::edge::queue) fn take(&mut self, later: &mut DeferredWork<T>) -> Option<T> {
        let (message, weight) = match self.pop() {
            Some(taken) => taken,
            None => self.take_offer(later)?,
        };
        self.received += weight;
        if !self.line.is_empty() {
            self.admit(later);
        }
        Some(message)
    }

    /// Takes up to `max` messages for the receiver, and returns their number.
    pub(in crate::edge::queue) fn take_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        later: &mut DeferredWork<T>,
    ) -> usize {
        let before = messages.len();
        let count = max.min(self.messages.len());
        if count > 0 {
            messages.extend(self.messages.drain(..count));
            let mut weight = count as u64;
            if self.weighs {
                weight = self.weights.drain(..count).sum();
                self.lighter_by(weight);
            }
            self.received += weight;
        }
        while messages.len() - before < max
            && let Some((message, weight)) = self.take_offer(later)
        {
            self.received += weight;
            messages.push(message);
        }
        if !self.line.is_empty() {
            self.admit(later);
        }
        messages.len() - before
    }

    /// Takes the first message of the line of waiting senders. The edge itself must be empty.
    #[inline]
    fn take_offer(&mut self, later: &mut DeferredWork<T>) -> Option<(T, u64)> {
        if self.line.is_empty() || !self.messages.is_empty() || self.state == State::Aborted {
            return None;
        }
        let offer = self.line.take_first_message()?;
        self.complete_offer(offer.waker, later);
        let (message, weight) = offer.message?;
        self.sent += weight;
        Some((message, weight))
    }

    /// Stores the waker of the receiver, which waits from now on.
    pub(in crate::edge::queue) fn await_message(
        &mut self,
        waker: &Waker,
        later: &mut DeferredWork<T>,
    ) {
        match &self.receiver {
            Some(kept) if kept.will_wake(waker) => {}
            _ => later.old = self.receiver.replace(waker.clone()),
        }
        if self.most == 0 && !self.line.is_empty() {
            self.admit(later);
        }
    }

    pub(in crate::edge::queue) fn begin_blocked_receiving(&mut self) {
        if self.statistics {
            self.blocked_receiving.begin();
        }
    }

    /// Records that the receiver has stopped waiting.
    pub(in crate::edge::queue) fn end_wait(&mut self, later: &mut DeferredWork<T>) {
        if self.statistics {
            self.blocked_receiving.end();
        }
        if let Some(waker) = self.receiver.take() {
            later.old = Some(waker);
        }
    }
}
