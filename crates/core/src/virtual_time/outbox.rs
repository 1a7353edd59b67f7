//! The outbox in which a shard writes its events for another shard, and the batch that it passes on between two
//! windows.

use super::buffer::{Buffer, FreeChunks};
use super::event::ScheduledEvent;
use super::multicast::Multicast;
use super::population::SpawnRequest;
use super::turn_cell::TurnCell;
use super::wheel::Due;

/// An event for a window that is beyond the ring.
pub(super) struct OverflowEvent<M> {
    pub(super) time: u64,
    pub(super) event: ScheduledEvent<M>,
}

impl<M> Due for OverflowEvent<M> {
    /// Overflow events are not stored in pieces. A long list of these large entries has its own memory, which is
    /// returned to the system.
    const PIECE: usize = usize::MAX;

    #[inline]
    fn time(&self) -> u64 {
        self.time
    }
}

/// The batch that one shard hands to another between two windows. Handing over moves buffers, not events.
pub(super) struct ShardBatch<M, S> {
    /// Events for the receiver's actors that are due in the next window, by window.
    pub(super) windows: Vec<(u64, Buffer<M>)>,
    /// The events beyond the ring.
    pub(super) far: Vec<OverflowEvent<M>>,
    /// Spawns that actors of the sender have requested.
    pub(super) spawns: Vec<SpawnRequest<M, S>>,
    /// The multicasts of the sender's actors.
    pub(super) multicasts: Vec<Multicast<S>>,
    /// The memory of buffers that the receiver once sent.
    pub(super) spent: Vec<FreeChunks<M>>,
}

impl<M, S> Default for ShardBatch<M, S> {
    fn default() -> Self {
        ShardBatch {
            windows: Vec::new(),
            far: Vec::new(),
            spawns: Vec::new(),
            multicasts: Vec::new(),
            spent: Vec::new(),
        }
    }
}

impl<M, S> ShardBatch<M, S> {
    /// True if the batch contains nothing for the receiver except memory.
    pub(super) fn is_empty(&self) -> bool {
        self.windows.is_empty()
            && self.far.is_empty()
            && self.spawns.is_empty()
            && self.multicasts.is_empty()
    }
}

/// The events that a shard has written for another shard (or itself) and not exchanged yet: a buffer for each of the
/// next 63 windows, by window modulo 64.
pub(super) struct Outbox<M> {
    pub(super) ring: [Buffer<M>; RING as usize],
    /// A bit for each buffer with events.
    pub(super) pending: u64,
    pub(super) far: Vec<OverflowEvent<M>>,
}

/// The cell of an outbox, to which joined shards write in turn.
pub(super) type OutboxCell<M> = TurnCell<Outbox<M>>;

/// The number of windows in the ring. The current window's buffer is free for events 64 windows later.
pub(super) const RING: u64 = 64;

impl<M> Outbox<M> {
    pub(super) fn new() -> Outbox<M> {
        Outbox {
            ring: [const { Buffer::new() }; RING as usize],
            pending: 0,
            far: Vec::new(),
        }
    }
}

/// Returns the first window after `window` whose bit is set; `u64::MAX` if there is none.
#[inline]
pub(super) fn next_pending(pending: u64, window: u64) -> u64 {
    if pending == 0 {
        return u64::MAX;
    }
    let ahead = pending
        .rotate_right(((window + 1) % RING) as u32)
        .trailing_zeros();
    window + 1 + ahead as u64
}
