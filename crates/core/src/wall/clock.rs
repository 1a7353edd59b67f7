//! The time of a run, and what is to happen at a later time.
//!
//! The thread that called [`run`](crate::run()) keeps the clock: it delivers delayed messages,
//! wakes the actors of executors that have no timers of their own, and in between looks every few
//! milliseconds whether the run was cut, has gone past its end, or stands still.

use super::letter::Letter;
use crate::contract::{Addr, Time};
use crate::sync::lock;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How often the keeper looks after the run.
const LOOK: Duration = Duration::from_millis(4);

/// See the [module](self).
pub(crate) struct Clock<M> {
    start: Instant,
    agenda: Mutex<Agenda<M>>,
    changed: Condvar,
}

struct Agenda<M> {
    deadlines: BinaryHeap<Deadline<M>>,
    order: u64,
    /// How many of them are messages.
    delayed: u64,
    over: bool,
}

struct Deadline<M> {
    due: Time,
    order: u64,
    what: What<M>,
}

enum What<M> {
    Wake(Waker),
    Deliver(Addr, Letter<M>),
}

impl<M> Clock<M> {
    pub(crate) fn new() -> Clock<M> {
        let agenda = Agenda {
            deadlines: BinaryHeap::new(),
            order: 0,
            delayed: 0,
            over: false,
        };
        Clock {
            start: Instant::now(),
            agenda: Mutex::new(agenda),
            changed: Condvar::new(),
        }
    }

    /// The time of the run now.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO.after(self.start.elapsed())
    }

    /// A time of the run as the system counts it; far in the future if it cannot.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
        self.start
            .checked_add(time.elapsed())
            .unwrap_or_else(|| self.start + FAR)
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda<M>> {
        lock(&self.agenda)
    }

    fn add(&self, due: Time, what: What<M>) {
        let mut agenda = self.agenda();
        if agenda.over {
            return;
        }
        let earliest = agenda.deadlines.peek().is_none_or(|first| due < first.due);
        let order = agenda.order;
        agenda.order += 1;
        agenda.delayed += u64::from(matches!(what, What::Deliver(..)));
        agenda.deadlines.push(Deadline { due, order, what });
        drop(agenda);
        if earliest {
            self.changed.notify_one();
        }
    }

    /// Wakes this task at this time.
    pub(crate) fn wake_at(&self, due: Time, task: Waker) {
        self.add(due, What::Wake(task));
    }

    /// Delivers this letter at this time.
    pub(crate) fn deliver_at(&self, due: Time, to: Addr, letter: Letter<M>) {
        self.add(due, What::Deliver(to, letter));
    }

    /// How many messages are still to be delivered.
    pub(crate) fn delayed(&self) -> u64 {
        self.agenda().delayed
    }

    /// Lets [`Clock::keep`] return.
    pub(crate) fn stop(&self) {
        let mut agenda = self.agenda();
        agenda.over = true;
        let left = std::mem::take(&mut agenda.deadlines);
        drop(agenda);
        self.changed.notify_all();
        drop(left);
    }

    /// Does at its time what is to be done, until [`Clock::stop`]. Every few milliseconds it calls
    /// `look`.
    pub(crate) fn keep(&self, look: impl Fn(Time), deliver: impl Fn(Addr, Letter<M>)) {
        let mut next_look = Time::ZERO;
        loop {
            let now = self.now();
            if now >= next_look {
                look(now);
                next_look = now.after(LOOK);
            }
            let mut agenda = self.agenda();
            if agenda.over {
                return;
            }
            let due = agenda
                .deadlines
                .peek()
                .map_or(Time::MAX, |deadline| deadline.due);
            if due > now {
                let pause = due.min(next_look).since(now);
                drop(self.changed.wait_timeout(agenda, pause));
                continue;
            }
            let Some(deadline) = agenda.deadlines.pop() else {
                continue;
            };
            drop(agenda);
            match deadline.what {
                What::Wake(task) => task.wake(),
                What::Deliver(to, letter) => {
                    deliver(to, letter);
                    self.agenda().delayed -= 1;
                }
            }
        }
    }
}

impl<M> Ord for Deadline<M> {
    /// The earliest is the greatest, as `BinaryHeap` gives out the greatest.
    fn cmp(&self, other: &Deadline<M>) -> Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl<M> PartialOrd for Deadline<M> {
    fn partial_cmp(&self, other: &Deadline<M>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> PartialEq for Deadline<M> {
    fn eq(&self, other: &Deadline<M>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<M> Eq for Deadline<M> {}
