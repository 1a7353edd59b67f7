//! The waits of a shard's actors: tokens, cancelled timers, wakers of combinators.

use super::Shard;
use super::handles::{Handles, TimerOutcome};
use super::timer::{Timer, actor, key};
use crate::Token;
use crate::virtual_time::event::Kind;
use crate::virtual_time::table::Numbers;
use crate::virtual_time::wheel::Wheel;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::task::Waker;

/// The number of cancelled timers at which the wheel is swept.
const SWEEP_AT: usize = 1024;

/// The waits of a shard's actors; see the [module](self).
pub(in super::super) struct Waits {
    /// The number of the last assigned token. Numbers are assigned in sequence, and repeat after 2^29.
    own_tokens: u32,
    /// The quarter of the number range for which `in_use` was computed: the one that contained the last token.
    quarter: u32,
    /// Numbers of this quarter and the next quarter that must not be assigned, because timers still use them.
    in_use: Numbers<u32>,
    /// Timers of internal waits that are over but have not been removed yet.
    cancelled: Numbers<u64>,
    sweep_at: usize,
    /// Wakers that combinators gave to waits, by actor.
    relays: HashMap<u32, Waker>,
    handles: Handles,
}

/// The number of internal tokens. The higher bits of a token are its purpose.
const NUMBERS: u32 = 1 << 29;

/// The high bits of the tokens of cancellable timers.
const HANDLE: u32 = Token::OWN | NUMBERS;

/// The high bits of the tokens of messages of an actor to itself.
const OWN_MESSAGE: u32 = Token::OWN | (2 * NUMBERS);

/// Returns true if a token belongs to a cancellable timer.
#[inline(always)]
pub(in super::super) fn is_handle(token: u32) -> bool {
    token & !(NUMBERS - 1) == HANDLE
}

/// Returns true if a token belongs to a message of an actor to itself.
#[inline(always)]
pub(in super::super) fn is_own_message(token: u32) -> bool {
    token & !(NUMBERS - 1) == OWN_MESSAGE
}

/// A quarter of the token numbers.
const QUARTER: u32 = NUMBERS / 4;

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            own_tokens: 0,
            quarter: 0,
            in_use: Numbers::default(),
            cancelled: Numbers::default(),
            sweep_at: SWEEP_AT,
            relays: HashMap::new(),
            handles: Handles::default(),
        }
    }
}

/// The serialized waits. Wakers are not included: only async bodies have them.
#[cfg(feature = "serde")]
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SavedWaits {
    /// The last token that was assigned to an internal wait.
    own_tokens: u32,
    /// Cancelled timers, by actor and token.
    pub(super) cancelled: Vec<u64>,
    pub(super) handles: Vec<SavedHandle>,
}

/// The serialized form of a cancellable timer.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct SavedHandle {
    pub(super) actor: u32,
    own: u32,
    token: u32,
    /// The period in nanoseconds; 0 if the timer fires only once.
    period: u64,
}

#[cfg(feature = "serde")]
impl SavedWaits {
    /// Returns the data that does not belong to a single actor.
    pub(super) fn without_those_of_actors(&self) -> SavedWaits {
        SavedWaits {
            own_tokens: self.own_tokens,
            ..SavedWaits::default()
        }
    }

    /// Adds the waits of another part.
    pub(super) fn add(&mut self, mut other: SavedWaits) {
        self.own_tokens = self.own_tokens.max(other.own_tokens);
        self.cancelled.append(&mut other.cancelled);
        self.handles.append(&mut other.handles);
    }
}

#[cfg(feature = "serde")]
impl Waits {
    /// Returns the serialized waits.
    pub(super) fn save(&self) -> SavedWaits {
        let handles = self.handles.iter().map(|(actor, handle)| SavedHandle {
            actor,
            own: handle.own,
            token: handle.token.0,
            period: handle.period,
        });
        let mut saved = SavedWaits {
            own_tokens: self.own_tokens,
            cancelled: self.cancelled.iter().copied().collect(),
            handles: handles.collect(),
        };
        let cancelled = self.handles.iter_cancelled();
        let cancelled = cancelled.map(|(actor, handle)| key(actor, handle.own));
        saved.cancelled.extend(cancelled);
        saved.cancelled.sort_unstable();
        saved
            .handles
            .sort_by_key(|handle| (handle.actor, handle.own));
        saved
    }

    /// Restores waits that [`Waits::save`] has written.
    pub(super) fn restore(saved: &SavedWaits) -> Waits {
        let mut waits = Waits {
            own_tokens: saved.own_tokens,
            // An invalid quarter, so that the numbers in use are recorded before the first window.
            quarter: u32::MAX,
            ..Waits::default()
        };
        for handle in &saved.handles {
            let SavedHandle {
                actor,
                own,
                token,
                period,
            } = *handle;
            waits.handles.insert(actor, own, Token(token), period);
        }
        for &key in &saved.cancelled {
            match key as u32 {
                own if is_handle(own) => waits.handles.insert_cancelled(actor(key), own),
                _ => drop(waits.cancelled.insert(key)),
            }
        }
        waits
    }
}

impl Waits {
    /// Returns a token for an internal wait that no timer of this shard has. Actors never see it.
    #[inline]
    pub(in super::super) fn own_token(&mut self) -> Token {
        Token(Token::OWN | self.next_number())
    }

    /// Returns a token for the timer of a message of an actor to itself.
    #[inline]
    pub(super) fn own_message(&mut self) -> u32 {
        OWN_MESSAGE | self.next_number()
    }

    /// Returns a number that no token of a timer of this shard has.
    #[inline]
    fn next_number(&mut self) -> u32 {
        loop {
            self.own_tokens = (self.own_tokens + 1) % NUMBERS;
            if self.in_use.is_empty() || !self.in_use.contains(&self.own_tokens) {
                return self.own_tokens;
            }
        }
    }

    /// Returns true if the token numbers have reached another quarter.
    #[inline]
    fn are_in_another_quarter(&self) -> bool {
        self.own_tokens / QUARTER != self.quarter
    }

    /// Records which of the next token numbers are still used by timers, so that these numbers are not assigned again.
    fn note_in_use(&mut self, tokens: impl Iterator<Item = u32>) {
        let given = self.own_tokens;
        self.quarter = given / QUARTER;
        let cancelled = self.cancelled.iter().map(|&key| key as u32);
        let handles = self.handles.iter().chain(self.handles.iter_cancelled());
        let handles = handles.map(|(_, handle)| handle.own);
        let all = tokens.chain(cancelled).chain(handles);
        let numbers = all.filter_map(|token| (token >= Token::OWN).then_some(token % NUMBERS));
        let soon = numbers.filter(|number| {
            let ahead = number.wrapping_sub(given) % NUMBERS;
            ahead > 0 && ahead <= 2 * QUARTER
        });
        self.in_use = soon.collect();
    }

    /// Adds a cancellable timer. Returns the token for the wheel.
    #[inline]
    pub(super) fn add_handle(&mut self, actor: u32, token: Token, period: u64) -> Token {
        let own = HANDLE | self.next_number();
        self.handles.insert(actor, own, token, period);
        Token(own)
    }

    /// Cancels a timer. Returns true if it was still going to fire.
    #[inline]
    pub(super) fn cancel_handle(&mut self, actor: u32, own: Token) -> bool {
        self.handles.cancel(actor, own.0)
    }

    /// Returns the outcome of a due cancellable timer.
    #[inline]
    pub(super) fn handle_due(&mut self, actor: u32, own: u32) -> TimerOutcome {
        self.handles.due(actor, own)
    }

    /// Removes the timers of an actor that has ended.
    #[inline]
    pub(super) fn forget_handles(&mut self, actor: u32) {
        let cancelled = &mut self.cancelled;
        self.handles
            .forget(actor, |own| cancelled.extend([key(actor, own)]));
    }

    /// Cancels the timer of a wait, which is not needed any more.
    pub(in super::super) fn cancel(&mut self, actor: u32, token: Token) {
        self.cancelled.insert(key(actor, token.0));
    }

    pub(super) fn is_cancelled(&self, key: u64) -> bool {
        self.cancelled.contains(&key)
            || is_handle(key as u32) && self.handles.is_cancelled(actor(key), key as u32)
    }

    /// Returns true if the due timer was cancelled, and removes the mark.
    #[inline]
    pub(super) fn take_cancelled(&mut self, actor: u32, token: u32) -> bool {
        !self.cancelled.is_empty() && self.cancelled.remove(&key(actor, token))
    }

    /// Returns true if a sweep of the wheel pays off, because many timers were cancelled or used tokens must be found.
    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.cancelled.len() + self.handles.cancelled() >= self.sweep_at
            || self.are_in_another_quarter()
    }

    /// Removes cancelled timers, between two windows. `elsewhere` is true if some of them may not be in the wheel.
    pub(super) fn sweep(&mut self, timers: &mut Wheel<Timer>, elsewhere: bool) {
        let (cancelled, handles) = (&mut self.cancelled, &mut self.handles);
        if cancelled.is_empty() && handles.cancelled() == 0 {
            return;
        }
        let keep = |&Timer { actor, token, .. }: &Timer| {
            token < Token::OWN
                || !(is_handle(token) && handles.take_cancelled(actor, token)
                    || cancelled.remove(&key(actor, token)))
        };
        self.sweep_at = timers.retain(keep).max(SWEEP_AT);
        if !elsewhere {
            // A cancelled timer that is not in the wheel does not exist any more.
            self.cancelled.clear();
            self.cancelled.shrink_to(self.sweep_at);
            self.handles.clear_cancelled();
        }
    }

    /// Stores the waker that a combinator gave to an actor's wait. Returns the previous waker, which the caller must drop.
    #[must_use = "dropping a waker runs foreign code; drop it where no reference is held"]
    pub(in super::super) fn set_relay(&mut self, actor: u32, waker: Waker) -> Option<Waker> {
        self.relays.insert(actor, waker)
    }

    /// Returns true if a combinator gave a waker to any wait.
    #[inline(always)]
    pub(in super::super) fn has_relays(&self) -> bool {
        !self.relays.is_empty()
    }

    /// Takes the wakers of all actors.
    pub(in super::super) fn take_relays(&mut self) -> HashMap<u32, Waker> {
        std::mem::take(&mut self.relays)
    }

    /// Takes the waker that a combinator gave to the wait of an actor.
    #[inline]
    pub(in super::super) fn take_relay(&mut self, actor: u32) -> Option<Waker> {
        if self.relays.is_empty() {
            return None;
        }
        self.take_its_relay(actor)
    }

    #[cold]
    #[inline(never)]
    fn take_its_relay(&mut self, actor: u32) -> Option<Waker> {
        self.relays.remove(&actor)
    }
}

impl<M> Shard<M> {
    /// Finds the timers whose tokens would be assigned next, if this is necessary. Called between two windows.
    pub(super) fn note_tokens_in_use(&mut self) {
        if !self.waits.are_in_another_quarter() {
            return;
        }
        let mut tokens: Vec<u32> = Vec::new();
        let timers =
            |timer: &Timer| tokens.extend((timer.token >= Token::OWN).then_some(timer.token));
        self.queues.timers.for_each(timers);
        let pending = self
            .pending
            .iter()
            .filter(|event| event.head.kind() == Kind::Timer);
        tokens.extend(pending.map(|event| event.head.cause.parent as u32));
        tokens.extend(self.deferred.iter().map(|&(_, key)| key as u32));
        tokens.extend(self.own.iter().map(|(_, token, _)| token));
        self.waits.note_in_use(tokens.into_iter());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_given_out_again_while_a_timer_has_it() {
        let mut waits = Waits::default();
        let first = waits.add_handle(7, Token(1), 0);
        let second = waits.own_token();
        let third = waits.own_message();
        let fourth = waits.own_token();
        assert!(is_handle(first.0) && is_own_message(third));
        assert!(!is_handle(third) && !is_own_message(second.0));
        waits.cancel(8, fourth);
        waits.own_tokens = NUMBERS - 2;
        assert!(waits.are_many());
        waits.note_in_use([second.0, third, 5].into_iter());
        assert!(!waits.are_many());
        let next: Vec<u32> = (0..3).map(|_| waits.own_token().0 % NUMBERS).collect();
        assert_eq!(next, [NUMBERS - 1, 0, 5]);
        // After the numbers have wrapped around, they are free.
        assert!(waits.cancel_handle(7, first));
        assert_eq!(waits.handle_due(7, first.0), TimerOutcome::Cancelled);
        assert!(waits.take_cancelled(8, fourth.0));
        waits.own_tokens = NUMBERS - 1;
        waits.note_in_use(std::iter::empty());
        assert_eq!(waits.own_token().0 % NUMBERS, 0);
        assert_eq!(waits.add_handle(7, Token(1), 0), first);
    }

    #[test]
    fn a_timer_that_was_cancelled_is_swept_also_after_its_actor_has_ended() {
        let mut waits = Waits::default();
        let mut wheel = Wheel::new(4);
        for index in 0..4 {
            let token = waits.add_handle(index % 2, Token(index), 0).0;
            let (time, actor) = (1000 + u64::from(index), index % 2);
            wheel.push(Timer { time, actor, token });
            assert!(index == 0 || waits.cancel_handle(actor, Token(token)));
        }
        waits.forget_handles(1);
        assert!(waits.is_cancelled(key(1, HANDLE | 2)));
        waits.sweep(&mut wheel, false);
        let mut left = Vec::new();
        wheel.for_each(|timer| left.push((timer.actor, timer.token)));
        assert_eq!(left, [(0, HANDLE | 1)]);
        assert_eq!((waits.cancelled.len(), waits.handles.cancelled()), (0, 0));
    }
}
