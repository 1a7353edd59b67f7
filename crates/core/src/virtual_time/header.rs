//! What the engine keeps in front of every actor.

use crate::contract::Reason;

/// 16 bytes; all zero is an actor that has not begun.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Header {
    pub(super) state: State,
    /// Why it ended, and [`SPAWNS`].
    reason: u8,
    /// The random numbers that it has drawn, in units of 2^32.
    drawn_high: u16,
    /// How many sendings it has made.
    pub(super) seq: u32,
    /// How many random numbers it has drawn, modulo 2^32.
    drawn: u32,
    /// The first of the events that it has skipped and kept; see [`super::kept`].
    pub(super) kept: u32,
}

/// The actor has asked for spawns.
const SPAWNS: u8 = 1 << 7;

/// Where an actor is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(super) enum State {
    /// Its body has not been made.
    #[default]
    Fresh = 0,
    /// It waits for an event, or handles one.
    Live = 1,
    /// Its body has been dropped.
    Ended = 2,
}

impl Header {
    /// Counts a random number being drawn: how many there were before.
    #[inline(always)]
    pub(super) fn draw(&mut self) -> u64 {
        let before = (self.drawn_high as u64) << 32 | self.drawn as u64;
        self.drawn = self.drawn.wrapping_add(1);
        if self.drawn == 0 {
            self.drawn_high = self.drawn_high.wrapping_add(1);
        }
        before
    }

    /// Notes that it asks for spawns.
    pub(super) fn set_spawns(&mut self) {
        self.reason |= SPAWNS;
    }

    /// Whether it has ever asked for spawns.
    #[inline]
    pub(super) fn has_spawns(&self) -> bool {
        self.reason & SPAWNS != 0
    }

    pub(super) fn end(&mut self, reason: Reason) {
        self.state = State::Ended;
        self.reason = self.reason & SPAWNS | Header::reason_number(reason) as u8;
    }

    /// How it ended, if it has.
    pub(super) fn ended(&self) -> Option<Reason> {
        (self.state == State::Ended).then(|| Header::reason_of((self.reason & !SPAWNS) as u32))
    }
}
