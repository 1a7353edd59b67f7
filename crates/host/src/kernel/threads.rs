//! The threads of a host's program. Only the thread that has the baton runs; all others wait for the baton.
//!
//! The next thread is drawn from the ready ones with the host's random numbers. If no thread is ready, the current
//! thread ends the step and serves the next commands of the simulation ([`super::next_thread`]).

use super::{Kernel, NEVER, On, THREAD, Wait, Waking, signals, with};
use crate::raw::Signal;

/// A thread of the program.
#[derive(Debug)]
struct Thread {
    /// The signal that gives the thread the baton. The signal is never freed, so a thread can wait for it without
    /// borrowing the kernel.
    baton: &'static Signal,
    state: State,
    /// The number of the thread's last wait, counted over all threads. Of several waiting threads, the one with the
    /// lowest number is woken first.
    since: u64,
    /// The reason why the last wait has ended.
    waking: Waking,
    /// The signals whose handlers the thread must run.
    signals: Vec<i32>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Ready,
    Running,
    Waiting(Wait),
    Ended,
}

/// A real thread that the program has started and not joined.
#[derive(Debug)]
pub(crate) struct StartedThread {
    pub thread: usize,
    pub handle: libc::pthread_t,
    /// The slot of the thread's stack.
    pub stack: usize,
    pub is_detached: bool,
}

/// The threads of a host.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    threads: Vec<Thread>,
    ready: Vec<usize>,
    waits: u64,
    /// The number of switches to another thread.
    pub switches: u64,
    /// True if the program has stopped, so that no thread runs any more.
    pub stopped: bool,
    /// True while the program is suspended by `SIGSTOP`.
    pub is_paused: bool,
    /// The signals that have arrived during the pause.
    pub pending: Vec<i32>,
}

/// The signal that gives the baton to the first thread of the process, when a thread of the program ends.
static MACHINE: Signal = Signal::new();

impl Scheduler {
    /// Adds a thread that is ready, and returns its number.
    fn add(&mut self) -> usize {
        let number = self.threads.len();
        self.threads.push(Thread {
            baton: Box::leak(Box::default()),
            state: State::Ready,
            since: 0,
            waking: Waking::Woken,
            signals: vec![],
        });
        self.ready.push(number);
        number
    }

    /// Removes the last added thread, which could not be started.
    fn remove_last(&mut self) {
        let number = self.threads.len() - 1;
        self.threads.pop();
        self.ready.retain(|&ready| ready != number);
    }

    fn baton(&self, thread: usize) -> &'static Signal {
        self.threads[thread].baton
    }

    fn has_ended(&self, thread: usize) -> bool {
        self.threads[thread].state == State::Ended
    }

    /// True if there are threads and each of them waits for another thread.
    pub(crate) fn is_deadlocked(&self) -> bool {
        let mut living = self
            .threads
            .iter()
            .filter(|thread| thread.state != State::Ended)
            .peekable();
        living.peek().is_some()
            && living.all(|thread| match &thread.state {
                State::Waiting(wait) => {
                    wait.until == NEVER && matches!(wait.on, On::Futex(..) | On::End(_))
                }
                _ => false,
            })
    }

    fn make_ready(&mut self, thread: usize, waking: Waking) {
        let entry = &mut self.threads[thread];
        entry.state = State::Ready;
        entry.waking = waking;
        self.ready.push(thread);
    }

    /// Wakes at most `most` of the threads whose wait matches, the longest waiting first.
    pub(crate) fn wake(&mut self, most: usize, matches: impl Fn(&On) -> bool) -> usize {
        let mut woken: Vec<(u64, usize)> = self
            .threads
            .iter()
            .enumerate()
            .filter(
                |(_, thread)| matches!(&thread.state, State::Waiting(wait) if matches(&wait.on)),
            )
            .map(|(number, thread)| (thread.since, number))
            .collect();
        woken.sort_unstable();
        woken.truncate(most);
        for &(_, thread) in &woken {
            self.make_ready(thread, Waking::Woken);
        }
        woken.len()
    }

    /// Moves at most `most` threads that wait for one word to another word.
    pub(crate) fn requeue(&mut self, from: usize, to: usize, most: usize) -> usize {
        let mut waiting: Vec<(u64, usize)> = vec![];
        for (number, thread) in self.threads.iter().enumerate() {
            if let State::Waiting(Wait {
                on: On::Futex(word, _),
                ..
            }) = thread.state
                && word == from
            {
                waiting.push((thread.since, number));
            }
        }
        waiting.sort_unstable();
        waiting.truncate(most);
        for &(_, number) in &waiting {
            if let State::Waiting(Wait {
                on: On::Futex(word, _),
                ..
            }) = &mut self.threads[number].state
            {
                *word = to;
            }
        }
        waiting.len()
    }

    /// Returns the earliest time limit of a waiting thread.
    pub(crate) fn next_limit(&self) -> u64 {
        let limits = self.threads.iter().map(|thread| match &thread.state {
            State::Waiting(wait) => wait.until,
            _ => NEVER,
        });
        limits.min().filter(|_| !self.stopped).unwrap_or(NEVER)
    }

    /// Wakes the threads whose time limit is reached.
    pub(crate) fn wake_expired(&mut self, now: u64) {
        for number in 0..self.threads.len() {
            if matches!(&self.threads[number].state, State::Waiting(wait) if wait.until <= now) {
                self.make_ready(number, Waking::TimedOut);
            }
        }
    }

    /// Wakes the threads that wait with a time limit, so that they compute the limit again. This is allowed, because a
    /// wait for a futex may end for no reason.
    pub(crate) fn wake_timed(&mut self) {
        for number in 0..self.threads.len() {
            if let State::Waiting(wait) = &self.threads[number].state
                && wait.until != NEVER
                && matches!(wait.on, On::Time | On::Futex(..))
            {
                self.make_ready(number, Waking::Woken);
            }
        }
    }

    /// Makes the first thread that has not ended run the handler of a signal.
    pub(crate) fn interrupt(&mut self, signal: i32) {
        let living = |thread: &Thread| thread.state != State::Ended;
        let Some(number) = self.threads.iter().position(living) else {
            return;
        };
        self.threads[number].signals.push(signal);
        if matches!(self.threads[number].state, State::Waiting(_)) {
            self.make_ready(number, Waking::Interrupted);
        }
    }

    /// Describes the wait of each living thread.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (number, thread) in self.threads.iter().enumerate() {
            let what = match &thread.state {
                State::Ended => continue,
                State::Ready | State::Running => "is ready".to_string(),
                State::Waiting(wait) => match &wait.on {
                    On::Time => "sleeps".to_string(),
                    On::Futex(word, _) => format!("waits for a futex at {word:#x}"),
                    On::Objects(_) => "waits for descriptors".to_string(),
                    On::End(other) => format!("joins thread {other}"),
                },
            };
            text += &format!("  thread {number} {what}\n");
        }
        text
    }
}

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
    let next = super::next_thread();
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
    signals::raise(&raised);
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
