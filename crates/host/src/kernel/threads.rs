//! The threads of a host's program. Only the thread that has the baton runs; all others wait for the baton.
//!
//! The next thread is drawn from the ready ones with the host's random numbers. If no thread is ready, the current
//! thread ends the step and serves the next commands of the simulation ([`next_thread`]).

use super::commands::next_thread;
use super::handlers;
use super::scheduler::State;
use super::state::THREAD;
use super::{Kernel, On, Wait, Waking, with};
use crate::raw::Signal;

/// The signal that gives the baton to the first thread of the process, when a thread of the program ends.
static MACHINE: Signal = Signal::new();

impl Kernel {
    /// True if another thread should run first, chosen at random by the rate of preemption.
    pub(super) fn should_preempt(&mut self) -> bool {
        let rate = self.world.preemption;
        rate > 0 && !self.scheduler.ready.is_empty() && self.random.below(1000) < rate as usize
    }

    /// Returns the next thread to run; `None` if none is ready at this time.
    pub(super) fn choose(&mut self) -> Option<usize> {
        self.catch_up();
        let scheduler = &mut self.scheduler;
        if scheduler.stopped || scheduler.is_paused || scheduler.ready.is_empty() {
            return None;
        }
        let index = match scheduler.ready.len() {
            1 => 0,
            more => self.random.below(more),
        };
        let thread = scheduler.ready.swap_remove(index);
        scheduler.threads[thread].state = State::Running;
        Some(thread)
    }

    /// Adds a thread to the program.
    pub(crate) fn add_thread(&mut self) -> usize {
        self.scheduler.add()
    }

    /// Removes the last added thread, which could not be started.
    pub(crate) fn remove_last_thread(&mut self) {
        self.scheduler.remove_last();
    }

    /// Returns the signal that gives a thread the baton.
    pub(crate) fn baton(&self, thread: usize) -> &'static Signal {
        self.scheduler.baton(thread)
    }

    /// True if the thread has ended and will never take the baton again.
    pub(crate) fn has_ended(&self, thread: usize) -> bool {
        self.scheduler.has_ended(thread)
    }
}

/// Gives the baton to a thread that is ready.
pub(super) fn hand_over(thread: usize) {
    let flag = with(|kernel| {
        kernel.scheduler.switches += 1;
        kernel.scheduler.baton(thread)
    });
    flag.raise();
}

/// Waits until no thread of the program has the baton.
pub(super) fn wait_for_machine() {
    MACHINE.wait();
}

/// Passes the baton on, and returns when the calling thread has it again. With a `wait`, this is when the awaited event
/// has happened; with `None`, when other ready threads had a chance to run. Signal handlers have run before this
/// function returns.
pub(crate) fn pass_on(wait: Option<Wait>) -> Waking {
    let Some(me) = THREAD.get() else {
        super::fatal("a thread without the baton passes it on");
    };
    let baton = with(|kernel| {
        let scheduler = &mut kernel.scheduler;
        scheduler.waits += 1;
        scheduler.threads[me].since = scheduler.waits;
        match wait {
            Some(wait) => scheduler.threads[me].state = State::Waiting(wait),
            None => scheduler.make_ready(me, Waking::Woken),
        }
        scheduler.baton(me)
    });
    THREAD.set(None);
    let next = next_thread();
    if next != me {
        hand_over(next);
        baton.wait();
    }
    THREAD.set(Some(me));
    let (waking, raised) = with(|kernel| {
        let thread = &mut kernel.scheduler.threads[me];
        (
            std::mem::take(&mut thread.waking),
            std::mem::take(&mut thread.signals),
        )
    });
    raised.into_iter().for_each(handlers::raise);
    waking
}

/// Gives the baton away for the last time, because the calling thread ends.
pub(crate) fn leave() {
    let Some(me) = THREAD.get() else { return };
    let flag = with(|kernel| {
        kernel.scheduler.threads[me].state = State::Ended;
        kernel.scheduler.wake(usize::MAX, |on| *on == On::End(me));
        match kernel.choose() {
            Some(next) => {
                kernel.scheduler.switches += 1;
                kernel.scheduler.baton(next)
            }
            None => &MACHINE,
        }
    });
    THREAD.set(None);
    crate::heap::enter(crate::heap::Zone::Process);
    flag.raise();
}

/// Gives the baton away and never returns, because the program has ended but its kernel continues.
pub(crate) fn leave_forever() -> ! {
    leave();
    loop {
        Signal::new().wait();
    }
}

/// Waits for the thread's first turn, and takes the baton.
pub(crate) fn take_baton(thread: usize, baton: &Signal) {
    baton.wait();
    THREAD.set(Some(thread));
    crate::heap::enter(crate::heap::Zone::Host);
}
