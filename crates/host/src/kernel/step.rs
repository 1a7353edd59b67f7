//! Attempts at calls: their results, the reasons for waits, and the state between attempts.

use crate::tcp::Id;

/// The result of an attempt at a call.
#[derive(Debug)]
pub(crate) enum Step {
    /// The result, in the format of the real kernel: errors are negative.
    Done(isize),
    /// The call is repeated when the thread is woken.
    Wait(Wait),
    /// The call is repeated after a microsecond.
    Linger,
    /// Other threads run first; then the call returns this result.
    Yield(isize),
    /// The calling thread raises a signal, and then the call returns this result.
    Raise { signal: i32, result: isize },
    /// The call is not simulated.
    Unsupported,
    /// The calling thread never returns.
    Exit,
}

/// A thread's reason for waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The events that wake the thread.
    pub on: On,
    /// The time at which the thread is woken; [`NEVER`](crate::tcp::NEVER) for no limit.
    pub until: u64,
}

/// Events that wake a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Only the passage of time.
    Time,
    /// A wake-up of the futex at this address, if the wake-up has any bit of this set.
    Futex(usize, u32),
    /// A change of any of the objects.
    Objects(Vec<Id>),
    /// The end of a thread.
    End(usize),
}

/// The reasons why a waiting thread continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waking {
    /// The awaited event has happened, or may have happened.
    #[default]
    Woken,
    /// The time limit was reached.
    TimedOut,
    /// A signal has arrived, and its handler has run.
    Interrupted,
}

/// The state of a call between its attempts.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    /// The time limit, computed at the first attempt.
    until: Option<u64>,
    /// True if the thread was woken because the time limit of its wait was reached.
    pub timed_out: bool,
    /// True if the thread was woken for another reason.
    pub woken: bool,
    /// The end of a named pipe that `open` has created, and that waits for a partner.
    pub opened: Option<Id>,
    /// The number of bytes that a blocking write has already transferred.
    pub sent: usize,
}

impl Attempt {
    /// Returns the time limit of a call, which is computed once.
    pub(super) fn until(&mut self, compute: impl FnOnce() -> u64) -> u64 {
        *self.until.get_or_insert_with(compute)
    }
}
