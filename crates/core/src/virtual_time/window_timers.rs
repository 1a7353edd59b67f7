//! The timers of the actor being run that are due within the current window.
//!
//! Timers for the current instant are in a queue. Most actors have at most one other timer, so the next timer has a
//! separate field. The remaining timers are in another queue, if they were set in the order of their due times, and
//! otherwise in a heap.

use super::event::{Head, Kind, ScheduledEvent, TIMER_FROM, TIMER_SEQ};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A timer that was set, and is due, within the current window.
#[derive(Clone, Copy)]
pub(super) struct WindowTimer {
    pub(super) time: u64,
    pub(super) token: u32,
    /// True if the timer was set for the current instant.
    at_once: bool,
}

impl WindowTimer {
    /// Returns the event of the timer in the window that begins at `base`.
    pub(super) fn event<M>(self, base: u64, actor: u32) -> ScheduledEvent<M> {
        let offset = (self.time - base) as u32;
        let mut head = Head::new(offset, Kind::Timer, actor, TIMER_FROM, TIMER_SEQ, self.time);
        head.cause.parent = self.token as u64;
        ScheduledEvent::bare(head)
    }
}

/// A timer for a later instant. Timers are ordered by due time; at the same instant, by the order in which they were
/// set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Later {
    time: u64,
    order: u64,
    token: u32,
}

impl Later {
    /// A placeholder for no timer, because no timer is due at the end of time.
    const NONE: Later = Later {
        time: u64::MAX,
        order: 0,
        token: 0,
    };
}

/// The timers of one actor; see the [module](self).
pub(super) struct WindowTimers {
    /// The time of the next timer; the end of time if there is none.
    next: u64,
    /// Tokens of timers that were set for the current instant. They come after the timers of the other lists that are
    /// due now, because those were set earlier.
    at_once: VecDeque<u32>,
    /// The instant of the timers in `at_once`.
    instant: u64,
    first: Later,
    /// The timers that follow the next one.
    queue: VecDeque<Later>,
    heap: BinaryHeap<Reverse<Later>>,
    set: u64,
    chain: Chain,
}

impl Default for WindowTimers {
    fn default() -> WindowTimers {
        WindowTimers {
            next: u64::MAX,
            at_once: VecDeque::new(),
            instant: 0,
            first: Later::NONE,
            queue: VecDeque::new(),
            heap: BinaryHeap::new(),
            set: 0,
            chain: Chain::default(),
        }
    }
}

/// Events that an actor has caused itself at one instant.
#[derive(Default)]
struct Chain {
    actor: u32,
    time: u64,
    events: u32,
}

impl WindowTimers {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.next == u64::MAX
    }

    /// Returns the time of the next timer; the end of time if there is none.
    #[inline(always)]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Adds a timer, which must be due before the end of time.
    #[inline(never)]
    pub(super) fn push(&mut self, now: u64, time: u64, token: u32) {
        if time == now {
            debug_assert!(self.at_once.is_empty() || self.instant == now);
            self.at_once.push_back(token);
            (self.instant, self.next) = (now, now);
            return;
        }
        self.set += 1;
        let order = self.set;
        let timer = Later { time, order, token };
        if self.first.time == u64::MAX {
            self.first = timer;
        } else {
            self.push_another(timer);
        }
        self.next = self.next.min(time);
    }

    #[inline(never)]
    fn push_another(&mut self, timer: Later) {
        let earlier = timer.time < self.first.time;
        let later = match earlier {
            true => std::mem::replace(&mut self.first, timer),
            false => timer,
        };
        if self.queue.back().is_none_or(|last| *last < later) {
            self.queue.push_back(later);
        } else {
            self.heap.push(Reverse(later));
        }
    }

    /// Takes the next timer, if it is due before this time.
    #[inline]
    pub(super) fn pop_before(&mut self, until: u64) -> Option<WindowTimer> {
        if self.next >= until {
            return None;
        }
        if self.first.time > self.next {
            // Only `at_once` has a timer that is due at `next`.
            let token = self.at_once.pop_front()?;
            let time = self.instant;
            if self.at_once.is_empty() {
                self.next = self.first.time;
            }
            let at_once = true;
            return Some(WindowTimer {
                time,
                token,
                at_once,
            });
        }
        let following = match self.queue.is_empty() && self.heap.is_empty() {
            true => Later::NONE,
            false => self.pop_another(),
        };
        let Later { time, token, .. } = std::mem::replace(&mut self.first, following);
        self.next = match self.at_once.is_empty() {
            true => following.time,
            false => following.time.min(self.instant),
        };
        let at_once = false;
        Some(WindowTimer {
            time,
            token,
            at_once,
        })
    }

    #[inline(never)]
    fn pop_another(&mut self) -> Later {
        let queued = self.queue.front();
        let heaped = self.heap.peek().map(|Reverse(timer)| timer);
        let next = match heaped.is_some_and(|heaped| queued.is_none_or(|queued| heaped < queued)) {
            true => self.heap.pop().map(|Reverse(timer)| timer),
            false => self.queue.pop_front(),
        };
        next.unwrap_or(Later::NONE)
    }

    pub(super) fn clear(&mut self) {
        self.next = u64::MAX;
        self.at_once.clear();
        self.first = Later::NONE;
        self.queue.clear();
        self.heap.clear();
    }

    /// Counts a timer of this actor. Returns the number of events that the actor has caused itself at this instant.
    #[inline]
    pub(super) fn count(&mut self, actor: u32, timer: &WindowTimer) -> u32 {
        if timer.at_once {
            return self.count_caused(actor, timer.time);
        }
        0
    }

    /// Counts an event that the actor has caused without a timer.
    #[inline]
    pub(super) fn count_caused(&mut self, actor: u32, time: u64) -> u32 {
        if (self.chain.actor, self.chain.time) != (actor, time) {
            self.chain = Chain {
                actor,
                time,
                events: 0,
            };
        }
        self.chain.events += 1;
        self.chain.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_leave_by_time_and_then_in_the_order_of_setting() {
        let mut timers = WindowTimers::default();
        for (time, token) in [(7, 0), (3, 1), (7, 2), (3, 3), (5, 4), (3, 5)] {
            timers.push(0, time, token);
        }
        let mut tokens = Vec::new();
        while let Some(timer) = timers.pop_before(7) {
            tokens.push(timer.token);
        }
        assert_eq!(tokens, [1, 3, 5, 4]);
        assert_eq!(timers.pop_before(8).map(|timer| timer.token), Some(0));
        timers.clear();
        assert!(timers.is_empty());
    }

    #[test]
    fn timers_for_this_instant_come_after_those_that_were_set_for_it_before() {
        let mut timers = WindowTimers::default();
        for (now, time, token) in [
            (1, 4, 0),
            (2, 9, 1),
            (3, 4, 2),
            (4, 4, 3),
            (4, 5, 4),
            (4, 4, 5),
        ] {
            timers.push(now, time, token);
        }
        assert_eq!(timers.next(), 4);
        assert!(timers.pop_before(4).is_none());
        let tokens: Vec<u32> = std::iter::from_fn(|| timers.pop_before(10))
            .map(|timer| timer.token)
            .collect();
        assert_eq!(tokens, [0, 2, 3, 5, 4, 1]);
        assert!(timers.is_empty());
    }

    #[test]
    fn only_what_was_set_for_the_same_instant_counts_as_caused_at_once() {
        let mut timers = WindowTimers::default();
        let mut counts = Vec::new();
        for (now, time) in [(3, 4), (4, 4), (4, 4), (5, 5)] {
            timers.push(now, time, 0);
            if (now, time) == (4, 4) && counts.is_empty() {
                counts.push(0);
                continue;
            }
            while now == time
                && let Some(timer) = timers.pop_before(9)
            {
                counts.push(timers.count(1, &timer));
            }
        }
        assert_eq!(counts, [0, 0, 1, 2, 1]);
    }
}
