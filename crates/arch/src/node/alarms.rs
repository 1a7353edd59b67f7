//! Alarms of an instance, which share one timer.
//!
//! Most time-outs never fire, because the answer comes first. Alarms are in a heap, and an instance sets a timer only
//! for the first of them, so a call costs no separate event.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Alarms with their subjects.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Ord + Deserialize<'de>"))]
pub(super) struct Alarms<T> {
    heap: BinaryHeap<Reverse<(u64, T)>>,
    /// The due time of the current timer.
    timer: Option<u64>,
}

impl<T: Ord> Default for Alarms<T> {
    fn default() -> Self {
        Alarms {
            heap: BinaryHeap::new(),
            timer: None,
        }
    }
}

impl<T: Ord> Alarms<T> {
    /// Sets an alarm. Returns the delay of a new timer, if one is needed.
    pub(super) fn set(&mut self, due: u64, what: T, now: u64) -> Option<u64> {
        self.heap.push(Reverse((due, what)));
        if self.timer.is_some_and(|timer| timer <= due) {
            return None;
        }
        self.timer = Some(due);
        Some(due.saturating_sub(now))
    }

    /// Removes the next alarm that is due by `now`, and returns its subject. Alarms for which `matters` is false
    /// are obsolete and are discarded.
    pub(super) fn next(&mut self, now: u64, matters: impl Fn(&T) -> bool) -> Option<T> {
        while let Some(Reverse((due, what))) = self.heap.peek() {
            if *due > now && matters(what) {
                return None;
            }
            let Some(Reverse((due, what))) = self.heap.pop() else {
                break;
            };
            if due <= now && matters(&what) {
                return Some(what);
            }
        }
        None
    }

    /// Returns the delay of a new timer, if one is needed, after all due alarms were handled.
    pub(super) fn next_timer(&mut self, now: u64) -> Option<u64> {
        if self.timer.is_some_and(|timer| timer > now) {
            return None;
        }
        self.timer = self.heap.peek().map(|Reverse((due, _))| *due);
        self.timer.map(|due| due.saturating_sub(now))
    }

    /// Removes all alarms.
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_timer_serves_many_alarms() {
        let mut alarms = Alarms::default();
        assert_eq!(alarms.set(100, 'a', 0), Some(100));
        assert_eq!(alarms.set(150, 'b', 0), None, "there is an earlier timer");
        assert_eq!(alarms.set(50, 'c', 0), Some(50));
        assert_eq!(alarms.set(120, 'd', 0), None);
        assert_eq!(alarms.next(50, |_| true), Some('c'));
        assert_eq!(alarms.next(50, |_| true), None);
        assert_eq!(alarms.next_timer(50), Some(50));
        // Obsolete alarms are removed, whether they are due or not.
        assert_eq!(alarms.next(100, |&what| what == 'b'), None);
        assert_eq!(alarms.next_timer(100), Some(50));
        assert_eq!(alarms.next(150, |_| true), Some('b'));
        assert_eq!(alarms.next_timer(150), None);
    }
}
