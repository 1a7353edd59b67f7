//! What a shard notes of waits: tokens, timers that are over, wakers of combinators.

use super::timer::{Timer, key};
use crate::Token;
use crate::virtual_time::wheel::Wheel;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::task::Waker;

/// With this many cancelled timers, or more, the wheel is gone through.
const SWEEP_AT: usize = 1024;

/// See the [module](self).
pub(in super::super) struct Waits {
    own_tokens: u32,
    /// Timers of the library's own waits that are over, and that have not been removed yet.
    cancelled: HashSet<u64>,
    sweep_at: usize,
    /// Wakers that combinators gave to waits, by actor.
    relays: HashMap<u32, Waker>,
    /// Timers that their actors can cancel.
    handles: HashMap<u32, Vec<Handle>>,
}

/// A timer that its actor can cancel.
struct Handle {
    /// Of the library's own, under which it waits.
    own: Token,
    /// The actor's.
    token: Token,
    period: Option<u64>,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            own_tokens: 0,
            cancelled: HashSet::new(),
            sweep_at: SWEEP_AT,
            relays: HashMap::new(),
            handles: HashMap::new(),
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
    period: Option<u64>,
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
        let handles = self.handles.iter().flat_map(|(&actor, handles)| {
            handles.iter().map(move |handle| SavedHandle {
                actor,
                own: handle.own.0,
                token: handle.token.0,
                period: handle.period,
            })
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
            cancelled: saved.cancelled.iter().copied().collect(),
            ..Waits::default()
        };
        for handle in &saved.handles {
            let handles = waits.handles.entry(handle.actor).or_default();
            handles.push(Handle {
                own: Token(handle.own),
                token: Token(handle.token),
                period: handle.period,
            });
        }
        waits
    }
}

impl Waits {
    /// A token for one of the library's own waits. No actor can see it.
    pub(in super::super) fn own_token(&mut self) -> Token {
        self.own_tokens = (self.own_tokens + 1) % Token::OWN;
        Token(Token::OWN | self.own_tokens)
    }

    /// Notes a timer that its actor can cancel. Returns the token under which it is to wait.
    pub(super) fn add_handle(&mut self, actor: u32, token: Token, period: Option<u64>) -> Token {
        let own = self.own_token();
        let handles = self.handles.entry(actor).or_default();
        handles.push(Handle { own, token, period });
        own
    }

    /// Forgets a timer that its actor can cancel. Whether it was still to come.
    pub(super) fn remove_handle(&mut self, actor: u32, own: Token) -> bool {
        let Some(handles) = self.handles.get_mut(&actor) else {
            return false;
        };
        let known = handles.iter().position(|handle| handle.own == own);
        if let Some(place) = known {
            handles.swap_remove(place);
            if handles.is_empty() {
                self.handles.remove(&actor);
            }
        }
        known.is_some()
    }

    /// The token and the period of a timer that is due and that its actor can cancel. One without a
    /// period is forgotten.
    #[inline]
    pub(super) fn handle_due(&mut self, actor: u32, own: u32) -> Option<(Token, Option<u64>)> {
        if self.handles.is_empty() {
            return None;
        }
        let handles = self.handles.get(&actor)?;
        let handle = handles.iter().find(|handle| handle.own.0 == own)?;
        let (token, period) = (handle.token, handle.period);
        if period.is_none() {
            self.remove_handle(actor, Token(own));
        }
        Some((token, period))
    }

    /// Forgets the timers of an actor that has ended.
    #[inline]
    pub(super) fn forget_handles(&mut self, actor: u32) {
        if !self.handles.is_empty() {
            self.forget_its_handles(actor);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_its_handles(&mut self, actor: u32) {
        self.handles.remove(&actor);
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

    /// Whether enough were cancelled that going through the wheel costs little for each.
    pub(super) fn are_many(&self) -> bool {
        self.cancelled.len() >= self.sweep_at
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
