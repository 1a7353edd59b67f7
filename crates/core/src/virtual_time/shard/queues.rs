//! What is to happen: events on their way and timers, until their window is run.

use super::timer::Timer;
use crate::virtual_time::buffer::{Buffer, Pool};
use crate::virtual_time::parcel::{Far, Outbox, RING, next_pending};
use crate::virtual_time::wheel::Wheel;

/// Events that a shard's actors have sent, and their timers.
pub(in super::super) struct Queues<M> {
    /// What was sent, by the receivers' shard.
    pub(in super::super) out: Vec<Outbox<M>>,
    pub(in super::super) timers: Wheel<Timer>,
    /// Events for windows beyond the ring.
    pub(in super::super) far: Wheel<Far<M>>,
    /// Memory for what is sent.
    pub(in super::super) pool: Pool<M>,
}

impl<M> Queues<M> {
    pub(super) fn new(shards: usize, window_bits: u32) -> Queues<M> {
        Queues {
            out: (0..shards).map(|_| Outbox::new()).collect(),
            timers: Wheel::new(window_bits),
            far: Wheel::new(window_bits),
            pool: Pool::new(),
        }
    }

    /// Where an event is written for `window`, one of the next 63, and memory for it. It is written.
    #[inline(always)]
    pub(super) fn near(&mut self, to: usize, window: u64) -> (&mut Buffer<M>, &mut Pool<M>) {
        let out = &mut self.out[to];
        let place = window % RING;
        out.pending |= 1 << place;
        (&mut out.ring[place as usize], &mut self.pool)
    }

    /// Puts an event that is due beyond the ring on its way; `own`: to an actor of this shard.
    #[cold]
    #[inline(never)]
    pub(super) fn push_far(&mut self, to: usize, own: bool, far: Far<M>) {
        if own {
            self.far.push(far);
        } else {
            self.out[to].far.push(far);
        }
    }

    /// The first window after `window` for which there is anything.
    #[inline]
    pub(super) fn next_window(&self, window: u64, window_bits: u32) -> u64 {
        let out = self.out.iter().map(|out| {
            let far = out.far.iter().map(|far| far.time >> window_bits).min();
            next_pending(out.pending, window).min(far.unwrap_or(u64::MAX))
        });
        out.fold(self.timers.next().min(self.far.next()), u64::min)
    }
}
