//! What lies under the lock of a queue: plain data, and the rules by which messages and offers move.

use super::blocked::Blocked;
use super::later::Later;
use crate::edge::error::Aborted;
use crate::edge::meter::{EdgeStatistics, State};
use crate::edge::options::{Options, Overflow};
use std::collections::VecDeque;
use std::task::Waker;

/// What a collector waits for.
struct Offer<T> {
    number: u64,
    /// The message and its weight; `None`: only for room.
    message: Option<(T, u64)>,
    /// `None`: it has been woken by the abort.
    waker: Option<Waker>,
}

/// What an offer has come to.
pub(super) enum Fate<T> {
    Accepted,
    Waiting,
    /// The edge was aborted. The message, if there was one.
    Aborted(Option<T>),
}

/// Why a message was not put.
pub(super) enum Refused<T> {
    Full(T, u64),
    Aborted(T),
}

pub(super) struct Contents<T> {
    state: State,
    messages: VecDeque<T>,
    /// Of the messages; empty if all weigh 1.
    weights: VecDeque<u64>,
    /// The sum of the weights.
    weight: u64,
    /// In the order of their numbers. While there is room the line is empty.
    line: VecDeque<Offer<T>>,
    /// The number of the next offer.
    next: u64,
    arrivals: u64,
    /// How many collectors have not closed.
    collectors: usize,
    /// The emitter, if it waits.
    emitter: Option<Waker>,
    capacity: usize,
    limit: u64,
    /// All messages weigh 1.
    all_one: bool,
    overflow: Overflow,
    statistics: bool,
    collected: u64,
    emitted: u64,
    dropped_by_abort: u64,
    dropped_by_overflow: u64,
    high_water: usize,
    blocked_collecting: Blocked,
    blocked_emitting: Blocked,
}

impl<T> Contents<T> {
    pub(super) fn new(options: &Options, all_one: bool) -> Contents<T> {
        Contents {
            state: State::Open,
            messages: VecDeque::new(),
            weights: VecDeque::new(),
            weight: 0,
            line: VecDeque::new(),
            next: 0,
            arrivals: 0,
            collectors: 1,
            emitter: None,
            capacity: options.capacity(),
            limit: options.limit(),
            all_one,
            overflow: options.overflow_policy(),
            statistics: options.keeps_statistics(),
            collected: 0,
            emitted: 0,
            dropped_by_abort: 0,
            dropped_by_overflow: 0,
            high_water: 0,
            blocked_collecting: Blocked::default(),
            blocked_emitting: Blocked::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// How many messages there are, and at most.
    pub(super) fn filled(&self) -> (usize, usize) {
        (self.messages.len(), self.capacity)
    }

    /// The number of the first offer in the line.
    #[inline]
    pub(super) fn decided(&self) -> u64 {
        self.line.front().map_or(self.next, |offer| offer.number)
    }

    /// Whether a collector would have to wait.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        !self.line.is_empty()
            || (self.messages.len() >= self.capacity && self.overflow == Overflow::Block)
    }

    #[inline]
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// How many messages it may hold now. A rendezvous holds the one that was given to an emitter which waits.
    #[inline]
    fn room(&self) -> usize {
        match self.capacity {
            0 => usize::from(self.emitter.is_some()),
            capacity => capacity,
        }
    }

    #[inline]
    fn fits(&self, weight: u64) -> bool {
        self.messages.len() < self.room()
            && (self.weight.saturating_add(weight) <= self.limit || self.messages.is_empty())
    }

    /// Whether a message might fit.
    fn has_room(&self) -> bool {
        self.messages.len() < self.room() && (self.weight < self.limit || self.messages.is_empty())
    }

    /// Puts a message if the policy allows it.
    #[inline]
    pub(super) fn put(
        &mut self,
        message: T,
        weight: u64,
        later: &mut Later<T>,
    ) -> Result<(), Refused<T>> {
        if self.state != State::Open {
            return Err(Refused::Aborted(message));
        }
        if self.fits(weight) && self.line.is_empty() {
            self.push(message, weight, later);
            return Ok(());
        }
        match self.overflow {
            Overflow::Block => return Err(Refused::Full(message, weight)),
            Overflow::Abort => {
                self.abort(later);
                return Err(Refused::Aborted(message));
            }
            Overflow::DropOldest => {
                while self.capacity > 0
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
            self.collected += weight;
            self.dropped_by_overflow += weight;
            later.drop(message);
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, message: T, weight: u64, later: &mut Later<T>) {
        self.messages.push_back(message);
        if !self.all_one {
            self.weights.push_back(weight);
        }
        self.weight = self.weight.saturating_add(weight);
        self.collected += weight;
        self.high_water = self.high_water.max(self.messages.len());
        self.arrived(later);
    }

    /// There is something for the emitter.
    #[inline]
    fn arrived(&mut self, later: &mut Later<T>) {
        self.arrivals += 1;
        if let Some(emitter) = self.emitter.take() {
            later.wake(emitter);
        }
    }

    /// The oldest message and its weight.
    #[inline]
    fn pop(&mut self) -> Option<(T, u64)> {
        let message = self.messages.pop_front()?;
        let weight = self.weights.pop_front().unwrap_or(1);
        self.weight = match self.messages.is_empty() {
            true => 0,
            false => self.weight - weight,
        };
        Some((message, weight))
    }

    /// Whether there is a message for the emitter.
    pub(super) fn has_some(&self) -> bool {
        let offered = || self.line.iter().any(|offer| offer.message.is_some());
        !self.messages.is_empty() || (self.state != State::Aborted && offered())
    }

    /// Takes the next message for the emitter.
    #[inline]
    pub(super) fn take(&mut self, later: &mut Later<T>) -> Option<T> {
        let (message, weight) = match self.pop() {
            Some(taken) => taken,
            None => self.take_offer(later)?,
        };
        self.emitted += weight;
        if !self.line.is_empty() {
            self.admit(later);
        }
        Some(message)
    }

    /// Takes up to `max` messages for the emitter, and returns how many.
    pub(super) fn take_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
        later: &mut Later<T>,
    ) -> usize {
        let before = messages.len();
        let count = max.min(self.messages.len());
        if count > 0 {
            let weight = match self.all_one {
                true => count as u64,
                false => self.weights.drain(..count).sum(),
            };
            messages.extend(self.messages.drain(..count));
            self.emitted += weight;
            self.weight = match self.messages.is_empty() {
                true => 0,
                false => self.weight - weight,
            };
        }
        while messages.len() - before < max
            && let Some((message, weight)) = self.take_offer(later)
        {
            self.emitted += weight;
            messages.push(message);
        }
        if !self.line.is_empty() {
            self.admit(later);
        }
        messages.len() - before
    }

    /// Takes the first message in the line of an edge that is empty.
    #[inline]
    fn take_offer(&mut self, later: &mut Later<T>) -> Option<(T, u64)> {
        if self.line.is_empty() || !self.messages.is_empty() || self.state == State::Aborted {
            return None;
        }
        let at = self.line.iter().position(|offer| offer.message.is_some())?;
        let offer = self.line.remove(at)?;
        self.leaves(offer.waker, later);
        let (message, weight) = offer.message?;
        self.collected += weight;
        Some((message, weight))
    }

    /// An offer has left the line: its collector is woken.
    fn leaves(&mut self, waker: Option<Waker>, later: &mut Later<T>) {
        if self.statistics {
            self.blocked_collecting.end();
        }
        if let Some(waker) = waker {
            later.wake(waker);
        }
    }

    /// Takes into the edge what there is room for, from the front of the line.
    #[cold]
    fn admit(&mut self, later: &mut Later<T>) {
        if self.state == State::Aborted {
            return;
        }
        while let Some(first) = self.line.front() {
            let fits = match first.message {
                // A rendezvous takes messages from the line only as the emitter asks for them.
                Some((_, weight)) => self.capacity > 0 && self.fits(weight),
                None => self.has_room(),
            };
            if !fits {
                return;
            }
            let Some(offer) = self.line.pop_front() else {
                return;
            };
            self.leaves(offer.waker, later);
            if let Some((message, weight)) = offer.message {
                self.push(message, weight, later);
            }
        }
    }

    /// Puts a message, or adds it to the line and returns the number of the offer.
    pub(super) fn put_or_offer(
        &mut self,
        message: T,
        weight: u64,
        waker: &Waker,
        later: &mut Later<T>,
    ) -> Result<Option<u64>, Aborted<T>> {
        let meets = self.capacity == 0 && self.overflow == Overflow::Block;
        let (message, weight) = match meets && self.state == State::Open {
            // Collected once the emitter has it, not already because it waits for it.
            true => (message, weight),
            false => match self.put(message, weight, later) {
                Ok(()) => return Ok(None),
                Err(Refused::Full(message, weight)) => (message, weight),
                Err(Refused::Aborted(message)) => return Err(Aborted(message)),
            },
        };
        Ok(Some(self.offer(Some((message, weight)), waker, later)))
    }

    /// Finds room for some message, or adds to the line and returns the number of the offer.
    pub(super) fn find_room(
        &mut self,
        waker: &Waker,
        later: &mut Later<T>,
    ) -> Result<Option<u64>, Aborted<()>> {
        if self.state != State::Open {
            return Err(Aborted(()));
        }
        let waits = self.overflow == Overflow::Block && !(self.has_room() && self.line.is_empty());
        Ok(waits.then(|| self.offer(None, waker, later)))
    }

    /// Adds an offer to the line, of an edge that is open and has no room for it. Returns its number.
    fn offer(&mut self, message: Option<(T, u64)>, waker: &Waker, later: &mut Later<T>) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.statistics {
            self.blocked_collecting.begin();
        }
        if message.is_some() && self.capacity == 0 {
            self.arrived(later);
        }
        self.line.push_back(Offer {
            number,
            message,
            waker: Some(waker.clone()),
        });
        number
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.line
            .binary_search_by_key(&number, |offer| offer.number)
            .ok()
    }

    /// What has become of an offer; if it still waits, this is its waker from now on.
    pub(super) fn renew(&mut self, number: u64, waker: &Waker, later: &mut Later<T>) -> Fate<T> {
        let Some(at) = self.find(number) else {
            return Fate::Accepted;
        };
        if self.state == State::Aborted {
            return Fate::Aborted(self.withdraw(number, later));
        }
        let kept = &mut self.line[at].waker;
        if kept.as_ref().is_none_or(|kept| !kept.will_wake(waker)) {
            later.old = kept.replace(waker.clone());
        }
        Fate::Waiting
    }

    /// Takes an offer out of the line, if it is still there.
    pub(super) fn withdraw(&mut self, number: u64, later: &mut Later<T>) -> Option<T> {
        let offer = self.line.remove(self.find(number)?)?;
        if self.statistics {
            self.blocked_collecting.end();
        }
        later.old = offer.waker;
        // Lighter ones behind it may fit.
        self.admit(later);
        offer.message.map(|(message, _)| message)
    }

    /// The emitter waits from now on, with this waker.
    pub(super) fn await_message(&mut self, waker: &Waker, later: &mut Later<T>) {
        match &self.emitter {
            Some(kept) if kept.will_wake(waker) => {}
            _ => later.old = self.emitter.replace(waker.clone()),
        }
        if self.capacity == 0 && !self.line.is_empty() {
            self.admit(later);
        }
    }

    pub(super) fn begin_blocked_emitting(&mut self) {
        if self.statistics {
            self.blocked_emitting.begin();
        }
    }

    /// The emitter waits no more.
    pub(super) fn rest(&mut self, later: &mut Later<T>) {
        if self.statistics {
            self.blocked_emitting.end();
        }
        if let Some(waker) = self.emitter.take() {
            later.old = Some(waker);
        }
    }

    pub(super) fn join(&mut self) {
        self.collectors += 1;
    }

    /// One collector collects no more; the last one closes the edge.
    pub(super) fn leave(&mut self, later: &mut Later<T>) {
        self.collectors -= 1;
        if self.collectors == 0 && self.state == State::Open {
            self.state = State::Closed;
            self.arrived(later);
        }
    }

    /// Stops the edge and drops what it holds.
    pub(super) fn abort(&mut self, later: &mut Later<T>) {
        let over = self.state == State::Closed && self.messages.is_empty();
        if over || self.state == State::Aborted {
            return;
        }
        self.state = State::Aborted;
        self.dropped_by_abort += self.weights.iter().sum::<u64>();
        if self.weights.is_empty() {
            self.dropped_by_abort += self.messages.len() as u64;
        }
        self.weights.clear();
        self.weight = 0;
        self.arrived(later);
        for offer in &mut self.line {
            if let Some(waker) = offer.waker.take() {
                later.wake(waker);
            }
        }
        later.drop_all(std::mem::take(&mut self.messages));
    }

    pub(super) fn read(&self) -> EdgeStatistics {
        let uncounted = EdgeStatistics::uncounted(self.state, self.capacity, self.messages.len());
        if !self.statistics {
            return uncounted;
        }
        EdgeStatistics {
            high_water: self.high_water,
            collected: self.collected,
            emitted: self.emitted,
            dropped_by_abort: self.dropped_by_abort,
            dropped_by_overflow: self.dropped_by_overflow,
            blocked_collecting: self.blocked_collecting.read(),
            blocked_emitting: self.blocked_emitting.read(),
            ..uncounted
        }
    }
}
