//! The shards that one thread runs, their pending windows, and their joined queues.

use super::Engine;
use super::actor_cache::ActorCache;
use crate::contract::Message;
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::outbox::{OutboxCell, next_pending};
use crate::virtual_time::shard::ShardCell;

/// A shard among those that one thread runs.
pub(super) struct BorrowedShard<'a, M: Message> {
    pub(super) engine: &'a mut Engine<M>,
    pub(super) shard: ShardCell<M>,
    /// The outbox with the events sent to the shard's own actors.
    pub(super) own: OutboxCell<M>,
    pub(super) ahead: PendingWindows,
    pub(super) cache: ActorCache<M>,
}

/// The pending windows of a shard.
#[derive(Clone, Copy)]
pub(super) struct PendingWindows {
    /// The first window with events other than messages sent to the shard's own actors while the queues are joined.
    pub(super) later: u64,
    /// True if the window `later` has only timers, including timers of later windows.
    pub(super) only_timers: bool,
    /// The first window for which the shard has any event.
    pub(super) next: u64,
}

impl<'a, M: Message> BorrowedShard<'a, M> {
    /// Creates the entry for a shard that the thread has borrowed.
    pub(super) fn new(engine: &'a mut Engine<M>) -> BorrowedShard<'a, M> {
        let shard = engine.shard;
        BorrowedShard {
            shard,
            // SAFETY: the shard outlives the engine, which is borrowed exclusively. The cell is used only while no other
            // reference to the shard's outboxes is held.
            own: unsafe { shard.read(|shard| shard.queues.own()) },
            engine,
            ahead: PendingWindows {
                later: u64::MAX,
                only_timers: false,
                next: u64::MAX,
            },
            cache: ActorCache::new(),
        }
    }

    /// Updates the pending windows after `window`, which was run.
    #[inline(always)]
    pub(super) fn look(&mut self, window: u64) {
        self.ahead.look(self.engine, self.own, window);
    }

    /// Moves events beyond the ring into the wheel. The shard first advances to the window that was run,
    /// because the wheel places entries relative to its window. Shards are [joined](JoinedQueues), and nothing is due
    /// before the next window.
    #[inline(never)]
    pub(super) fn take_far(&mut self, window: u64) {
        let mut far = self.own.with(|own| std::mem::take(&mut own.far));
        self.shard.with(|shard| {
            if shard.window.number < window {
                shard.go_to(window);
            }
            far.drain(..).for_each(|far| shard.queues.far.push(far));
        });
        self.own.with(|own| own.far = far);
        self.look(window);
    }
}

impl PendingWindows {
    /// Updates the pending windows of a shard after `window`, which was run.
    #[inline(always)]
    pub(super) fn look<M: Message>(&mut self, engine: &Engine<M>, own: OutboxCell<M>, window: u64) {
        let inbound = engine.inbound_pending;
        let (timers, far) = engine
            .shard
            .with(|shard| (shard.queues.timers.next(), shard.queues.far.next()));
        let other = far.min(next_pending(inbound, window));
        self.later = timers.min(other);
        self.only_timers = timers < other;
        self.look_first(own, window);
    }

    /// Updates the pending windows like [`look`](Self::look), for a shard that has only received messages since the
    /// last call.
    #[inline(always)]
    pub(super) fn look_first<M: Message>(&mut self, own: OutboxCell<M>, window: u64) {
        self.next = next_pending(own.with(|own| own.pending), window).min(self.later);
    }
}

/// The shards of a thread, joined so that each writes its messages where the others read them.
pub(super) struct JoinedQueues<M: Message>(Vec<ShardCell<M>>);

impl<M: Message> JoinedQueues<M> {
    /// Joins the queues of the shards. Events that they have sent to each other move to the receivers.
    ///
    /// # Safety
    /// `borrowed` are all shards of the run in their order. They stay borrowed until this value is dropped.
    pub(super) unsafe fn new(borrowed: &mut [BorrowedShard<'_, M>]) -> JoinedQueues<M> {
        for from in 0..borrowed.len() {
            for to in (0..borrowed.len()).filter(|to| *to != from) {
                let sender = borrowed[from].shard;
                let engine = &mut *borrowed[to].engine;
                sender.with(|sender| {
                    let out = &mut sender.queues.out_mut()[to];
                    while out.pending != 0 {
                        let place = out.pending.trailing_zeros() as usize;
                        out.pending &= !(1 << place);
                        let buffer = std::mem::replace(&mut out.ring[place], Buffer::new());
                        engine.inbound[place].push((from, buffer));
                        engine.inbound_pending |= 1 << place;
                    }
                    // SAFETY: the thread has borrowed both shards until this value is dropped, which parts them.
                    engine
                        .shard
                        .read(|receiver| unsafe { sender.queues.join(&receiver.queues) });
                });
            }
        }
        JoinedQueues(borrowed.iter().map(|one| one.shard).collect())
    }
}

impl<M: Message> Drop for JoinedQueues<M> {
    fn drop(&mut self) {
        for shard in &self.0 {
            shard.with(|shard| shard.queues.part());
        }
    }
}
