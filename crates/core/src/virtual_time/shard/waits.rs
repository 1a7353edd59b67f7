//! What a shard notes of waits: tokens, timers that are over, wakers of combinators.

use super::Shard;
use super::handles::Handles;
use super::timer::{Timer, key};
use crate::Token;
use crate::virtual_time::scheduled::Kind;
use crate::virtual_time::table::Numbers;
use crate::virtual_time::wheel::Wheel;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::task::Waker;

/// With this many cancelled timers, or more, the wheel is gone through.
const SWEEP_AT: usize = 1024;

/// See the [module](self).
pub(in super::super) struct Waits {
    /// The token given out last, without its highest bit. Tokens are given out in turn, and again after 2^31 of them.
    own_tokens: u32,
    /// The quarter of all tokens in which that was when `in_use` was filled.
    quarter: u32,
    /// Tokens of that quarter and the next which are not to be given out, because a timer still has them.
    in_use: Numbers<u32>,
    /// Timers of the library's own waits that are over, and that have not been removed yet.
    cancelled: Numbers<u64>,
    sweep_at: usize,
    /// Wakers that combinators gave to waits, by actor.
    relays: HashMap<u32, Waker>,
    handles: Handles,
}

/// A fourth of the library's own tokens.
const QUARTER: u32 = Token::OWN / 4;

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

/// Waits as they are written. Wakers are none of it: only async bodies have them.
#[cfg(feature = "serde")]
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SavedWaits {
    /// The last token that was given to a wait of the library's own.
    own_tokens: u32,
    /// Timers that were cancelled, by actor and token.
    pub(super) cancelled: Vec<u64>,
    pub(super) handles: Vec<SavedHandle>,
}

/// A timer that its actor can cancel, as it is written.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct SavedHandle {
    pub(super) actor: u32,
    own: u32,
    token: u32,
    /// 0: it comes once.
    period: u64,
}

#[cfg(feature = "serde")]
impl SavedWaits {
    /// What belongs to no single actor.
    pub(super) fn without_those_of_actors(&self) -> SavedWaits {
        SavedWaits {
            own_tokens: self.own_tokens,
            ..SavedWaits::default()
        }
    }

    /// Adds those of another part.
    pub(super) fn add(&mut self, mut other: SavedWaits) {
        self.own_tokens = self.own_tokens.max(other.own_tokens);
        self.cancelled.append(&mut other.cancelled);
        self.handles.append(&mut other.handles);
    }
}

#[cfg(feature = "serde")]
impl Waits {
    /// What there is to write.
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
        saved.cancelled.sort_unstable();
        saved
            .handles
            .sort_by_key(|handle| (handle.actor, handle.own));
        saved
    }

    /// The waits that were written.
    pub(super) fn restore(saved: &SavedWaits) -> Waits {
        let mut waits = Waits {
            own_tokens: saved.own_tokens,
            // Unlike any: what is in use is seen before the first window.
            quarter: u32::MAX,
            cancelled: saved.cancelled.iter().copied().collect(),
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
        waits
    }
}

impl Waits {
    /// A token for one of the library's own waits, which no timer of this shard has. No actor can see it.
    #[inline]
    pub(in super::super) fn own_token(&mut self) -> Token {
        loop {
            self.own_tokens = (self.own_tokens + 1) % Token::OWN;
            let token = Token::OWN | self.own_tokens;
            if self.in_use.is_empty() || !self.in_use.contains(&token) {
                return Token(token);
            }
        }
    }

    /// Whether tokens have come to another quarter.
    #[inline]
    fn are_in_another_quarter(&self) -> bool {
        self.own_tokens / QUARTER != self.quarter
    }

    /// Notes which of the tokens to be given out next are in use, of all that timers have.
    fn note_in_use(&mut self, tokens: impl Iterator<Item = u32>) {
        let given = self.own_tokens;
        self.quarter = given / QUARTER;
        let cancelled = self.cancelled.iter().map(|&key| key as u32);
        let handles = self.handles.iter().map(|(_, handle)| handle.own);
        let all = tokens.chain(cancelled).chain(handles);
        let soon = all.filter(|&token| {
            let ahead = (token % Token::OWN).wrapping_sub(given) % Token::OWN;
            token >= Token::OWN && ahead > 0 && ahead <= 2 * QUARTER
        });
        self.in_use = soon.collect();
    }

    /// Notes a timer that its actor can cancel. Returns the token under which it is to wait.
    pub(super) fn add_handle(&mut self, actor: u32, token: Token, period: u64) -> Token {
        let own = self.own_token();
        self.handles.insert(actor, own.0, token, period);
        own
    }

    /// Forgets a timer that its actor can cancel. Whether it was still to come.
    pub(super) fn remove_handle(&mut self, actor: u32, own: Token) -> bool {
        self.handles.remove(actor, own.0)
    }

    /// The token and the period of a timer that is due and that its actor can cancel. One without a
    /// period is forgotten.
    #[inline]
    pub(super) fn handle_due(&mut self, actor: u32, own: u32) -> Option<(Token, u64)> {
        let handle = self.handles.due(actor, own)?;
        Some((handle.token, handle.period))
    }

    /// Forgets the timers of an actor that has ended.
    #[inline]
    pub(super) fn forget_handles(&mut self, actor: u32) {
        self.handles.forget(actor);
    }

    /// The timer of a wait is not needed any more.
    pub(in super::super) fn cancel(&mut self, actor: u32, token: Token) {
        self.cancelled.insert(key(actor, token.0));
    }

    pub(super) fn is_cancelled(&self, key: u64) -> bool {
        self.cancelled.contains(&key)
    }

    /// Whether the timer that is due was cancelled; it is over now.
    #[inline]
    pub(super) fn take_cancelled(&mut self, actor: u32, token: u32) -> bool {
        !self.cancelled.is_empty() && self.cancelled.remove(&key(actor, token))
    }

    /// Whether enough were cancelled that going through the wheel costs little for each, or tokens are to be looked
    /// for that are in use.
    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.cancelled.len() >= self.sweep_at || self.are_in_another_quarter()
    }

    /// Removes cancelled timers, between two windows; `elsewhere`: some may not be in the wheel.
    pub(super) fn sweep(&mut self, timers: &mut Wheel<Timer>, elsewhere: bool) {
        if self.cancelled.is_empty() {
            return;
        }
        let cancelled = &mut self.cancelled;
        let keep = |timer: &Timer| {
            timer.token < Token::OWN || !cancelled.remove(&key(timer.actor, timer.token))
        };
        self.sweep_at = timers.retain(keep).max(SWEEP_AT);
        if !elsewhere {
            // What is not in the wheel is nowhere.
            self.cancelled.clear();
            self.cancelled.shrink_to(self.sweep_at);
        }
    }

    /// Notes the waker that a combinator gave to a wait. What is returned is to be dropped.
    #[must_use = "dropping a waker is foreign code: done where no reference is held"]
    pub(in super::super) fn set_relay(&mut self, actor: u32, waker: Waker) -> Option<Waker> {
        self.relays.insert(actor, waker)
    }

    /// Whether any wait was given a waker by a combinator.
    #[inline(always)]
    pub(in super::super) fn has_relays(&self) -> bool {
        !self.relays.is_empty()
    }

    /// Takes all of them, by actor.
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
    /// Between two windows: sees which timers have tokens that will be given out next, if it is time to.
    pub(super) fn note_tokens_in_use(&mut self) {
        if !self.waits.are_in_another_quarter() {
            return;
        }
        let mut tokens: Vec<u32> = Vec::new();
        let timers =
            |timer: &Timer| tokens.extend((timer.token >= Token::OWN).then_some(timer.token));
        self.queues.timers.for_each(timers);
        let rest = self
            .rest
            .iter()
            .filter(|event| event.head.kind() == Kind::Timer);
        tokens.extend(rest.map(|event| event.head.cause.parent as u32));
        tokens.extend(self.held.iter().map(|&(_, key)| key as u32));
        let own = self.own.values().flatten();
        tokens.extend(own.map(|(token, _)| *token));
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
        let third = waits.own_token();
        waits.cancel(8, third);
        waits.own_tokens = Token::OWN - 2;
        assert!(waits.are_many());
        waits.note_in_use([second.0, 5].into_iter());
        assert!(!waits.are_many());
        let next: Vec<u32> = (0..3).map(|_| waits.own_token().0 % Token::OWN).collect();
        assert_eq!(next, [Token::OWN - 1, 0, 4]);
        // The next time round they are free.
        assert!(waits.remove_handle(7, first));
        assert!(waits.take_cancelled(8, third.0));
        waits.own_tokens = Token::OWN - 1;
        waits.note_in_use(std::iter::empty());
        assert_eq!(waits.own_token().0 % Token::OWN, 0);
        assert_eq!(waits.own_token(), first);
    }
}
