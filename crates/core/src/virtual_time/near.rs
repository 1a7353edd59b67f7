//! The timers of the actor being run that are due within the window being run.
//!
//! Most actors have one at a time, so the next one has a place of its own. Of the others, those that were set in the
//! order in which they are due wait in a queue, the rest in a heap.

use super::scheduled::{Head, Kind, Scheduled, TIMER_FROM, TIMER_SEQ};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A timer that was set and is due within one window. They are ordered by due time, and at one
/// instant in the order in which they were set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NearTimer {
    pub(super) time: u64,
    order: u64,
    pub(super) token: u32,
    /// It was set for the instant at which it was set.
    at_once: bool,
}

impl NearTimer {
    /// No timer: none is due at the end of time.
    const NONE: NearTimer = NearTimer {
        time: u64::MAX,
        order: 0,
        token: 0,
        at_once: false,
    };

    /// Its event in the window that begins at `base`.
    pub(super) fn event<M>(self, base: u64, actor: u32) -> Scheduled<M> {
        let offset = (self.time - base) as u32;
        let mut head = Head::new(offset, Kind::Timer, actor, TIMER_FROM, TIMER_SEQ, self.time);
        head.cause.parent = self.token as u64;
        Scheduled::bare(head)
    }
}

/// See the [module](self).
pub(super) struct Near {
    first: NearTimer,
    /// Those after the first one.
    queue: VecDeque<NearTimer>,
    heap: BinaryHeap<Reverse<NearTimer>>,
    set: u64,
    chain: Chain,
}

impl Default for Near {
    fn default() -> Near {
        Near {
            first: NearTimer::NONE,
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

impl Near {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.time == u64::MAX
    }

    /// When the first one is due, if there is one; else the end of time.
    #[inline(always)]
    pub(super) fn next(&self) -> u64 {
        self.first.time
    }

    /// Adds a timer, which is not due at the end of time.
    #[inline(never)]
    pub(super) fn push(&mut self, now: u64, time: u64, token: u32) {
        self.set += 1;
        let timer = NearTimer {
            time,
            order: self.set,
            token,
            at_once: time == now,
        };
        if self.is_empty() {
            self.first = timer;
        } else {
            self.push_another(timer);
        }
    }

    #[inline(never)]
    fn push_another(&mut self, timer: NearTimer) {
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
    pub(super) fn pop_before(&mut self, until: u64) -> Option<NearTimer> {
        if self.first.time >= until {
            return None;
        }
        let next = match self.queue.is_empty() && self.heap.is_empty() {
            true => NearTimer::NONE,
            false => self.pop_another(),
        };
        Some(std::mem::replace(&mut self.first, next))
    }

    #[inline(never)]
    fn pop_another(&mut self) -> NearTimer {
        let queued = self.queue.front();
        let heaped = self.heap.peek().map(|Reverse(timer)| timer);
        let next = match heaped.is_some_and(|heaped| queued.is_none_or(|queued| heaped < queued)) {
            true => self.heap.pop().map(|Reverse(timer)| timer),
            false => self.queue.pop_front(),
        };
        next.unwrap_or(NearTimer::NONE)
    }

    pub(super) fn clear(&mut self) {
        self.first = NearTimer::NONE;
        self.queue.clear();
        self.heap.clear();
    }

    /// Counts a timer of this actor being run: how many events it has caused itself at this
    /// instant.
    pub(super) fn count(&mut self, actor: u32, timer: &NearTimer) -> u32 {
        if timer.at_once {
            return self.count_caused(actor, timer.time);
        }
        0
    }

    /// The same for an event that the actor has caused in another way.
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
        let mut near = Near::default();
        for (time, token) in [(7, 0), (3, 1), (7, 2), (3, 3), (5, 4), (3, 5)] {
            near.push(0, time, token);
        }
        let mut tokens = Vec::new();
        while let Some(timer) = near.pop_before(7) {
            tokens.push(timer.token);
        }
        assert_eq!(tokens, [1, 3, 5, 4]);
        assert_eq!(near.pop_before(8).map(|timer| timer.token), Some(0));
        near.clear();
        assert!(near.is_empty());
    }

    #[test]
    fn only_what_was_set_for_the_same_instant_counts_as_caused_at_once() {
        let mut near = Near::default();
        near.push(3, 4, 0);
        near.push(4, 4, 1);
        near.push(4, 4, 2);
        near.push(5, 5, 3);
        let counts: Vec<_> = std::iter::from_fn(|| near.pop_before(9))
            .collect::<Vec<_>>()
            .iter()
            .map(|timer| near.count(1, timer))
            .collect();
        assert_eq!(counts, [0, 1, 2, 1]);
    }
}
