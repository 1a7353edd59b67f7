//! A timer that waits.

use crate::virtual_time::scheduled::{Head, Kind, Scheduled, TIMER_FROM, TIMER_SEQ};
use crate::virtual_time::wheel::Due;

/// Of a timer: when, whose, which.
#[derive(Clone, Copy)]
pub(in super::super) struct Timer {
    pub(in super::super) time: u64,
    pub(in super::super) actor: u32,
    pub(in super::super) token: u32,
}

impl Timer {
    /// Its event in the window that begins at `base`.
    #[inline]
    pub(in super::super) fn event<M>(self, base: u64) -> Scheduled<M> {
        let offset = (self.time - base) as u32;
        let from = TIMER_FROM;
        let mut head = Head::new(offset, Kind::Timer, self.actor, from, TIMER_SEQ, self.time);
        head.parent = self.token as u64;
        Scheduled::bare(head)
    }
}

/// What tells a timer of one of the library's own waits from all others of the run.
pub(super) fn key(actor: u32, token: u32) -> u64 {
    (actor as u64) << 32 | token as u64
}

impl Due for Timer {
    #[inline]
    fn time(&self) -> u64 {
        self.time
    }
}
