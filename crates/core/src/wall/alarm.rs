//! What wakes one actor when its next timer is due.

use super::clock::Clock;
use super::threads;
use super::wakes::Wake;
use crate::contract::Time;
use std::task::Waker;

/// See the [module](self).
pub(super) enum Alarm {
    /// The actor's own thread, which parks no longer.
    Park,
    /// The keeper of the clock.
    Clock(Option<Pending>),
}

/// A wake-up that was asked for. One that comes too early costs less than a new request for every time-out
/// that was not needed, so only one that comes too late is called off.
pub(super) struct Pending {
    due: Time,
    wake: Wake,
    /// It wakes the task that runs the actor, and not something between the two.
    is_task: bool,
}

impl Alarm {
    /// It is `now`. `task` will be woken at a later time or before; what that is, and whether it is the
    /// task that runs the actor, is asked when it must be known.
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
                    // One that was due is gone.
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

    /// Whether what is pending can only be judged by who knows the time.
    pub(super) fn needs_time(&self) -> bool {
        !matches!(self, Alarm::Clock(None))
    }

    /// Nothing is to be woken any more.
    pub(super) fn cancel<M>(&mut self, clock: &Clock<M>) {
        if let Alarm::Clock(pending) = self
            && let Some(pending) = pending.take()
        {
            clock.cancel(pending.wake);
        }
    }
}
