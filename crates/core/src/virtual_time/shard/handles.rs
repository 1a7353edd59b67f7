//! Timers that their actors can cancel.

use crate::Token;
use crate::virtual_time::table::Table;
use std::collections::VecDeque;

/// The cancellable timers of a shard's actors.
///
/// The timers of the most recently used actor are found without a table lookup. A timer is found at once if an actor's
/// timers fire or are cancelled in the order in which they were set, and otherwise in O(log n).
#[derive(Default)]
pub(super) struct Handles {
    /// The index in `lists` of each actor's timers.
    index: Table<u32, u32>,
    lists: Vec<Timers>,
    /// The lists that no actor uses.
    free: Vec<u32>,
    recent: Recent,
    /// The number of cancelled timers that are still in the wheel.
    cancelled: usize,
}

/// The most recently used actor, and its list.
#[derive(Clone, Copy)]
struct Recent {
    actor: u32,
    list: u32,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            actor: NOBODY,
            list: 0,
        }
    }
}

/// An address that no actor has.
const NOBODY: u32 = u32::MAX;

/// The number of lists that stay allocated when no actor has timers.
const LEAST: usize = 64;

/// The timers of one actor, ordered by their internal tokens. Finished timers are removed when they are at the front of
/// the list, or make up half of it.
#[derive(Default)]
struct Timers {
    timers: VecDeque<Handle>,
    gone: usize,
}

/// A timer that its actor can cancel.
#[derive(Clone, Copy)]
pub(super) struct Handle {
    /// The internal token under which the timer is in the wheel.
    pub(super) own: u32,
    /// The actor's token.
    pub(super) token: Token,
    /// The period in nanoseconds; 0 if the timer fires only once.
    pub(super) period: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The timer has not fired yet.
    Pending,
    /// The timer was cancelled, but is still in the wheel.
    Cancelled,
    /// The timer has fired, or was removed from the wheel.
    Gone,
}

/// The outcome of a due timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum TimerOutcome {
    /// The timer fires with its actor's token. If the period is not 0, it fires again after the period.
    Fires { token: Token, period: u64 },
    /// The timer was cancelled.
    Cancelled,
    /// The timer is unknown, because its actor has ended.
    Unknown,
}

impl Timers {
    #[inline(always)]
    fn find(&mut self, own: u32) -> Option<&mut Handle> {
        let first = self.timers.front()?;
        // The timer's index if its actor's tokens have been consecutive since the first timer, and no timer has been
        // removed.
        let near = own.wrapping_sub(first.own) as usize;
        let at = match self.timers.get(near) {
            Some(handle) if handle.own == own => near,
            _ => self.search(own)?,
        };
        self.timers.get_mut(at)
    }

    #[inline(never)]
    fn search(&self, own: u32) -> Option<usize> {
        let found = self.timers.binary_search_by_key(&own, |handle| handle.own);
        found.ok()
    }

    /// Removes the timer with this token.
    #[inline(always)]
    fn leave(&mut self, own: u32) {
        if self.timers.front().is_some_and(|first| first.own == own) {
            self.pop_first();
        } else if let Some(handle) = self.find(own) {
            handle.state = State::Gone;
            self.gone += 1;
            self.tidy();
        }
    }

    #[inline(always)]
    fn pop_first(&mut self) {
        self.timers.pop_front();
        if self.gone > 0 {
            self.tidy();
        }
    }

    #[inline(never)]
    fn tidy(&mut self) {
        let is_gone = |first: &mut Handle| first.state == State::Gone;
        while self.timers.pop_front_if(is_gone).is_some() {
            self.gone -= 1;
        }
        if self.gone > 0 && 2 * self.gone >= self.timers.len() {
            self.timers.retain(|handle| handle.state != State::Gone);
            self.gone = 0;
        }
    }
}

impl Handles {
    /// Returns the list of an actor that has one.
    #[inline(always)]
    fn of(&mut self, actor: u32) -> Option<&mut Timers> {
        if self.recent.actor != actor {
            self.turn_to(actor)?;
        }
        Some(&mut self.lists[self.recent.list as usize])
    }

    /// Makes an actor's list the recent list, if it has one.
    #[inline(never)]
    fn turn_to(&mut self, actor: u32) -> Option<()> {
        let list = *self.index.get(&actor)?;
        self.leave_recent();
        self.recent = Recent { actor, list };
        Some(())
    }

    /// Stops using the recent list; an empty list is returned to the free lists.
    fn leave_recent(&mut self) {
        let Recent { actor, list } = std::mem::take(&mut self.recent);
        if actor != NOBODY && self.lists[list as usize].timers.is_empty() {
            self.index.remove(&actor);
            self.release(list);
        }
    }

    fn release(&mut self, list: u32) {
        let timers = &mut self.lists[list as usize];
        if timers.timers.capacity() > LEAST {
            *timers = Timers::default();
        }
        self.free.push(list);
        if self.free.len() == self.lists.len() && self.lists.len() > LEAST {
            self.lists = Vec::new();
            self.free = Vec::new();
        }
    }

    /// Assigns a list to an actor, if it has none, and makes it the recent list.
    #[cold]
    #[inline(never)]
    fn add_list(&mut self, actor: u32) {
        if self.turn_to(actor).is_some() {
            return;
        }
        self.leave_recent();
        let list = self.free.pop().unwrap_or_else(|| {
            self.lists.push(Timers::default());
            self.lists.len() as u32 - 1
        });
        self.index.insert(actor, list);
        self.recent = Recent { actor, list };
    }

    /// Adds a timer.
    #[inline]
    pub(super) fn insert(&mut self, actor: u32, own: u32, token: Token, period: u64) {
        let state = State::Pending;
        let handle = Handle {
            own,
            token,
            period,
            state,
        };
        self.add(actor, handle);
    }

    /// Adds a timer that was cancelled.
    #[cfg(feature = "serde")]
    pub(super) fn insert_cancelled(&mut self, actor: u32, own: u32) {
        let (token, period, state) = (Token(0), 0, State::Cancelled);
        let handle = Handle {
            own,
            token,
            period,
            state,
        };
        self.cancelled += 1;
        self.add(actor, handle);
    }

    #[inline(always)]
    fn add(&mut self, actor: u32, handle: Handle) {
        if self.recent.actor != actor {
            self.add_list(actor);
        }
        let timers = &mut self.lists[self.recent.list as usize].timers;
        match timers.back() {
            // Token numbers wrap around after 2^29, so an earlier number may come later.
            Some(last) if last.own > handle.own => {
                let at = timers.partition_point(|other| other.own < handle.own);
                timers.insert(at, handle);
            }
            _ => timers.push_back(handle),
        }
    }

    /// Handles a due timer: it is removed, unless it is periodic and was not cancelled.
    #[inline]
    pub(super) fn due(&mut self, actor: u32, own: u32) -> TimerOutcome {
        let Some(timers) = self.of(actor) else {
            return TimerOutcome::Unknown;
        };
        let first = timers.timers.front();
        // The first timer of a list is never [`State::Gone`].
        let Some(&Handle {
            token,
            period,
            state,
            ..
        }) = first.filter(|first| first.own == own)
        else {
            return self.another_due(own);
        };
        if state == State::Cancelled {
            timers.pop_first();
            self.cancelled -= 1;
            return TimerOutcome::Cancelled;
        }
        if period == 0 {
            timers.pop_first();
        }
        TimerOutcome::Fires { token, period }
    }

    /// Handles a due timer of the recent list that is not the first timer of the list.
    #[inline(never)]
    fn another_due(&mut self, own: u32) -> TimerOutcome {
        let timers = &mut self.lists[self.recent.list as usize];
        let Some(&mut Handle {
            token,
            period,
            state,
            ..
        }) = timers.find(own)
        else {
            return TimerOutcome::Unknown;
        };
        if period == 0 || state == State::Cancelled {
            timers.leave(own);
        }
        match state {
            State::Pending => TimerOutcome::Fires { token, period },
            State::Cancelled => {
                self.cancelled -= 1;
                TimerOutcome::Cancelled
            }
            State::Gone => TimerOutcome::Unknown,
        }
    }

    /// Cancels a timer. Returns true if it was still going to fire.
    #[inline]
    pub(super) fn cancel(&mut self, actor: u32, own: u32) -> bool {
        let Some(handle) = self.of(actor).and_then(|timers| timers.find(own)) else {
            return false;
        };
        if handle.state != State::Pending {
            return false;
        }
        handle.state = State::Cancelled;
        self.cancelled += 1;
        true
    }

    /// True if a timer was cancelled and is still in the wheel.
    pub(super) fn is_cancelled(&self, actor: u32, own: u32) -> bool {
        let Some(&list) = self.index.get(&actor) else {
            return false;
        };
        let timers = &self.lists[list as usize];
        let found = timers.search(own);
        found.is_some_and(|at| timers.timers[at].state == State::Cancelled)
    }

    /// Removes a timer if it was cancelled. Returns true if it was.
    pub(super) fn take_cancelled(&mut self, actor: u32, own: u32) -> bool {
        let Some(timers) = self.of(actor) else {
            return false;
        };
        let cancelled = timers
            .find(own)
            .is_some_and(|handle| handle.state == State::Cancelled);
        if cancelled {
            timers.leave(own);
            self.cancelled -= 1;
        }
        cancelled
    }

    /// Returns the number of cancelled timers that are still in the wheel.
    #[inline(always)]
    pub(super) fn cancelled(&self) -> usize {
        self.cancelled
    }

    /// Removes all cancelled timers from the lists, after they were removed from the wheel.
    pub(super) fn clear_cancelled(&mut self) {
        if self.cancelled == 0 {
            return;
        }
        self.cancelled = 0;
        self.leave_recent();
        for timers in &mut self.lists {
            timers
                .timers
                .retain(|handle| handle.state == State::Pending);
            timers.gone = 0;
        }
        let lists = &self.lists;
        let is_empty = |_: &u32, list: &mut u32| lists[*list as usize].timers.is_empty();
        let empty: Vec<(u32, u32)> = self.index.extract_if(is_empty).collect();
        empty.into_iter().for_each(|(_, list)| self.release(list));
    }

    /// Removes the timers of an actor that has ended. `cancelled` is called with each of them that was cancelled.
    #[inline]
    pub(super) fn forget(&mut self, actor: u32, cancelled: impl FnMut(u32)) {
        if !self.index.is_empty() {
            self.forget_its(actor, cancelled);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_its(&mut self, actor: u32, mut cancelled: impl FnMut(u32)) {
        let Some(list) = self.index.remove(&actor) else {
            return;
        };
        if self.recent.actor == actor {
            self.recent = Recent::default();
        }
        let Timers { timers, gone } = &mut self.lists[list as usize];
        for handle in timers
            .drain(..)
            .filter(|handle| handle.state == State::Cancelled)
        {
            self.cancelled -= 1;
            cancelled(handle.own);
        }
        *gone = 0;
        self.release(list);
    }

    /// Iterates over all pending timers with their actors, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Handle)> {
        self.iter_of(State::Pending)
    }

    /// Iterates over all cancelled timers that are still in the wheel.
    pub(super) fn iter_cancelled(&self) -> impl Iterator<Item = (u32, &Handle)> {
        self.iter_of(State::Cancelled)
    }

    fn iter_of(&self, state: State) -> impl Iterator<Item = (u32, &Handle)> {
        let all = self.index.iter();
        let all = all.flat_map(|(&actor, &list)| {
            let timers = &self.lists[list as usize].timers;
            timers.iter().map(move |handle| (actor, handle))
        });
        all.filter(move |(_, handle)| handle.state == state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owns(handles: &Handles) -> Vec<u32> {
        handles.iter().map(|(_, handle)| handle.own).collect()
    }

    fn is_empty(handles: &mut Handles) -> bool {
        handles.leave_recent();
        handles.index.is_empty()
            && handles.cancelled == 0
            && handles.free.len() == handles.lists.len()
    }

    const ONCE: TimerOutcome = TimerOutcome::Fires {
        token: Token(15),
        period: 0,
    };

    #[test]
    fn timers_are_found_in_any_order_and_leave_no_memory() {
        let mut handles = Handles::default();
        for own in [10, 20, 30, 40, 5, 50, 15] {
            handles.insert(1, own, Token(own), u64::from(own == 30));
        }
        assert_eq!(owns(&handles), [5, 10, 15, 20, 30, 40, 50]);
        assert!(handles.cancel(1, 20) && !handles.cancel(1, 20));
        assert!(!handles.cancel(2, 10));
        assert_eq!(handles.due(1, 15), ONCE);
        assert_eq!(handles.due(1, 15), TimerOutcome::Unknown, "it fires once");
        for _ in 0..2 {
            let (token, period) = (Token(30), 1);
            assert_eq!(handles.due(1, 30), TimerOutcome::Fires { token, period });
        }
        assert_eq!(owns(&handles), [5, 10, 30, 40, 50]);
        assert!(handles.is_cancelled(1, 20) && !handles.is_cancelled(1, 30));
        assert_eq!(handles.due(1, 20), TimerOutcome::Cancelled);
        assert_eq!(handles.due(1, 20), TimerOutcome::Unknown);
        for own in [50, 40, 30, 5] {
            assert!(handles.cancel(1, own), "{own}");
            assert!(handles.take_cancelled(1, own) && !handles.take_cancelled(1, own));
        }
        assert_eq!(owns(&handles), [10]);
        assert_eq!(
            handles.due(1, 10),
            TimerOutcome::Fires {
                token: Token(10),
                period: 0
            }
        );
        assert!(is_empty(&mut handles));
        handles.insert(1, 7, Token(7), 0);
        handles.insert(1, 8, Token(8), 0);
        handles.cancel(1, 8);
        let mut cancelled = Vec::new();
        handles.forget(1, |own| cancelled.push(own));
        assert_eq!(cancelled, [8]);
        assert!(is_empty(&mut handles) && handles.due(1, 7) == TimerOutcome::Unknown);
    }

    #[test]
    fn timers_of_many_actors_are_distinguished_and_their_lists_used_again() {
        let mut handles = Handles::default();
        for round in 0..3 {
            for actor in 0..100 {
                handles.insert(actor, 10 * round + 1, Token(actor), 0);
                handles.insert(actor, 10 * round + 2, Token(actor), 0);
            }
            for actor in (0..100).rev() {
                assert!(handles.cancel(actor, 10 * round + 2));
                let token = Token(actor);
                let due = handles.due(actor, 10 * round + 1);
                assert_eq!(due, TimerOutcome::Fires { token, period: 0 });
            }
            assert_eq!(handles.cancelled(), 100);
            handles.clear_cancelled();
            assert!(is_empty(&mut handles), "in round {round}");
            assert!(handles.lists.len() <= 100);
        }
    }
}
