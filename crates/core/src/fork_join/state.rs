//! The state of a block, one atomic word, which determines the access rights to the block and its lifetime.
//!
//! One word contains the complete state, so each event of a half (waking, pausing, ending) costs one atomic operation.
//!
//! - A half is held, idle, or over. A half is held from the moment when it is woken: first by the waking thread, which
//!   queues it, then by the queue or mailbox, then by the thread that runs it. Only the holder of a half may access its
//!   future. A half that is woken while it is held will be polled once more. Cancelling never waits: the current holder
//!   discards the future.
//! - The join may store a waker in the block. The waker belongs to the join until the last half to end takes it.
//! - The parties are the join and every cloned waker. The block exists as long as there is a party, or a half that is
//!   not over; the step after which neither exists frees the block.

use crate::sync::AtomicU32;
use std::sync::atomic::Ordering;

/// A worker holds the half to run it, or a queue or mailbox holds it for a worker.
const HELD: u32 = 1;
/// The half was woken while it was held.
const WOKEN: u32 = 2;
/// The future was dropped. Its result is stored, unless [`CANCELLED`] is set as well.
const OVER: u32 = 4;
/// The half was cancelled: no party needs its result any more.
const CANCELLED: u32 = 8;

/// Both halves are over.
const BOTH_OVER: u32 = Side::First.bits(OVER) | Side::Second.bits(OVER);
/// The join has stored a waker.
const WAITING: u32 = 1 << 8;
/// The unit of the number of parties, which is stored from this bit on.
const PARTY: u32 = 1 << 9;
/// The maximum number of parties, well below an overflow of the count.
const MOST: u32 = (u32::MAX / PARTY) / 2;

/// One of the two halves of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Side {
    First,
    Second,
}

/// The state of one block.
pub(super) struct State(AtomicU32);

/// The action of the runner after a poll that was not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Leave the half: the thread that wakes it will queue it.
    Idle,
    /// Queue the half: it was woken during the poll.
    Again,
    /// Discard the future: it was cancelled during the poll.
    Discard,
}

/// The progress of the wait for both halves, from the join's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// No waker is stored in the block, and only the join can store one.
    NotBegun,
    /// The join has stored a waker.
    WakerLeft,
    /// Both halves are over, and their results are visible.
    Over,
}

/// The action of the canceller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancel {
    /// Discard the future now.
    Discard,
    /// Queue the half, so that a worker discards its future.
    Queue,
    /// Do nothing: the worker that runs or will run the half discards its future, or has done so.
    Leave,
    /// The half is over: drop its result.
    Over,
}

/// The action after a step that released a half, a waker or a party. If there is no action, another thread may already
/// have freed the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum After {
    Nothing,
    /// Queue the half, which the caller now holds.
    Queue,
    /// Take the waker that the join has stored, [leave](State::leave), and wake it: until then the caller is a party.
    Wake,
    /// Free the block, because no party is left.
    Free,
}

/// The error of [`State::finish`] for a cancelled half, whose result is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unwanted;

impl Side {
    /// Shifts the flags of a half into position.
    const fn bits(self, flags: u32) -> u32 {
        match self {
            Side::First => flags,
            Side::Second => flags << 4,
        }
    }
}

impl State {
    /// Returns the state of a new fork: the caller holds both halves, and the join is the only party.
    #[inline(always)]
    pub(super) const fn of_fork() -> u32 {
        PARTY | Side::First.bits(HELD) | Side::Second.bits(HELD)
    }

    /// Returns the state of a root with `parties` parties, which the caller will queue. A root uses only the first
    /// half.
    pub(super) fn of_root(parties: u32) -> u32 {
        (parties * PARTY) | Side::First.bits(HELD) | Side::Second.bits(OVER)
    }

    #[inline(always)]
    pub(super) fn new(state: u32) -> State {
        State(AtomicU32::new(state))
    }

    /// True for the state of a new fork: the join is the only party, and no half was woken.
    #[inline(always)]
    pub(super) fn is_untouched(&self) -> bool {
        self.0.load(Ordering::Acquire) == State::of_fork()
    }

    /// Returns the progress of the wait for both halves.
    pub(super) fn wait_so_far(&self) -> Wait {
        let state = self.0.load(Ordering::Acquire);
        if state & BOTH_OVER == BOTH_OVER {
            Wait::Over
        } else if state & WAITING != 0 {
            Wait::WakerLeft
        } else {
            Wait::NotBegun
        }
    }

    /// True if the half was cancelled, so that it will have no result.
    pub(super) fn is_cancelled(&self, side: Side) -> bool {
        self.0.load(Ordering::Acquire) & side.bits(CANCELLED) != 0
    }

    /// Called before a poll by the holder of the half. False if the half was cancelled and must be dropped.
    pub(super) fn begin(&self, side: Side) -> bool {
        let mut state = self.0.load(Ordering::Acquire);
        if state & side.bits(WOKEN) != 0 {
            // The coming poll also serves wakes that came while the half was queued.
            state = self.0.fetch_and(!side.bits(WOKEN), Ordering::AcqRel);
        }
        state & side.bits(CANCELLED) == 0
    }

    /// Ends a poll that was not ready.
    pub(super) fn pause(&self, side: Side) -> Pause {
        let mut pause = Pause::Discard;
        self.update(|state| {
            if state & side.bits(CANCELLED) != 0 {
                pause = Pause::Discard;
                None
            } else if state & side.bits(WOKEN) != 0 {
                pause = Pause::Again;
                Some(state & !side.bits(WOKEN))
            } else {
                pause = Pause::Idle;
                Some(state & !side.bits(HELD))
            }
        });
        pause
    }

    /// Records that the half is over and its result is stored.
    ///
    /// # Errors
    /// If the result is not needed: it must be dropped, and the half must be [ended](State::end).
    pub(super) fn finish(&self, side: Side) -> Result<After, Unwanted> {
        let mut after = After::Nothing;
        let finished = self.update(|state| {
            let next;
            (next, after) = State::ended(state, side);
            (state & side.bits(CANCELLED) == 0).then_some(next)
        });
        if finished { Ok(after) } else { Err(Unwanted) }
    }

    /// Records that the half is over without a result.
    pub(super) fn end(&self, side: Side) -> After {
        let mut after = After::Nothing;
        self.update(|state| {
            let next;
            (next, after) = State::ended(state, side);
            Some(next)
        });
        after
    }

    /// Returns the state after the end of a half, and the resulting action.
    fn ended(state: u32, side: Side) -> (u32, After) {
        let next = (state & !side.bits(HELD | WOKEN)) | side.bits(OVER);
        if next & BOTH_OVER == BOTH_OVER && next & WAITING != 0 {
            ((next & !WAITING) + PARTY, After::Wake)
        } else {
            (next, State::freed(next))
        }
    }

    /// Wakes the half. Returns true if the half was idle; the caller then holds it.
    pub(super) fn wake(&self, side: Side) -> bool {
        let mut idle = false;
        let woken = self.update(|state| {
            let next;
            (next, idle) = State::woken(state, side)?;
            Some(next)
        });
        woken && idle
    }

    /// Wakes the half like [`State::wake`], and removes the calling party in the same step.
    pub(super) fn wake_and_leave(&self, side: Side) -> After {
        let mut after = After::Nothing;
        self.update(|state| {
            let next = state - PARTY;
            match State::woken(next, side) {
                None => {
                    after = State::freed(next);
                    Some(next)
                }
                Some((next, idle)) => {
                    after = if idle { After::Queue } else { After::Nothing };
                    Some(next)
                }
            }
        });
        after
    }

    /// Returns the state after a wake, and whether the half was idle; `None` if nothing needs to be woken.
    fn woken(state: u32, side: Side) -> Option<(u32, bool)> {
        if state & side.bits(OVER | CANCELLED) != 0 {
            return None;
        }
        let idle = state & side.bits(HELD) == 0;
        // A half that was already woken is woken again, so that the coming poll sees the caller's earlier writes.
        let flag = if idle { HELD } else { WOKEN };
        Some((state | side.bits(flag), idle))
    }

    /// Cancels a half. With `defer` the caller does not drop the future itself.
    pub(super) fn cancel(&self, side: Side, defer: bool) -> Cancel {
        let mut cancel = Cancel::Leave;
        self.update(|state| {
            let half = state & side.bits(HELD | OVER | CANCELLED);
            let flags;
            (flags, cancel) = if half & side.bits(CANCELLED) != 0 {
                (0, Cancel::Leave)
            } else if half & side.bits(OVER) != 0 {
                (0, Cancel::Over)
            } else if half != 0 {
                (CANCELLED, Cancel::Leave)
            } else if defer {
                (HELD | CANCELLED, Cancel::Queue)
            } else {
                (CANCELLED, Cancel::Discard)
            };
            (flags != 0).then_some(state | side.bits(flags))
        });
        cancel
    }

    /// Records that the join, which is the caller, has stored a waker. Returns false if both halves are over; the waker
    /// then still belongs to the join.
    pub(super) fn wait(&self) -> bool {
        self.update(|state| (state & BOTH_OVER != BOTH_OVER).then_some(state | WAITING))
    }

    /// Takes the join's waker back. False if no waker is stored, or another party has taken it.
    pub(super) fn wait_no_more(&self) -> bool {
        self.update(|state| (state & WAITING != 0).then_some(state & !WAITING))
    }

    /// Adds a party, which must leave before the block is freed.
    pub(super) fn join_in(&self) {
        let before = self.0.fetch_add(PARTY, Ordering::Relaxed);
        assert!(
            before / PARTY < MOST,
            "fork-join: too many wakers of one half"
        );
    }

    /// Removes one party to the block. If it was the last party, the caller must free the block.
    pub(super) fn leave(&self) -> After {
        // If no other party is left, no atomic step is necessary to decide which party frees the block.
        if self.0.load(Ordering::Acquire) == PARTY | BOTH_OVER {
            return After::Free;
        }
        let before = self.0.fetch_sub(PARTY, Ordering::AcqRel);
        State::freed(before - PARTY)
    }

    /// Returns the action for a block in this state.
    fn freed(state: u32) -> After {
        if state < PARTY && state & BOTH_OVER == BOTH_OVER {
            After::Free
        } else {
            After::Nothing
        }
    }

    /// Makes one step to the state that `next` returns, if any. Returns false if `next` returned `None`. In either case
    /// the caller sees all writes that led to the previous state.
    #[inline(always)]
    fn update(&self, mut next: impl FnMut(u32) -> Option<u32>) -> bool {
        let mut state = self.0.load(Ordering::Acquire);
        loop {
            let Some(wanted) = next(state) else {
                return false;
            };
            match self
                .0
                .compare_exchange_weak(state, wanted, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(other) => state = other,
            }
        }
    }
}
