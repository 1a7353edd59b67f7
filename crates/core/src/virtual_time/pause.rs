//! Pauses, at which a run returns to its caller; it later continues as if it had not paused.
//!
//! All shards get the same pause before they run. Between two windows, each shard compares the start of the next window
//! with the time of the pause. A pause within a window divides its events. No message arrives in the window in which it
//! is sent, so the events after the pause are already known, except timers that are set before the pause and due after
//! it ([`Shard::put_off`](super::shard::Shard::put_off)). The remaining events are run later as the same window.

/// The point at which shards pause. For a type that never pauses, the checks are compiled away.
pub(super) trait Pause {
    /// True if the run may pause.
    const EVER: bool;

    /// Events at this time or later are not handled; `u64::MAX` means no pause.
    fn before(&self) -> u64;

    /// An actor whose first event at that time is still handled.
    fn also(&self) -> Option<u32>;

    /// True if the run must pause when no event is left.
    fn is_asked(&self) -> bool;
}

/// A run that never pauses.
pub(super) struct Never;

impl Pause for Never {
    const EVER: bool = false;

    #[inline(always)]
    fn before(&self) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    fn also(&self) -> Option<u32> {
        None
    }

    #[inline(always)]
    fn is_asked(&self) -> bool {
        false
    }
}

/// A pause before this time. Every event is before `u64::MAX`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) time: u64,
    pub(super) also: Option<u32>,
    /// True if the run pauses at that time; otherwise it ends.
    pub(super) pauses: bool,
}

impl Pause for Before {
    const EVER: bool = true;

    fn before(&self) -> u64 {
        self.time
    }

    fn also(&self) -> Option<u32> {
        self.also
    }

    fn is_asked(&self) -> bool {
        self.pauses
    }
}
