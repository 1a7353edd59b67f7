//! Timers that their actors can cancel.

use crate::Token;
use crate::virtual_time::table::Table;
use std::collections::VecDeque;

/// The timers of each actor that it can cancel. Whatever is asked about one costs the same, however many there are, if
/// timers come or are cancelled in the order in which they were set, and O(log n) if not.
#[derive(Default)]
pub(super) struct Handles {
    actors: Table<u32, Timers>,
}

/// The timers of one actor, in the order of the library's tokens. Those that are over leave when they are the first,
/// or make up half of all.
#[derive(Default)]
struct Timers {
    timers: VecDeque<Handle>,
    over: usize,
}

/// A timer that its actor can cancel.
#[derive(Clone, Copy)]
pub(super) struct Handle {
    /// The library's token, under which it waits.
    pub(super) own: u32,
    /// The actor's.
    pub(super) token: Token,
    /// In nanoseconds; 0: it comes once.
    pub(super) period: u64,
    /// It has come, or was cancelled.
    over: bool,
}

impl Timers {
    fn find(&mut self, own: u32) -> Option<&mut Handle> {
        let first = self.timers.front()?;
        let at = match first.own == own {
            true => 0,
            false => self
                .timers
                .binary_search_by_key(&own, |handle| handle.own)
                .ok()?,
        };
        self.timers.get_mut(at).filter(|handle| !handle.over)
    }

    /// A timer is over.
    fn remove(&mut self, own: u32) -> Option<Handle> {
        let handle = self.find(own)?;
        handle.over = true;
        let handle = *handle;
        self.over += 1;
        while self.timers.pop_front_if(|first| first.over).is_some() {
            self.over -= 1;
        }
        if 2 * self.over >= self.timers.len() {
            self.timers.retain(|handle| !handle.over);
            self.over = 0;
        }
        Some(handle)
    }
}

impl Handles {
    /// Adds a timer.
    pub(super) fn insert(&mut self, actor: u32, own: u32, token: Token, period: u64) {
        let timers = &mut self.actors.entry(actor).or_default().timers;
        let handle = Handle {
            own,
            token,
            period,
            over: false,
        };
        match timers.back() {
            // Tokens begin again after 2^31.
            Some(last) if last.own > own => {
                let at = timers.partition_point(|handle| handle.own < own);
                timers.insert(at, handle);
            }
            _ => timers.push_back(handle),
        }
    }

    /// A timer that is due: it is over, unless it is periodic.
    #[inline]
    pub(super) fn due(&mut self, actor: u32, own: u32) -> Option<Handle> {
        if self.actors.is_empty() {
            return None;
        }
        let timers = self.actors.get_mut(&actor)?;
        let handle = *timers.find(own)?;
        if handle.period == 0 {
            timers.remove(own);
            if timers.timers.is_empty() {
                self.actors.remove(&actor);
            }
        }
        Some(handle)
    }

    /// Removes a timer. Returns whether it was still to come.
    pub(super) fn remove(&mut self, actor: u32, own: u32) -> bool {
        let Some(timers) = self.actors.get_mut(&actor) else {
            return false;
        };
        let known = timers.remove(own).is_some();
        if timers.timers.is_empty() {
            self.actors.remove(&actor);
        }
        known
    }

    /// Removes the timers of an actor that has ended.
    #[inline]
    pub(super) fn forget(&mut self, actor: u32) {
        if !self.actors.is_empty() {
            self.forget_its(actor);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_its(&mut self, actor: u32) {
        self.actors.remove(&actor);
    }

    /// All timers with their actors, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Handle)> {
        let all = self.actors.iter();
        let all = all.flat_map(|(&actor, timers)| timers.timers.iter().map(move |it| (actor, it)));
        all.filter(|(_, handle)| !handle.over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owns(handles: &Handles) -> Vec<u32> {
        handles.iter().map(|(_, handle)| handle.own).collect()
    }

    #[test]
    fn timers_are_found_in_any_order_and_leave_no_memory() {
        let mut handles = Handles::default();
        for own in [10, 20, 30, 40, 5, 50, 15] {
            handles.insert(1, own, Token(own), u64::from(own == 30));
        }
        assert_eq!(owns(&handles), [5, 10, 15, 20, 30, 40, 50]);
        assert!(handles.remove(1, 20) && !handles.remove(1, 20));
        assert!(!handles.remove(2, 10));
        assert_eq!(handles.due(1, 15).map(|due| due.token), Some(Token(15)));
        assert!(handles.due(1, 15).is_none(), "it came once");
        assert_eq!(handles.due(1, 30).map(|due| due.period), Some(1));
        assert_eq!(handles.due(1, 30).map(|due| due.period), Some(1));
        assert_eq!(owns(&handles), [5, 10, 30, 40, 50]);
        for own in [50, 40, 30, 5] {
            assert!(handles.remove(1, own), "{own}");
        }
        assert_eq!(owns(&handles), [10]);
        assert_eq!(handles.actors[&1].timers.len(), 1);
        assert!(handles.remove(1, 10));
        assert!(handles.actors.is_empty());
        handles.insert(1, 7, Token(7), 0);
        handles.forget(1);
        assert!(handles.actors.is_empty() && handles.due(1, 7).is_none());
    }
}
