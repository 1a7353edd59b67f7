//! Who may touch an asynchronous half, decided one atomic step at a time.
//!
//! A half that runs on its own is idle, scheduled (in a queue or a mailbox), running, or over. The
//! one who takes it from idle or scheduled to running alone may touch its future until the next
//! step. Cancelling never waits: whoever holds the half at that moment throws it away.

use super::sync::AtomicU32;
use std::sync::atomic::Ordering;

/// In a queue or a mailbox; together with [`RUNNING`]: woken during a poll.
const SCHEDULED: u32 = 1;
const RUNNING: u32 = 2;
/// The future is gone. Its result is in place unless [`CANCELLED`] is set too.
const OVER: u32 = 4;
/// Nobody wants the result any more.
const CANCELLED: u32 = 8;

/// The state of one half.
pub(super) struct State(AtomicU32);

/// What the runner is to do after a poll that was not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Leave it: whoever wakes it will schedule it.
    Idle,
    /// Schedule it: it was woken meanwhile.
    Again,
    /// Throw the future away: it was cancelled meanwhile.
    Discard,
}

/// What the canceller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancel {
    /// Throw the future away, now.
    Discard,
    /// Schedule the half, so that a worker throws the future away.
    Schedule,
    /// Nothing: whoever runs it or will run it throws it away, or has.
    Leave,
    /// The half is over: drop its result.
    Over,
}

impl State {
    pub(super) fn running() -> State {
        State(AtomicU32::new(RUNNING))
    }

    pub(super) fn scheduled() -> State {
        State(AtomicU32::new(SCHEDULED))
    }

    /// From scheduled to running; false if the half was cancelled and is to be thrown away.
    pub(super) fn begin(&self) -> bool {
        let before = self.0.fetch_xor(SCHEDULED | RUNNING, Ordering::AcqRel);
        before & CANCELLED == 0
    }

    /// Back to running, of a half that its owner has taken out of the mailbox.
    pub(super) fn take_back(&self) {
        self.0.store(RUNNING, Ordering::Relaxed);
    }

    /// Ends a poll that was not ready.
    pub(super) fn pause(&self) -> Pause {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            let (next, pause) = match state {
                s if s & CANCELLED != 0 => return Pause::Discard,
                s if s & SCHEDULED != 0 => (SCHEDULED, Pause::Again),
                _ => (0, Pause::Idle),
            };
            match self
                .0
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return pause,
                Err(other) => state = other,
            }
        }
    }

    /// The result is in place; false if nobody wants it and it is to be dropped.
    pub(super) fn finish(&self) -> bool {
        self.0.fetch_or(OVER, Ordering::AcqRel) & CANCELLED == 0
    }

    /// The future was thrown away.
    pub(super) fn discarded(&self) {
        self.0.fetch_or(OVER, Ordering::Release);
    }

    /// True if the half was idle and now is scheduled: the caller is to queue it.
    pub(super) fn wake(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            if state & (SCHEDULED | OVER | CANCELLED) != 0 {
                return false;
            }
            let next = state | SCHEDULED;
            match self
                .0
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return state == 0,
                Err(other) => state = other,
            }
        }
    }

    /// Takes back the wish for a result; with `defer` the caller does not throw away the future
    /// itself.
    pub(super) fn cancel(&self, defer: bool) -> Cancel {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            let (next, cancel) = match state {
                s if s & CANCELLED != 0 => return Cancel::Leave,
                s if s & OVER != 0 => (s, Cancel::Over),
                0 if defer => (SCHEDULED | CANCELLED, Cancel::Schedule),
                0 => (CANCELLED, Cancel::Discard),
                s => (s | CANCELLED, Cancel::Leave),
            };
            match self
                .0
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return cancel,
                Err(other) => state = other,
            }
        }
    }

    /// Whether the half was cancelled, so that there never will be a result.
    pub(super) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) & CANCELLED != 0
    }
}
