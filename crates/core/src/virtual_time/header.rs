//! The header of every actor.

use super::turn_cell::TurnCell;
use crate::contract::Reason;

/// The cell of the header of an actor, which the engine and the shard read and change in turn.
pub(super) type HeaderCell = TurnCell<Header>;

/// The header of an actor's slot. It takes 16 bytes; all zeros mean an actor that has not begun.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Header {
    pub(super) state: State,
    /// The reason of the actor's end, and [`SPAWNS`].
    reason: u8,
    /// The number of random numbers that the actor has drawn, in units of 2^32.
    drawn_high: u16,
    /// The number of messages that the actor has sent.
    pub(super) seq: u32,
    /// The number of drawn random numbers, modulo 2^32.
    drawn: u32,
    /// The first stashed event, as an index into the stash of the shard ([`super::stash`]).
    pub(super) stashed: u32,
}

/// The bit of `reason` that marks an actor that has requested spawns.
const SPAWNS: u8 = 1 << 7;

/// The state of an actor's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(super) enum State {
    /// The body of the actor has not been created.
    #[default]
    Fresh = 0,
    /// The actor is waiting for an event, or handling one.
    Live = 1,
    /// The body of the actor has been dropped.
    Ended = 2,
}

impl Header {
    /// Counts the draw of a random number, and returns the number of earlier draws.
    #[inline(always)]
    pub(super) fn draw(&mut self) -> u64 {
        let before = (self.drawn_high as u64) << 32 | self.drawn as u64;
        self.drawn = self.drawn.wrapping_add(1);
        if self.drawn == 0 {
            self.drawn_high = self.drawn_high.wrapping_add(1);
        }
        before
    }

    /// Records that the actor has requested spawns.
    pub(super) fn set_spawns(&mut self) {
        self.reason |= SPAWNS;
    }

    /// True if the actor has ever requested spawns.
    #[inline]
    pub(super) fn has_spawns(&self) -> bool {
        self.reason & SPAWNS != 0
    }

    pub(super) fn end(&mut self, reason: Reason) {
        self.state = State::Ended;
        self.reason = self.reason & SPAWNS | Header::reason_number(reason) as u8;
    }

    /// Returns the serialized form: state, reason and whether it has requested spawns as one number, then the
    /// number of sent messages and of drawn random numbers.
    #[cfg(feature = "serde")]
    pub(super) fn to_numbers(self) -> (u8, u32, u64) {
        let spawns = u8::from(self.has_spawns());
        let how = self.state as u8 | (self.reason & !SPAWNS) << 2 | spawns << 4;
        let drawn = (self.drawn_high as u64) << 32 | self.drawn as u64;
        (how, self.seq, drawn)
    }

    /// Returns the state that [`Header::to_numbers`] has written as this number, with the reason of the end.
    #[cfg(feature = "serde")]
    pub(super) fn state_of(how: u8) -> Option<(State, Reason)> {
        let state = match how & 3 {
            0 => State::Fresh,
            1 => State::Live,
            2 => State::Ended,
            _ => return None,
        };
        (how < 1 << 5).then(|| (state, Header::reason_of(u32::from(how >> 2 & 3))))
    }

    /// Sets the numbers that [`Header::to_numbers`] has returned, except state and reason.
    #[cfg(feature = "serde")]
    pub(super) fn set_numbers(&mut self, (how, seq, drawn): (u8, u32, u64)) {
        if how >> 4 & 1 == 1 {
            self.set_spawns();
        }
        self.seq = seq;
        self.drawn = drawn as u32;
        self.drawn_high = (drawn >> 32) as u16;
    }

    /// Resets the counts of sent messages and drawn numbers to the counts in `before`.
    pub(super) fn count_like(&mut self, before: &Header) {
        self.seq = before.seq;
        (self.drawn, self.drawn_high) = (before.drawn, before.drawn_high);
    }

    /// Returns the reason of the actor's end, if it has ended.
    pub(super) fn ended(&self) -> Option<Reason> {
        (self.state == State::Ended).then(|| Header::reason_of((self.reason & !SPAWNS) as u32))
    }
}
