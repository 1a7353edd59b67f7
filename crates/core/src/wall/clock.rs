//! The clock of a run, with its scheduled work.
//!
//! The thread that called [`run`](crate::run()) keeps the clock: it delivers delayed messages, wakes the
//! actors of executors without timers, and checks every few milliseconds whether the run was cancelled, is
//! past its end, or is deadlocked.

use super::clock_waiter::ClockWaiter;
use super::mailbox_entry::MailboxEntry;
use super::wakes::{Wake, Wakes};
use crate::contract::{Addr, Time};
use crate::sync::lock;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The interval at which the clock thread checks the state of the run.
const LOOK: Duration = Duration::from_millis(4);

/// The number of messages that are delivered between two such checks.
const AT_ONCE: usize = 256;

/// The clock of a run; see the [module](self).
pub(crate) struct Clock<M> {
    start: Instant,
    waiter: ClockWaiter,
    wakes: Wakes,
    agenda: Mutex<Agenda<M>>,
}

/// The messages to deliver later.
struct Agenda<M> {
    deadlines: BinaryHeap<Deadline<M>>,
    order: u64,
    /// The number of delayed messages, including one that is being delivered.
    delayed: u64,
    over: bool,
}

struct Deadline<M> {
    due: Time,
    order: u64,
    to: Addr,
    entry: MailboxEntry<M>,
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
            waiter: ClockWaiter::new(),
            wakes: Wakes::new(),
            agenda: Mutex::new(agenda),
        }
    }

    /// Returns the current time of the run.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO.after(self.start.elapsed())
    }

    /// Converts a time of the run to a time of the system; far in the future if it cannot be represented.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
        self.start
            .checked_add(time.elapsed())
            .unwrap_or_else(|| self.start + FAR)
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda<M>> {
        lock(&self.agenda)
    }

    /// Wakes a task at the time `due`; `now` is the current time.
    pub(crate) fn wake_at(&self, due: Time, now: Time, task: Waker) -> Wake {
        let wake = self.wakes.add(due, now, task);
        self.waiter.notify(due);
        wake
    }

    /// Cancels a wake-up, which may already have happened.
    pub(crate) fn cancel(&self, wake: Wake) {
        self.wakes.cancel(wake);
    }

    /// Schedules the delivery of this message at this time.
    pub(crate) fn deliver_at(&self, due: Time, to: Addr, entry: MailboxEntry<M>) {
        let mut agenda = self.agenda();
        if agenda.over {
            return;
        }
        let order = agenda.order;
        agenda.order += 1;
        agenda.delayed += 1;
        agenda.deadlines.push(Deadline {
            due,
            order,
            to,
            entry,
        });
        drop(agenda);
        self.waiter.notify(due);
    }

    /// Returns the number of messages that are still to be delivered.
    pub(crate) fn delayed(&self) -> u64 {
        self.agenda().delayed
    }

    /// Makes [`Clock::keep`] return. Returns the undelivered messages.
    pub(crate) fn stop(&self) -> impl Iterator<Item = (Addr, MailboxEntry<M>)> + use<M> {
        let mut agenda = self.agenda();
        agenda.over = true;
        let left = std::mem::take(&mut agenda.deadlines);
        drop(agenda);
        self.waiter.notify(Time::ZERO);
        self.wakes.clear();
        left.into_iter()
            .map(|Deadline { to, entry, .. }| (to, entry))
    }

    /// Does the scheduled work when it is due, until [`Clock::stop`]. Calls `look` every few milliseconds.
    pub(crate) fn run(&self, look: impl Fn(Time), deliver: impl Fn(Addr, MailboxEntry<M>)) {
        let mut next_look = Time::ZERO;
        let mut tasks = Vec::new();
        loop {
            let now = self.now();
            if now >= next_look {
                look(now);
                next_look = now.after(LOOK);
            }
            self.waiter.look();
            let next = self.wakes.take_due(now, &mut tasks);
            tasks.drain(..).for_each(Waker::wake);
            let Ok(first) = self.deliver_due(now, &deliver) else {
                return;
            };
            let until = first.into_iter().chain(next).fold(next_look, Time::min);
            self.waiter.sleep(until, until.since(self.now()));
        }
    }

    /// Delivers due messages, and returns the time of the next one; an error if the clock was stopped.
    fn deliver_due(
        &self,
        now: Time,
        deliver: impl Fn(Addr, MailboxEntry<M>),
    ) -> Result<Option<Time>, ClockStopped> {
        // Delivers a limited number of messages, because the clock thread has other work.
        for _ in 0..AT_ONCE {
            let mut agenda = self.agenda();
            if agenda.over {
                return Err(ClockStopped);
            }
            let first = agenda.deadlines.peek().map(|first| first.due);
            if first.is_none_or(|due| due > now) {
                return Ok(first);
            }
            let deadline = agenda.deadlines.pop();
            drop(agenda);
            if let Some(Deadline { to, entry, .. }) = deadline {
                deliver(to, entry);
                self.agenda().delayed -= 1;
            }
        }
        Ok(Some(now))
    }
}

/// The error that the clock was stopped.
struct ClockStopped;

impl<M> Ord for Deadline<M> {
    /// Orders deadlines in reverse, because `BinaryHeap` returns the greatest element first.
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
