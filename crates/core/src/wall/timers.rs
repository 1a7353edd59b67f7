//! The pending timers of one actor, in the order in which they fire: by due time, and at the same
//! due time in the order in which they were set.
//!
//! Waits that have a time of their own (sleeps, time-outs of questions) come one after the other,
//! so there is one place for theirs, and a new one takes the place of one that is not waited for
//! any more. A million questions answered in time leave nothing behind.

use crate::contract::{Time, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pending {
    due: Time,
    order: u32,
    token: u32,
}

impl Pending {
    /// Later than any that is set, as only so many are set at a time.
    const NONE: Pending = Pending {
        due: Time::MAX,
        order: u32::MAX,
        token: u32::MAX,
    };
}

/// See the [module](self).
pub(crate) struct Timers {
    /// One of those that were set: most actors have no more.
    one: Pending,
    /// That of a wait.
    own: Pending,
    order: u32,
    more: Option<Box<More>>,
}

/// What few actors have.
#[derive(Default)]
struct More {
    /// All that were set but one.
    set: BinaryHeap<Reverse<Pending>>,
    /// Those that can be cancelled; their tokens in `set` are of the library's own.
    handles: Vec<Handle>,
}

/// A timer that can be cancelled.
#[derive(Clone, Copy)]
struct Handle {
    own: u32,
    token: u32,
    period: Option<Duration>,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            one: Pending::NONE,
            own: Pending::NONE,
            order: 0,
            more: None,
        }
    }
}

impl Timers {
    /// Sets one more.
    pub(crate) fn set(&mut self, due: Time, token: Token) {
        let pending = self.pending(due, token.0);
        if token.0 >= Token::OWN {
            self.own = pending;
        } else {
            self.push(pending);
        }
    }

    /// Sets one that can be cancelled, and comes again if it has a period.
    pub(crate) fn set_handle(
        &mut self,
        due: Time,
        own: Token,
        token: Token,
        period: Option<Duration>,
    ) {
        let (own, token) = (own.0, token.0);
        self.more().handles.push(Handle { own, token, period });
        let pending = self.pending(due, own);
        self.push(pending);
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    fn pending(&mut self, due: Time, token: u32) -> Pending {
        let order = self.order;
        self.order += 1;
        Pending { due, order, token }
    }

    fn push(&mut self, pending: Pending) {
        if self.one == Pending::NONE {
            self.one = pending;
        } else {
            self.more().set.push(Reverse(pending));
        }
    }

    /// Cancels one; false if it has come or was cancelled.
    pub(crate) fn cancel(&mut self, own: Token) -> bool {
        let Some(more) = &mut self.more else {
            return false;
        };
        let known = more.handles.iter().position(|handle| handle.own == own.0);
        if let Some(place) = known {
            more.handles.swap_remove(place);
            more.set.retain(|Reverse(pending)| pending.token != own.0);
            if self.one.token == own.0 {
                self.one = Pending::NONE;
            }
        }
        known.is_some()
    }

    /// Forgets the timer of a wait that is over.
    pub(crate) fn forget_own(&mut self) {
        self.own = Pending::NONE;
    }

    /// When the next one is due.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        let first = self.first();
        (first != Pending::NONE).then_some(first.due)
    }

    #[inline]
    fn first(&self) -> Pending {
        let first = self.one.min(self.own);
        match self.more.as_ref().and_then(|more| more.set.peek()) {
            Some(Reverse(set)) => first.min(*set),
            None => first,
        }
    }

    /// Removes the next one if it is due, and tells when it was.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, Token)> {
        let first = self.first();
        if first == Pending::NONE || first.due > now {
            return None;
        }
        if self.own == first {
            self.own = Pending::NONE;
        } else if self.one == first {
            self.one = Pending::NONE;
        } else {
            self.more().set.pop();
        }
        if self.first() == Pending::NONE {
            self.order = 0;
        }
        Some((first.due, Token(self.token_of(first))))
    }

    /// The actor's token of one that is due. One that comes again is set again.
    fn token_of(&mut self, due: Pending) -> u32 {
        let handles = self.more.as_ref().map_or(&[][..], |more| &more.handles);
        let known = handles.iter().position(|handle| handle.own == due.token);
        let Some(place) = known else { return due.token };
        let Handle { own, token, period } = handles[place];
        match period {
            Some(period) => {
                let again = self.pending(due.due.after(period), own);
                self.push(again);
            }
            None => drop(self.more().handles.swap_remove(place)),
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_by_due_time_and_then_in_the_order_of_setting() {
        let mut timers = Timers::default();
        for (due, token) in [(5, 0), (3, 1), (5, Token::OWN), (5, 2), (9, 3)] {
            timers.set(Time(due), Token(token));
        }
        assert_eq!(timers.next(), Some(Time(3)));
        let mut fired = Vec::new();
        while let Some((due, token)) = timers.pop_due(Time(8)) {
            fired.push((due.0, token.0));
        }
        assert_eq!(fired, [(3, 1), (5, 0), (5, Token::OWN), (5, 2)]);
        assert_eq!(timers.next(), Some(Time(9)));
    }

    #[test]
    fn a_wait_takes_the_place_of_the_one_before() {
        let mut timers = Timers::default();
        timers.set(Time(5), Token(Token::OWN));
        timers.set(Time(7), Token(Token::OWN + 1));
        assert_eq!(
            timers.pop_due(Time(10)),
            Some((Time(7), Token(Token::OWN + 1)))
        );
        assert_eq!(timers.next(), None);
    }
}
