//! Pending events and timers of a shard.

use super::timer::Timer;
use crate::virtual_time::buffer::{Buffer, Pool, Vacancy};
use crate::virtual_time::event::Label;
use crate::virtual_time::outbox::{Outbox, OutboxCell, OverflowEvent, next_pending};
use crate::virtual_time::wheel::Wheel;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Events that a shard's actors have sent, and their timers.
///
/// Events are written through [routes](Route) to the memory of this shard. While the shard is [joined](Queues::join)
/// with others, events are written to the memory of the receivers' shards instead.
pub(in super::super) struct Queues<M> {
    /// The events for each receiver's shard. They are boxed and accessed only through this pointer, because the routes
    /// of joined shards point to them.
    out: NonNull<[Outbox<M>]>,
    /// The memory of the events; like `out`, it is accessed only through this pointer.
    pool: NonNull<Pool<M>>,
    /// The route for each receiver's shard.
    routes: Box<[Route<M>]>,
    pub(in super::super) timers: Wheel<Timer>,
    /// Events for windows beyond the ring.
    pub(in super::super) far: Wheel<OverflowEvent<M>>,
    /// The shard of the senders.
    index: usize,
    /// True if, while this shard is joined with others, it has sent to a shard to which it had not sent before.
    pub(in super::super) has_sent: bool,
    _owned: PhantomData<(Outbox<M>, Pool<M>)>,
}

/// The memory to which events for one shard are written.
struct Route<M> {
    outbox: NonNull<Outbox<M>>,
    pool: NonNull<Pool<M>>,
}

impl<M> Queues<M> {
    pub(super) fn new(index: usize, shards: usize, window_bits: u32) -> Queues<M> {
        let out: Box<[Outbox<M>]> = (0..shards).map(|_| Outbox::new()).collect();
        let mut queues = Queues {
            out: NonNull::from(Box::leak(out)),
            pool: NonNull::from(Box::leak(Box::new(Pool::new()))),
            routes: Box::default(),
            timers: Wheel::new(window_bits),
            far: Wheel::new(window_bits),
            index,
            has_sent: false,
            _owned: PhantomData,
        };
        queues.routes = (0..shards).map(|to| queues.route(to)).collect();
        queues
    }

    /// Returns the events in this shard's memory, by receiving shard.
    pub(in super::super) fn out(&self) -> &[Outbox<M>] {
        // SAFETY: the outboxes exist as long as `self`. While they are borrowed, nothing writes to them through a
        // route.
        unsafe { self.out.as_ref() }
    }

    /// Returns the events in this shard's memory, by receiving shard, for changes.
    #[inline(always)]
    pub(in super::super) fn out_mut(&mut self) -> &mut [Outbox<M>] {
        // SAFETY: the outboxes exist as long as `self`, which is borrowed exclusively, so nothing writes to them
        // through a route.
        unsafe { self.out.as_mut() }
    }

    /// Returns the memory of sent events.
    #[inline(always)]
    pub(in super::super) fn pool(&mut self) -> &mut Pool<M> {
        // SAFETY: the pool exists as long as `self`, which is borrowed exclusively, so nothing writes to it through a
        // route.
        unsafe { self.pool.as_mut() }
    }

    /// Returns the wheels, and memory for events that become due.
    pub(in super::super) fn waiting(
        &mut self,
    ) -> (
        &mut Wheel<Timer>,
        &mut Wheel<OverflowEvent<M>>,
        &mut Pool<M>,
    ) {
        // SAFETY: the pool exists as long as `self`, which is borrowed exclusively, so nothing writes to it through a
        // route.
        let pool = unsafe { self.pool.as_mut() };
        (&mut self.timers, &mut self.far, pool)
    }

    /// Returns the route to this shard's own memory for events of one shard.
    fn route(&self, to: usize) -> Route<M> {
        assert!(to < self.out.len());
        let first = self.out.cast::<Outbox<M>>();
        Route {
            // SAFETY: `to` is less than the number of outboxes.
            outbox: unsafe { first.add(to) },
            pool: self.pool,
        }
    }

    /// Returns the events sent to the actors of this shard, including those of other shards only while they
    /// are joined.
    ///
    /// # Safety
    /// While the cell is used, this value exists, and no reference of its other methods to an outbox is held.
    pub(in super::super) unsafe fn own(&self) -> OutboxCell<M> {
        // SAFETY: the outboxes exist as long as `self`; the caller guarantees the rest.
        unsafe { OutboxCell::new(self.route(self.index).outbox.as_ptr()) }
    }

    /// Redirects events for the other shard to that shard's memory.
    ///
    /// # Safety
    /// One thread must use both shards, and both must exist until this one has [parted](Queues::part).
    pub(in super::super) unsafe fn join(&mut self, other: &Queues<M>) {
        self.routes[other.index] = other.route(other.index);
    }

    /// Redirects events for other shards to this shard's memory.
    pub(in super::super) fn part(&mut self) {
        for to in 0..self.out.len() {
            self.routes[to] = self.route(to);
        }
    }

    /// Returns capacity for an event in one of the next 63 windows, at this index of the ring. The caller must write an
    /// event.
    #[inline(always)]
    pub(super) fn near(&mut self, to: usize, place: usize) -> Vacancy<'_, M> {
        let buffer: *mut Buffer<M> = self.buffer(to, place);
        // SAFETY: the buffer exists, and nothing else uses it while this shard is borrowed. If it is not vacant, this
        // reference ends here.
        match unsafe { (*buffer).vacant() } {
            Some(vacancy) => vacancy,
            None => self.grow_buffer(to, place),
        }
    }

    #[inline(always)]
    fn buffer(&mut self, to: usize, place: usize) -> &mut Buffer<M> {
        &mut self.routed(to).ring[place]
    }

    /// Returns the outbox to which events for a shard are written.
    #[inline(always)]
    fn routed(&mut self, to: usize) -> &mut Outbox<M> {
        // SAFETY: a route leads to memory of this shard, or of a joined shard that this thread has borrowed. The memory
        // exists, and nothing else uses it while this shard is borrowed.
        unsafe { self.routes[to].outbox.as_mut() }
    }

    /// Adds a chunk to a full or empty buffer. The first event of a window always needs a chunk, so this method also
    /// marks the window as pending.
    #[cold]
    #[inline(never)]
    fn grow_buffer(&mut self, to: usize, place: usize) -> Vacancy<'_, M> {
        let Route { outbox, pool } = &mut self.routes[to];
        // SAFETY: a route leads to memory that exists, and that no other thread uses while this shard is borrowed.
        // Outbox and pool are separate.
        let (out, pool) = unsafe { (outbox.as_mut(), pool.as_mut()) };
        out.pending |= 1 << place;
        self.has_sent |= to != self.index;
        out.ring[place].grow(pool)
    }

    /// Adds consecutive messages of one sender to one receiver that are due at the same time. `label` belongs to the
    /// first message.
    #[inline(always)]
    pub(super) fn push_row<const N: usize>(
        &mut self,
        to: usize,
        place: usize,
        label: Label,
        bodies: [M; N],
    ) {
        if let Some(vacancy) = self.buffer(to, place).vacant_row() {
            return vacancy.write(label, bodies);
        }
        for (body, index) in bodies.into_iter().zip(0..) {
            let vacancy = self.near(to, place);
            vacancy.write(|place| place.write_plain(label.later(index), body));
        }
    }

    /// Schedules an event beyond the ring; `own` is true if the receiver is an actor of this shard.
    #[cold]
    #[inline(never)]
    pub(super) fn push_overflow(&mut self, to: usize, own: bool, far: OverflowEvent<M>) {
        if own {
            self.far.push(far);
        } else {
            self.has_sent = true;
            self.routed(to).far.push(far);
        }
    }

    /// Takes all events beyond the ring.
    pub(in super::super) fn take_far(&mut self) -> Wheel<OverflowEvent<M>> {
        let empty = self.far.empty();
        std::mem::replace(&mut self.far, empty)
    }

    /// Takes all timers.
    pub(super) fn take_timers(&mut self) -> Wheel<Timer> {
        let empty = self.timers.empty();
        std::mem::replace(&mut self.timers, empty)
    }

    /// Returns the first window after `window` that has an event.
    #[inline]
    pub(super) fn next_window(&self, window: u64, window_bits: u32) -> u64 {
        let out = self.out().iter().map(|out| {
            let far = out.far.iter().map(|far| far.time >> window_bits).min();
            next_pending(out.pending, window).min(far.unwrap_or(u64::MAX))
        });
        out.fold(self.timers.next().min(self.far.next()), u64::min)
    }
}

impl<M> Drop for Queues<M> {
    fn drop(&mut self) {
        // SAFETY: the pointers come from boxes, which are recreated only here. Shards that were joined with this one
        // write to it no more.
        unsafe {
            drop(Box::from_raw(self.out.as_ptr()));
            drop(Box::from_raw(self.pool.as_ptr()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_time::event::{Head, Kind, ScheduledEvent};

    /// Sends a value from the actors of one shard to those of another, due in the window with this index.
    fn send(queues: &mut Queues<Box<u32>>, to: usize, place: usize) {
        let head = Head::new(0, Kind::Message, 1, 2, 3, 4);
        let event = ScheduledEvent::with_body(head, Box::new(7));
        queues.near(to, place).write(|place| place.write(event));
    }

    fn pending(queues: &Queues<Box<u32>>) -> [u64; 2] {
        [0, 1].map(|to| queues.out()[to].pending)
    }

    #[test]
    fn joined_shards_write_where_the_receiver_reads() {
        let mut shards = [0, 1].map(|index| Queues::new(index, 2, 10));
        send(&mut shards[0], 1, 3);
        assert_eq!(pending(&shards[0]), [0, 1 << 3]);
        let [first, second] = &mut shards;
        // SAFETY: this thread uses both queues, which exist until the end of the test.
        unsafe {
            first.join(second);
            second.join(first);
        }
        first.has_sent = false;
        send(first, 0, 4);
        assert!(!first.has_sent, "to its own actors");
        send(first, 1, 5);
        assert!(std::mem::take(&mut first.has_sent));
        send(second, 1, 5);
        send(first, 1, 5);
        assert!(!first.has_sent, "there is something already");
        assert_eq!(pending(first), [1 << 4, 1 << 3]);
        assert_eq!(pending(second), [0, 1 << 5]);
        let mut events = 0;
        second.out_mut()[1].ring[5].for_each(|_| events += 1);
        assert_eq!(events, 3);
        // The receiving shard provides the memory, and gets it back.
        let read = std::mem::replace(&mut second.out_mut()[1].ring[5], Buffer::new());
        second.pool().put(read.into_cleared());
        first.part();
        second.part();
        send(second, 0, 6);
        assert_eq!(
            (pending(first)[0], pending(second)),
            (1 << 4, [1 << 6, 1 << 5])
        );
    }
}
