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

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Timers {
    set: BinaryHeap<Reverse<Pending>>,
    own: Option<Pending>,
    order: u32,
    /// Those that can be cancelled; they are in `set`, under tokens of the library's own.
    handles: Vec<Handle>,
}

/// A timer that can be cancelled.
#[derive(Clone, Copy)]
struct Handle {
    own: u32,
    token: u32,
    period: Option<Duration>,
}

impl Timers {
    /// Sets one more.
    pub(crate) fn set(&mut self, due: Time, token: Token) {
        let pending = Pending {
            due,
            order: self.order,
            token: token.0,
        };
        self.order += 1;
        if token.0 >= Token::OWN {
            self.own = Some(pending);
        } else {
            self.set.push(Reverse(pending));
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
        self.handles.push(Handle { own, token, period });
        self.push(due, own);
    }

    fn push(&mut self, due: Time, token: u32) {
        let order = self.order;
        self.order += 1;
        self.set.push(Reverse(Pending { due, order, token }));
    }

    /// Cancels one; false if it has come or was cancelled.
    pub(crate) fn cancel(&mut self, own: Token) -> bool {
        let known = self.handles.iter().position(|handle| handle.own == own.0);
        if let Some(place) = known {
            self.handles.swap_remove(place);
            self.set.retain(|Reverse(pending)| pending.token != own.0);
        }
        known.is_some()
    }

    /// Forgets the timer of a wait that is over.
    pub(crate) fn forget_own(&mut self) {
        self.own = None;
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.first().map(|pending| pending.due)
    }

    fn first(&self) -> Option<Pending> {
        let set = self.set.peek().map(|Reverse(pending)| *pending);
        match (set, self.own) {
            (Some(set), Some(own)) => Some(set.min(own)),
            (set, own) => set.or(own),
        }
    }

    /// Removes the next one if it is due, and tells when it was.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, Token)> {
        let first = self.first().filter(|pending| pending.due <= now)?;
        if self.own == Some(first) {
            self.own = None;
        } else {
            self.set.pop();
        }
        if self.set.is_empty() && self.own.is_none() {
            self.order = 0;
        }
        Some((first.due, Token(self.token_of(first))))
    }
}

impl Timers {
    /// The actor's token of one that is due. One that comes again is set again.
    fn token_of(&mut self, due: Pending) -> u32 {
        let known = self
            .handles
            .iter()
            .position(|handle| handle.own == due.token);
        let Some(place) = known else { return due.token };
        let Handle { own, token, period } = self.handles[place];
        match period {
            Some(period) => self.push(due.due.after(period), own),
            None => {
                self.handles.swap_remove(place);
            }
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
