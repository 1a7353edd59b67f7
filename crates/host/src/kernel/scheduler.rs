//! The states of a program's threads, and the order in which they are woken.

use super::step::{On, Wait, Waking};
use crate::raw::Signal;
use crate::tcp::NEVER;

/// A thread of the program.
#[derive(Debug)]
pub(super) struct Thread {
    /// The signal that gives the thread the baton. The signal is never freed, so a thread can wait for it without
    /// borrowing the kernel.
    baton: &'static Signal,
    pub(super) state: State,
    /// The number of the thread's last wait, counted over all threads. Of several waiting threads, the one with the
    /// lowest number is woken first.
    pub(super) since: u64,
    /// The reason why the last wait has ended.
    pub(super) waking: Waking,
    /// The signals whose handlers the thread must run.
    pub(super) signals: Vec<i32>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
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
    pub(super) threads: Vec<Thread>,
    pub(super) ready: Vec<usize>,
    pub(super) waits: u64,
    /// The number of switches to another thread.
    pub switches: u64,
    /// True if the program has stopped, so that no thread runs any more.
    pub stopped: bool,
    /// True while the program is suspended by `SIGSTOP`.
    pub is_paused: bool,
    /// The signals that have arrived during the pause.
    pub pending: Vec<i32>,
}

impl Scheduler {
    /// Adds a thread that is ready, and returns its number.
    pub(super) fn add(&mut self) -> usize {
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
    pub(super) fn remove_last(&mut self) {
        let number = self.threads.len() - 1;
        self.threads.pop();
        self.ready.retain(|&ready| ready != number);
    }

    pub(super) fn baton(&self, thread: usize) -> &'static Signal {
        self.threads[thread].baton
    }

    pub(super) fn has_ended(&self, thread: usize) -> bool {
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

    pub(super) fn make_ready(&mut self, thread: usize, waking: Waking) {
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
