//! The shards that one thread runs, their pending windows, and their joined queues.

use super::Engine;
use super::actor_cache::ActorCache;
use crate::contract::Message;
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::outbox::{Outbox, next_pending};
use crate::virtual_time::shard::Shard;
use std::ptr::null_mut;

/// A shard among those that one thread runs.
pub(super) struct BorrowedShard<M: Message> {
    pub(super) at: ShardPointers<M>,
    pub(super) ahead: PendingWindows,
    pub(super) cache: ActorCache<M>,
}

/// Pointers to the parts of a shard.
pub(super) struct ShardPointers<M: Message> {
    pub(super) engine: *mut Engine<M>,
    pub(super) shard: *mut Shard<M>,
    /// The outbox with the events sent to the shard's own actors.
    pub(super) own: *mut Outbox<M>,
}

impl<M: Message> Clone for ShardPointers<M> {
    fn clone(&self) -> ShardPointers<M> {
        *self
    }
}

impl<M: Message> Copy for ShardPointers<M> {}

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

impl<M: Message> BorrowedShard<M> {
    /// Creates the entry for a shard that the thread has borrowed.
    pub(super) fn new(engine: *mut Engine<M>) -> BorrowedShard<M> {
        BorrowedShard {
            at: ShardPointers {
                engine,
                shard: null_mut(),
                own: null_mut(),
            },
            ahead: PendingWindows {
                later: u64::MAX,
                only_timers: false,
                next: u64::MAX,
            },
            cache: ActorCache::new(),
        }
    }

    /// Moves events beyond the ring into the wheel. The shard first advances to the window that was run,
    /// because the wheel places entries relative to its window.
    ///
    /// # Safety
    /// As for [`PendingWindows::look`]; shards are [joined](JoinedQueues), and nothing is due before the next
    /// window.
    #[inline(never)]
    pub(super) unsafe fn take_far(&mut self, window: u64) {
        // SAFETY: the thread has borrowed the shard of `at.own`. The outbox is outside of that shard, so no references
        // overlap.
        unsafe {
            let ShardPointers { shard, own, .. } = self.at;
            if (*shard).window.number < window {
                (*shard).go_to(window);
            }
            let (far, wheel) = (&mut (*own).far, &mut (*shard).queues.far);
            far.drain(..).for_each(|far| wheel.push(far));
            self.ahead.look(self.at, window);
        }
    }
}

impl PendingWindows {
    /// Updates the pending windows after `window`, which was run.
    ///
    /// # Safety
    /// The thread has borrowed the shard, and no reference to it is held.
    #[inline(always)]
    pub(super) unsafe fn look<M: Message>(&mut self, at: ShardPointers<M>, window: u64) {
        // SAFETY: the thread has borrowed the shard with its engine, and holds no other reference to them. These
        // references end in this function.
        let (queues, inbound) = unsafe { (&(*at.shard).queues, (*at.engine).inbound_pending) };
        let timers = queues.timers.next();
        let other = queues.far.next().min(next_pending(inbound, window));
        self.later = timers.min(other);
        self.only_timers = timers < other;
        // SAFETY: the thread has borrowed the shard with its engine, and holds no reference to them.
        unsafe { self.look_first(at, window) };
    }

    /// Updates the pending windows like [`look`](Self::look), for a shard that has only received messages since the
    /// last call.
    ///
    /// # Safety
    /// As for [`PendingWindows::look`].
    #[inline(always)]
    pub(super) unsafe fn look_first<M: Message>(&mut self, at: ShardPointers<M>, window: u64) {
        // SAFETY: the thread has borrowed the outbox, and no other thread writes to it.
        self.next = next_pending(unsafe { (*at.own).pending }, window).min(self.later);
    }
}

/// The shards of a thread, joined so that each writes its messages where the others read them.
pub(super) struct JoinedQueues<M: Message>(Vec<*mut Shard<M>>);

impl<M: Message> JoinedQueues<M> {
    /// Joins the queues of the shards. Events that they have sent to each other move to the receivers.
    ///
    /// # Safety
    /// `borrowed` are all shards of the run in their order. Until this value is dropped, the thread has borrowed them,
    /// and no reference to them is held.
    pub(super) unsafe fn new(borrowed: &[BorrowedShard<M>]) -> JoinedQueues<M> {
        let shards: Vec<_> = borrowed.iter().map(|one| one.at.shard).collect();
        for (from, &sender) in shards.iter().enumerate() {
            for (to, receiver) in borrowed.iter().enumerate().filter(|(to, _)| *to != from) {
                // SAFETY: the thread has borrowed both shards, which are different ones, and holds no other reference
                // to them.
                unsafe {
                    let out = &mut (&mut *sender).queues.out_mut()[to];
                    let engine = &mut *receiver.at.engine;
                    while out.pending != 0 {
                        let place = out.pending.trailing_zeros() as usize;
                        out.pending &= !(1 << place);
                        let buffer = std::mem::replace(&mut out.ring[place], Buffer::new());
                        engine.inbound[place].push((from, buffer));
                        engine.inbound_pending |= 1 << place;
                    }
                    (&mut *sender).queues.join(&(*receiver.at.shard).queues);
                }
            }
        }
        JoinedQueues(shards)
    }
}

impl<M: Message> Drop for JoinedQueues<M> {
    fn drop(&mut self) {
        for &shard in &self.0 {
            // SAFETY: the joined shards exist until this value is dropped, and no reference to them is held.
            unsafe { (*shard).queues.part() };
        }
    }
}
