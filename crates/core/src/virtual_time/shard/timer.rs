//! Timers in the wheel.

use crate::virtual_time::buffer::{Buffer, Pool};
use crate::virtual_time::wheel::Due;

/// A timer: time, actor and token.
#[derive(Clone, Copy)]
pub(in super::super) struct Timer {
    pub(in super::super) time: u64,
    pub(in super::super) actor: u32,
    pub(in super::super) token: u32,
}

impl Timer {
    /// Adds the timer's event to the window that begins at `base`.
    #[inline]
    pub(in super::super) fn push<M>(self, base: u64, events: &mut Buffer<M>, pool: &mut Pool<M>) {
        let offset = (self.time - base) as u32;
        let vacancy = events.vacancy(pool);
        vacancy.write(|place| place.write_timer(offset, self.actor, self.token));
    }
}

/// Returns the key of an internal timer, which is unique in the run.
pub(super) fn key(actor: u32, token: u32) -> u64 {
    (actor as u64) << 32 | token as u64
}

/// Returns the actor of a key.
pub(super) fn actor(key: u64) -> u32 {
    (key >> 32) as u32
}

impl Due for Timer {
    /// The number of entries in a piece, which takes 8 KiB.
    const PIECE: usize = 512;

    #[inline]
    fn time(&self) -> u64 {
        self.time
    }
}
