//! What is to happen: events on their way and timers, until their window is run.

use super::timer::Timer;
use crate::virtual_time::buffer::{Buffer, Pool};
use crate::virtual_time::parcel::{Far, Outbox, next_pending};
use crate::virtual_time::scheduled::Label;
use crate::virtual_time::stored::Stored;
use crate::virtual_time::wheel::Wheel;

/// Events that a shard's actors have sent, and their timers.
pub(in super::super) struct Queues<M> {
    /// What was sent, by the receivers' shard.
    pub(in super::super) out: Vec<Outbox<M>>,
    pub(in super::super) timers: Wheel<Timer>,
    /// Events for windows beyond the ring.
    pub(in super::super) far: Wheel<Far<M>>,
    /// The shard of the senders.
    index: usize,
    /// For which windows something has been sent to other shards, as in [`Outbox::pending`]; perhaps it was handed
    /// over since.
    pub(in super::super) sent: u64,
    /// Something has been sent to other shards beyond the ring; perhaps it was handed over since.
    pub(in super::super) has_sent_far: bool,
    /// Memory for what is sent.
    pub(in super::super) pool: Pool<M>,
}

impl<M> Queues<M> {
    pub(super) fn new(index: usize, shards: usize, window_bits: u32) -> Queues<M> {
        Queues {
            out: (0..shards).map(|_| Outbox::new()).collect(),
            timers: Wheel::new(window_bits),
            far: Wheel::new(window_bits),
            index,
            sent: 0,
            has_sent_far: false,
            pool: Pool::new(),
        }
    }

    /// Where an event is written for one of the next 63 windows, which has this place in the ring. There is
    /// room for any event, and one is written.
    #[inline(always)]
    pub(super) fn near(&mut self, to: usize, place: usize) -> &mut Buffer<M> {
        if !self.out[to].ring[place].has_room(Stored::<M>::MOST) {
            self.make_room(to, place);
        }
        &mut self.out[to].ring[place]
    }

    /// An empty buffer has no room, so here is where a window begins to have events.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, to: usize, place: usize) {
        let out = &mut self.out[to];
        out.pending |= 1 << place;
        self.sent |= u64::from(to != self.index) << place;
        out.ring[place].grow(&mut self.pool);
    }

    /// Adds messages of one sender to one receiver, which are due at one time and follow each other. The
    /// first has this label.
    #[inline(always)]
    pub(super) fn push_row<const N: usize>(
        &mut self,
        to: usize,
        place: usize,
        label: Label,
        bodies: [M; N],
    ) {
        let buffer = &mut self.out[to].ring[place];
        if N > 0 && buffer.has_room(N * size_of::<Stored<M>>()) {
            // SAFETY: there is room for all.
            return unsafe { buffer.write_row(label, bodies) };
        }
        for (body, index) in bodies.into_iter().zip(0..) {
            let buffer = self.near(to, place);
            // SAFETY: there is room for any event; one is written.
            unsafe {
                buffer.write_with(|place| Stored::write_plain(place, label.later(index), body));
            }
        }
    }

    /// Puts an event that is due beyond the ring on its way; `own`: to an actor of this shard.
    #[cold]
    #[inline(never)]
    pub(super) fn push_far(&mut self, to: usize, own: bool, far: Far<M>) {
        if own {
            self.far.push(far);
        } else {
            self.has_sent_far = true;
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
