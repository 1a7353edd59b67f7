//! Where a run returns to its caller, and later continues as if it had not paused.
//!
//! All shards get the same pause before they run. Between two windows each of them decides
//! that the next one begins too late. A pause within a window parts its events: nothing that is sent
//! in a window arrives in it, so those after the pause are known already, but for timers that are set
//! before it and due after it ([`Shard::put_off`](super::shard::Shard::put_off)). The rest is run as
//! the same window again.

/// The point where shards pause. A type that never pauses compiles to nothing.
pub(super) trait Pause {
    /// Whether there may be one.
    const EVER: bool;

    /// Events at this time or later do not happen; `u64::MAX`: no pause.
    fn before(&self) -> u64;

    /// The actor whose first event at that time still happens.
    fn also(&self) -> Option<u32>;

    /// Whether the run is to pause when nothing is left to happen.
    fn is_asked(&self) -> bool;
}

/// An ordinary run.
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

/// A run that pauses at this time. Every event is before `u64::MAX`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) time: u64,
    pub(super) also: Option<u32>,
    /// True if the run pauses there; otherwise it ends.
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
