//! The state under the lock of a queue: plain data, and the rules by which messages and offers move.

mod recv;
mod send;

pub(super) use send::SendRefusal;

use super::blocked::Blocked;
use crate::edge::meter::{EdgeStatistics, State};
use crate::edge::options::{Options, Overflow};
use crate::edge::queue::deferred::DeferredWork;
use crate::edge::queue::line::Line;
use std::collections::VecDeque;
use std::task::Waker;

pub(super) struct Contents<T> {
    messages: VecDeque<T>,
    /// The waiting senders. Empty while the queue has capacity.
    line: Line<T>,
    /// The receiver's waker, while it waits.
    receiver: Option<Waker>,
    /// The capacity in messages; 0 for a rendezvous.
    most: usize,
    state: State,
    overflow: Overflow,
    statistics: bool,
    /// True if messages have weights; otherwise each weighs 1, and `most` is the only limit.
    weighs: bool,
    /// True if the receiver has found the edge empty, and no message has arrived since.
    vacant: bool,
    sent: u64,
    received: u64,
    high_water: usize,
    /// The weights of the messages, if they have any.
    weights: VecDeque<u64>,
    /// The sum of the weights.
    weight: u64,
    limit: u64,
    /// The capacity that was requested.
    capacity: usize,
    /// The number of senders that have not closed.
    senders: usize,
    dropped_by_abort: u64,
    dropped_by_overflow: u64,
    blocked_sending: Blocked,
    blocked_receiving: Blocked,
}

impl<T> Contents<T> {
    pub(super) fn new(options: &Options, all_one: bool) -> Contents<T> {
        // An empty edge takes any message.
        let limit = usize::try_from(options.limit().max(1)).unwrap_or(usize::MAX);
        let capacity = options.capacity();
        Contents {
            messages: VecDeque::new(),
            line: Line::new(),
            receiver: None,
            most: match all_one {
                true => capacity.min(limit),
                false => capacity,
            },
            state: State::Open,
            overflow: options.overflow_policy(),
            statistics: options.keeps_statistics(),
            weighs: !all_one,
            vacant: false,
            sent: 0,
            received: 0,
            high_water: 0,
            weights: VecDeque::new(),
            weight: 0,
            limit: options.limit(),
            capacity,
            senders: 1,
            dropped_by_abort: 0,
            dropped_by_overflow: 0,
            blocked_sending: Blocked::default(),
            blocked_receiving: Blocked::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Returns the number of buffered messages and the capacity.
    pub(super) fn filled(&self) -> (usize, usize) {
        (self.messages.len(), self.capacity)
    }

    /// Returns the number of the first offer that is still in the line.
    #[inline]
    pub(super) fn decided(&self) -> u64 {
        self.line.decided()
    }

    /// True if a sender would have to wait.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        !self.line.is_empty() || (self.overflow == Overflow::Block && !self.has_capacity())
    }

    /// True if the receiver found the edge empty, and no message has arrived since.
    #[inline]
    pub(super) fn is_vacant(&self) -> bool {
        self.vacant
    }

    /// Returns the current capacity. A rendezvous has a capacity of one message while a receiver waits.
    #[inline]
    fn current_capacity(&self) -> usize {
        match self.most {
            0 => usize::from(self.receiver.is_some()),
            most => most,
        }
    }

    #[inline]
    fn fits(&self, weight: u64) -> bool {
        let light = !self.weighs
            || self.messages.is_empty()
            || self.weight.saturating_add(weight) <= self.limit;
        self.messages.len() < self.current_capacity() && light
    }

    /// True if a message may fit.
    #[inline]
    fn has_capacity(&self) -> bool {
        let light = !self.weighs || self.messages.is_empty() || self.weight < self.limit;
        self.messages.len() < self.current_capacity() && light
    }

    #[inline]
    fn push(&mut self, message: T, weight: u64, later: &mut DeferredWork<T>) {
        self.messages.push_back(message);
        if self.weighs {
            self.weights.push_back(weight);
            self.weight = self.weight.saturating_add(weight);
        }
        self.sent += weight;
        self.high_water = self.high_water.max(self.messages.len());
        self.notify_receiver(later);
    }

    /// Records that there is a message for the receiver.
    #[inline]
    fn notify_receiver(&mut self, later: &mut DeferredWork<T>) {
        self.vacant = false;
        if let Some(receiver) = self.receiver.take() {
            later.wake(receiver);
        }
    }

    /// Removes the oldest message and returns it with its weight.
    #[inline]
    fn pop(&mut self) -> Option<(T, u64)> {
        let message = self.messages.pop_front()?;
        if !self.weighs {
            return Some((message, 1));
        }
        let weight = self.weights.pop_front().unwrap_or(1);
        self.lighter_by(weight);
        Some((message, weight))
    }

    /// Subtracts the weight of removed messages from the total weight.
    fn lighter_by(&mut self, weight: u64) {
        self.weight = match self.messages.is_empty() {
            true => 0,
            false => self.weight - weight,
        };
    }

    /// Wakes the sender of an offer that has left the line.
    fn complete_offer(&mut self, waker: Option<Waker>, later: &mut DeferredWork<T>) {
        if self.statistics {
            self.blocked_sending.end();
        }
        if let Some(waker) = waker {
            later.wake(waker);
        }
    }

    /// Moves as many offers as fit from the front of the line into the edge.
    #[cold]
    fn admit(&mut self, later: &mut DeferredWork<T>) {
        if self.state == State::Aborted {
            return;
        }
        while let Some(first) = self.line.first() {
            let fits = match first.message {
                // A rendezvous takes messages from the line only as the receiver asks for them.
                Some((_, weight)) => self.most > 0 && self.fits(weight),
                None => self.has_capacity(),
            };
            if !fits {
                return;
            }
            let Some(offer) = self.line.take_first() else {
                return;
            };
            self.complete_offer(offer.waker, later);
            if let Some((message, weight)) = offer.message {
                self.push(message, weight, later);
            }
        }
    }

    /// Stops the edge and drops its messages.
    pub(super) fn abort(&mut self, later: &mut DeferredWork<T>) {
        let over = self.state == State::Closed && self.messages.is_empty();
        if over || self.state == State::Aborted {
            return;
        }
        self.state = State::Aborted;
        self.dropped_by_abort += match self.weighs {
            true => self.weights.iter().sum::<u64>(),
            false => self.messages.len() as u64,
        };
        self.weights.clear();
        self.weight = 0;
        self.notify_receiver(later);
        self.line.take_wakers().for_each(|waker| later.wake(waker));
        later.drop_all(std::mem::take(&mut self.messages));
    }

    pub(super) fn read(&self) -> EdgeStatistics {
        let uncounted = EdgeStatistics::uncounted(self.state, self.capacity, self.messages.len());
        if !self.statistics {
            return uncounted;
        }
        EdgeStatistics {
            high_water: self.high_water,
            sent: self.sent,
            received: self.received,
            dropped_by_abort: self.dropped_by_abort,
            dropped_by_overflow: self.dropped_by_overflow,
            blocked_sending: self.blocked_sending.read(),
            blocked_receiving: self.blocked_receiving.read(),
            ..uncounted
        }
    }
}
