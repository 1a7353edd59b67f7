//! The pending timers of one actor, in the order in which they fire: by due time, then by the order of
//! setting.
//!
//! An actor has at most one wait with a time-out (a sleep or a request) at a time. So there is one slot for the timer
//! of such waits, and a new timer replaces the timer of an earlier wait. Therefore a million requests that were
//! answered in time leave no timers behind.

use crate::contract::{Time, Token};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pending {
    due: Time,
    order: u32,
    token: u32,
}

impl Pending {
    /// The placeholder for no timer. It is later than any timer, because fewer than 2^32 timers are set at a time.
    const NONE: Pending = Pending {
        due: Time::MAX,
        order: u32::MAX,
        token: u32::MAX,
    };
}

/// The pending timers of an actor; see the [module](self).
pub(crate) struct Timers {
    /// One timer, in its own field because most actors have at most one.
    one: Pending,
    /// The timer of a wait.
    own: Pending,
    order: u32,
    /// The number of the next internal token. Numbers start again after 2^31.
    next_token: u32,
    more: Option<Box<More>>,
}

/// State that few actors have.
#[derive(Default)]
struct More {
    /// All timers except `one`. The first of them is not cancelled.
    set: BinaryHeap<Reverse<Pending>>,
    /// Timers that can be cancelled, by their internal tokens in `set`.
    handles: HashMap<u32, Handle>,
    /// The number of cancelled timers in `set`.
    cancelled: usize,
}

/// The maximum number of cancelled timers that stay in `set`, unless they are fewer than half of it.
const FEW: usize = 64;

impl More {
    /// Removes cancelled timers from the front of `set`.
    fn tidy(&mut self) {
        let (set, handles) = (&mut self.set, &self.handles);
        let is_cancelled = |pending: &Pending| {
            pending.token >= Token::OWN && !handles.contains_key(&pending.token)
        };
        while self.cancelled > 0 && set.peek().is_some_and(|Reverse(first)| is_cancelled(first)) {
            set.pop();
            self.cancelled -= 1;
        }
        if self.cancelled > FEW && self.cancelled > set.len() / 2 {
            set.retain(|Reverse(pending)| !is_cancelled(pending));
            self.cancelled = 0;
        }
    }
}

/// A timer that can be cancelled.
#[derive(Clone, Copy)]
struct Handle {
    token: u32,
    period: Option<Duration>,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            one: Pending::NONE,
            own: Pending::NONE,
            order: 0,
            next_token: 0,
            more: None,
        }
    }
}

impl Timers {
    /// Returns an internal token that no timer of this actor has.
    pub(crate) fn own_token(&mut self) -> Token {
        loop {
            let token = Token::OWN | self.next_token;
            self.next_token = (self.next_token + 1) & !Token::OWN;
            let more = self.more.as_ref();
            if more.is_none_or(|more| !more.handles.contains_key(&token)) {
                return Token(token);
            }
        }
    }

    /// Sets a timer.
    pub(crate) fn set(&mut self, due: Time, token: Token) {
        let pending = self.pending(due, token.0);
        if token.0 >= Token::OWN {
            self.own = pending;
        } else {
            self.push(pending);
        }
    }

    /// Sets a timer that can be cancelled; it repeats if it has a period.
    pub(crate) fn set_handle(
        &mut self,
        due: Time,
        own: Token,
        token: Token,
        period: Option<Duration>,
    ) {
        let (own, token) = (own.0, token.0);
        self.more().handles.insert(own, Handle { token, period });
        let pending = self.pending(due, own);
        self.push(pending);
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    fn pending(&mut self, due: Time, token: u32) -> Pending {
        let order = self.order;
        self.order = self.order.wrapping_add(1);
        Pending { due, order, token }
    }

    fn push(&mut self, pending: Pending) {
        if self.one == Pending::NONE {
            self.one = pending;
        } else {
            self.more().set.push(Reverse(pending));
        }
    }

    /// Cancels a timer. Returns false if it has fired or was already cancelled.
    pub(crate) fn cancel(&mut self, own: Token) -> bool {
        let Some(more) = &mut self.more else {
            return false;
        };
        let known = more.handles.remove(&own.0).is_some();
        if known && self.one.token == own.0 {
            self.one = Pending::NONE;
        } else if known {
            more.cancelled += 1;
            more.tidy();
        }
        known
    }

    /// Removes the timer of a wait that is over.
    pub(crate) fn forget_own(&mut self) {
        self.own = Pending::NONE;
    }

    /// Returns the time of the next timer.
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

    /// Removes the next timer if it is due, and returns its time.
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
            let more = self.more();
            more.set.pop();
            more.tidy();
        }
        if self.first() == Pending::NONE {
            self.order = 0;
        }
        Some((first.due, Token(self.token_of(first, now))))
    }

    /// Returns the actor's token of a due timer. A periodic timer is set again for its next future time:
    /// otherwise an actor that is slower than the period would fall behind more and more.
    fn token_of(&mut self, due: Pending, now: Time) -> u32 {
        let Some(more) = &mut self.more else {
            return due.token;
        };
        let Some(&Handle { token, period }) = more.handles.get(&due.token) else {
            return due.token;
        };
        match period {
            Some(period) => {
                let next = due.due.after(next_multiple(period, now.since(due.due)));
                let again = self.pending(next, due.token);
                self.push(again);
            }
            None => drop(more.handles.remove(&due.token)),
        }
        token
    }
}

/// Returns the smallest multiple of a period that is greater than `late`.
fn next_multiple(period: Duration, late: Duration) -> Duration {
    let times = late.as_nanos() / period.as_nanos().max(1) + 1;
    let nanos = period.as_nanos().saturating_mul(times);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: core-14.
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
    fn a_period_that_went_by_unseen_is_not_caught_up_with() {
        let mut timers = Timers::default();
        let ten = Some(Duration::from_nanos(10));
        timers.set_handle(Time(10), Token(Token::OWN), Token(1), ten);
        assert_eq!(timers.pop_due(Time(10)), Some((Time(10), Token(1))));
        assert_eq!(timers.pop_due(Time(57)), Some((Time(20), Token(1))));
        assert_eq!(timers.next(), Some(Time(60)));
        assert!(timers.cancel(Token(Token::OWN)));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn the_first_of_many_is_never_one_that_was_cancelled() {
        let mut timers = Timers::default();
        let own = |n: u32| Token(Token::OWN + n);
        for n in 0..1000 {
            timers.set_handle(Time(u64::from(n)), own(n), Token(n), None);
        }
        for n in (0..1000).filter(|n| n % 10 != 7) {
            assert!(timers.cancel(own(n)));
            assert!(!timers.cancel(own(n)));
        }
        for n in (0..100).map(|n| n * 10 + 7) {
            assert_eq!(timers.next(), Some(Time(u64::from(n))));
            assert_eq!(
                timers.pop_due(Time(999)).map(|(_, token)| token),
                Some(Token(n))
            );
            assert!(!timers.cancel(own(n)), "it has come");
        }
        assert_eq!(timers.next(), None);
        assert!(
            timers
                .more
                .is_some_and(|more| more.set.is_empty() && more.handles.is_empty())
        );
    }

    #[test]
    fn a_token_is_not_given_out_again_while_a_timer_has_it() {
        let mut timers = Timers::default();
        let period = timers.own_token();
        let ten = Some(Duration::from_nanos(10));
        timers.set_handle(Time(10), period, Token(1), ten);
        timers.next_token = u32::MAX >> 1;
        let last = timers.own_token();
        assert_eq!(last, Token(u32::MAX));
        assert_eq!(timers.own_token(), Token(Token::OWN + 1));
        assert!(timers.cancel(period));
        timers.next_token = 0;
        assert_eq!(timers.own_token(), period);
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
