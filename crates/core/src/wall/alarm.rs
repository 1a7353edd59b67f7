//! The alarm that wakes one actor when its next timer is due.

use super::clock::Clock;
use super::threads;
use super::wakes::Wake;
use crate::contract::Time;
use std::task::Waker;

/// A pending wake-up of an actor; see the [module](self).
pub(super) enum Alarm {
    /// Wakes the actor's own thread, which is parked.
    Park,
    /// A wake-up by the clock thread, if one is pending.
    Clock(Option<Pending>),
}

/// A requested wake-up. It is cancelled only if it would be too late, because a spurious wake-up costs less than a new
/// request for every unused time-out.
pub(super) struct Pending {
    due: Time,
    wake: Wake,
    /// True if `wake` wakes the task that runs the actor, and not an intermediate task.
    is_task: bool,
}

impl Alarm {
    /// Requests a wake-up at `due`, unless a pending wake-up suffices. `task` returns the waker; it is called only if a
    /// wake-up is requested. `is_task` is true if the waker wakes the task that runs the actor.
    pub(super) fn set<M>(
        &mut self,
        clock: &Clock<M>,
        due: Time,
        now: Time,
        is_task: bool,
        task: impl FnOnce() -> Option<Waker>,
    ) {
        match self {
            Alarm::Park => {
                if let Some(task) = task() {
                    threads::wake_at(clock.instant(due), task);
                }
            }
            Alarm::Clock(pending) => {
                let will_do = |pending: &Pending| {
                    // A wake-up whose time has come is used up.
                    pending.is_task && is_task && now < pending.due && pending.due <= due
                };
                if pending.as_ref().is_some_and(will_do) {
                    return;
                }
                if let Some(pending) = pending.take()
                    && now < pending.due
                {
                    clock.cancel(pending.wake);
                }
                *pending = task().map(|task| Pending {
                    due,
                    wake: clock.wake_at(due, now, task),
                    is_task,
                });
            }
        }
    }

    /// True if the current time is needed to decide whether the pending alarm suffices.
    pub(super) fn needs_time(&self) -> bool {
        !matches!(self, Alarm::Clock(None))
    }

    /// Cancels the wake-up.
    pub(super) fn cancel<M>(&mut self, clock: &Clock<M>) {
        if let Alarm::Clock(pending) = self
            && let Some(pending) = pending.take()
        {
            clock.cancel(pending.wake);
        }
    }
}
