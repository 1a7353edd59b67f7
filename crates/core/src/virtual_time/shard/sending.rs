//! Sending: what an event is labelled with, when it arrives, and where it waits until then.

use super::Shard;
use super::counters::FailureCause;
use super::turn::Route;
use crate::contract::{Addr, Message};
use crate::virtual_time::parcel::{Far, RING};
use crate::virtual_time::scheduled::{Head, Kind, Scheduled};
use crate::virtual_time::stored::Stored;

impl<M: Message> Shard<M> {
    /// When what is sent now from one actor to another arrives.
    #[inline(always)]
    pub(super) fn arrival(&self, from: u32, to: u32) -> u64 {
        if self.settings.network.is_some() {
            return self.arrival_by_network();
        }
        let key = self.settings.latency_key;
        let latency = self.settings.latency.of(key, Addr(from), Addr(to));
        self.turn.now.saturating_add(latency)
    }

    /// The same for the actor being run, which often sends several messages to one receiver.
    #[inline(always)]
    pub(super) fn arrival_at(&mut self, to: u32) -> u64 {
        let pair = (self.turn.me, to);
        if self.turn.route.pair != pair {
            let key = self.settings.latency_key;
            let latency = self.settings.latency.of(key, Addr(pair.0), Addr(to));
            self.turn.route = Route::new(pair, latency);
        }
        self.turn.now.saturating_add(self.turn.route.latency)
    }

    /// Sends a message of the actor being run. Returns its span.
    #[inline(always)]
    pub(in super::super) fn post(
        &mut self,
        kind: Kind,
        to: u32,
        delay: u64,
        answers: u64,
        body: M,
    ) -> u64 {
        let header = self.header();
        if header.seq == u32::MAX {
            return self.refuse(kind, to, body);
        }
        header.seq += 1;
        let seq = header.seq;
        if kind == Kind::Message && !self.settings.traces {
            let route = &self.turn.route;
            if route.sent == self.turn.now && route.pair == (self.turn.me, to) && delay == 0 {
                return self.post_the_same_way(seq, body);
            }
            let time = self.arrival_at(to).saturating_add(delay);
            let head = Head::new(0, Kind::Plain, to, self.turn.me, seq, self.turn.now);
            self.schedule_plain(time, head, body);
            return head.span();
        }
        let time = self.arrival_at(to).saturating_add(delay);
        let mut head = Head::new(0, kind, to, self.turn.me, seq, self.turn.now);
        let span = head.span();
        let current = self.current();
        (head.cause.trace, head.cause.parent) = if current.cause.trace == 0 {
            (span, 0)
        } else {
            (current.cause.trace, current.span())
        };
        if kind == Kind::Reply {
            head.cause.parent = answers;
        }
        self.schedule(time, Scheduled::with_body(head, body));
        span
    }

    /// Sends a message to the receiver of the one before, at the same time and with the same latency.
    #[inline(always)]
    fn post_the_same_way(&mut self, seq: u32, body: M) -> u64 {
        let Route {
            pair: (from, to),
            shard,
            place,
            offset,
            ..
        } = self.turn.route;
        let head = Head::new(offset, Kind::Plain, to, from, seq, self.turn.now);
        let queues = &mut self.queues;
        let buffer = &mut queues.out[shard as usize].ring[(place % RING as u32) as usize];
        // SAFETY: one event is written.
        unsafe {
            buffer.push_with(&mut queues.pool, |place| {
                Stored::write_plain(place, head.label, body)
            });
        }
        head.span()
    }

    /// The actor being run has used up its sequence numbers: the run fails.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&mut self, kind: Kind, to: u32, body: M) -> u64 {
        self.fail(FailureCause::Sends);
        let head = Head::new(0, kind, to, self.turn.me, u32::MAX, self.turn.now);
        self.never.push(Scheduled::with_body(head, body));
        head.span()
    }

    /// Sends an event of the engine's own from the actor being run. It comes after what the actor
    /// has sent before, because it has the number of the last of that, and a later kind.
    pub(in super::super) fn notify(&mut self, kind: Kind, to: u32, parent: u64) {
        let (seq, from) = (self.header().seq, self.turn.me);
        let mut head = Head::new(0, kind, to, from, seq, self.turn.now);
        head.cause.parent = parent;
        let time = self.arrival(from, to);
        self.schedule(time, Scheduled::bare(head));
    }

    /// Schedules what follows from a spawn that `parent` asked for at `asked`.
    pub(in super::super) fn announce(
        &mut self,
        kind: Kind,
        to: u32,
        spawn: (u64, u32, u32),
        addresses: u64,
    ) {
        let (asked, parent, request) = spawn;
        let mut head = Head::new(0, kind, to, parent, request, asked);
        head.cause.parent = addresses;
        let time = asked.saturating_add(self.min_latency());
        self.schedule(time, Scheduled::bare(head));
    }

    /// Puts an event where its receiver's shard will find it. `time` is in a later window.
    #[inline(always)]
    pub(in super::super) fn schedule(&mut self, time: u64, mut event: Scheduled<M>) {
        let window = time >> self.settings.window_bits;
        let offset = self.offset(time);
        event.head.label.set_offset(offset);
        if window - self.window.number >= RING || time == u64::MAX {
            return self.schedule_far(time, event);
        }
        let to = self.places.owner(event.head.to);
        // SAFETY: one event is written.
        unsafe {
            let write = |place| Stored::write(place, event);
            self.queues.push_near(to, window, write);
        }
    }

    /// The same for a message of which nothing is known but its sender.
    #[inline(always)]
    pub(super) fn schedule_plain(&mut self, time: u64, mut head: Head, body: M) {
        let window = time >> self.settings.window_bits;
        let offset = self.offset(time);
        head.label.set_offset(offset);
        if window - self.window.number >= RING || time == u64::MAX {
            return self.schedule_far(time, Scheduled::with_body(head, body));
        }
        let to = self.places.owner(head.to);
        let route = &mut self.turn.route;
        (route.sent, route.shard) = (self.turn.now, to as u32);
        (route.place, route.offset) = ((window % RING) as u32, offset);
        // SAFETY: one event is written.
        unsafe {
            let write = |place| Stored::write_plain(place, head.label, body);
            self.queues.push_near(to, window, write);
        }
    }

    /// Nanoseconds from the begin of its window to this time.
    #[inline(always)]
    pub(in super::super) fn offset(&self, time: u64) -> u32 {
        time as u32 & ((1 << self.settings.window_bits) - 1)
    }

    /// Puts an event that is due beyond the ring on its way.
    #[cold]
    #[inline(never)]
    pub(super) fn schedule_far(&mut self, time: u64, event: Scheduled<M>) {
        if time == u64::MAX {
            return self.never.push(event);
        }
        let to = self.places.owner(event.head.to);
        self.queues
            .push_far(to, to == self.index, Far { time, event });
    }
}
