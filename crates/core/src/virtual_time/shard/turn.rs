//! The state of a shard within a window: the window, and the event being handled.

use super::ROOT;
use super::scratch::Scratch;
use crate::contract::random::Streams;
use crate::contract::{CancelToken, Latency, WaitReason};
use crate::network::Network;
use crate::virtual_time::delivery::Upcoming;
use crate::virtual_time::event::{Head, Kind};
use crate::virtual_time::header::HeaderCell;
use crate::virtual_time::multicast::Sharing;
use crate::virtual_time::outbox::RING;
use crate::virtual_time::stored_event::{EventPtr, UnreadEvent};
use crate::virtual_time::window_timers::WindowTimers;
use std::sync::Arc;

/// The configuration of the run, which is equal on all shards.
pub(in super::super) struct Settings {
    pub(in super::super) streams: Streams,
    pub(in super::super) latency: Latency,
    pub(in super::super) latency_key: u64,
    pub(in super::super) network: Option<Arc<dyn Network>>,
    /// The key of the network's random numbers.
    pub(in super::super) network_key: u64,
    pub(in super::super) most_at_once: u32,
    pub(in super::super) cancel: CancelToken,
    /// The binary logarithm of a window's width in nanoseconds.
    pub(in super::super) window_bits: u32,
    /// A mask that selects the low bits of a time: the offset within its window.
    pub(in super::super) offset_mask: u32,
    /// True if messages have only their sender as metadata and the latency of their pair.
    pub(in super::super) plain: bool,
    pub(in super::super) sharing: Sharing,
    /// True if the root receives dead letters.
    pub(in super::super) to_root: bool,
    /// Measurements before this time are discarded.
    pub(in super::super) warm_up: u64,
    pub(in super::super) per_actor: bool,
    /// True if every message stores its cause.
    pub(in super::super) traces: bool,
    /// True if events are recorded, not only counted.
    pub(in super::super) attentive: bool,
    /// True if a panic ends only the actor, not the run.
    pub(in super::super) survives_panics: bool,
}

/// The window being run.
pub(in super::super) struct Window {
    pub(in super::super) number: u64,
    /// The start of the window.
    pub(in super::super) base: u64,
    /// The start of the next window, or the largest time.
    pub(in super::super) end: u64,
    /// The first time after the ring of windows; at most the largest time.
    pub(in super::super) ring_end: u64,
    /// The last time at which events are handled.
    pub(in super::super) limit: u64,
    /// Events due at this time or later wait until the simulation is resumed.
    pub(in super::super) pause: u64,
    /// True if the events of the window are not in the order of addresses.
    pub(in super::super) scattered: bool,
    /// The index of the event being handled.
    pub(in super::super) cursor: usize,
}

impl Window {
    /// Creates the first window.
    pub(super) fn new(window_bits: u32, limit: u64) -> Window {
        let mut window = Window {
            number: 0,
            base: 0,
            end: 0,
            ring_end: 0,
            limit,
            pause: u64::MAX,
            scattered: false,
            cursor: 0,
        };
        window.go_to(0, window_bits);
        window
    }

    /// Advances to the window with this number.
    #[inline(always)]
    pub(in super::super) fn go_to(&mut self, number: u64, window_bits: u32) {
        self.number = number;
        self.base = number << window_bits;
        self.end = self.base.saturating_add(1 << window_bits);
        self.ring_end = self.base.saturating_add(RING << window_bits);
    }
}

/// The event being handled, and its actor.
pub(in super::super) struct Turn<M> {
    pub(in super::super) me: u32,
    pub(in super::super) now: u64,
    pub(in super::super) header: HeaderCell,
    /// The event in its buffer; `None` if its head is in `resumed`.
    pub(in super::super) current: Option<EventPtr<M>>,
    /// The head of an event that was stashed, or that begins a new trace.
    pub(in super::super) resumed: Head,
    /// The event that has arrived; `None` once the actor has taken it.
    pub(in super::super) arrival: Option<UnreadEvent<M>>,
    /// The events that an async body may take by itself.
    pub(in super::super) upcoming: Upcoming<M>,
    /// The kind of the message last delivered.
    pub(in super::super) kind: usize,
    /// The timers of the actor that are due within the current window.
    pub(in super::super) timers: WindowTimers,
    /// The reason for waiting that the actor reports in reply to a query.
    pub(in super::super) waiting: WaitReason,
    pub(super) scratch: Scratch<M>,
}

impl<M> Turn<M> {
    /// Returns a placeholder for the head of an event, used while there is no event.
    pub(super) fn nothing() -> Head {
        Head::new(0, Kind::Start, ROOT, ROOT, 0, 0)
    }

    pub(super) fn new() -> Turn<M> {
        let scratch = Scratch::new();
        Turn {
            me: ROOT,
            now: 0,
            header: scratch.header(),
            current: None,
            resumed: Turn::<M>::nothing(),
            arrival: None,
            upcoming: Upcoming::NONE,
            kind: 0,
            timers: WindowTimers::default(),
            waiting: WaitReason::Other,
            scratch,
        }
    }
}
