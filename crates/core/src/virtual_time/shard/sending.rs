//! Sending: the label of an event, the time of its arrival, and its place in the ring or the overflow.
//!
//! A message is *plain* if its sender is its only metadata: the run keeps no traces and has no network, and the message
//! is neither a request nor a reply. A plain message is stored in the *ring* if it is due within the next 63 windows,
//! or else in the *overflow*.
//!
//! | | plain | with a cause | by a network |
//! |---|---|---|---|
//! | one message | `post_plain` | `post` → `post_in` | `post_in_transit` → `post_in` |
//! | several messages, to one receiver | `post_all` → `post_row` | one by one | one by one |
//! | one message, to each of a range of receivers | `post_each` → `post_row` | one by one | one by one |
//! | into the ring | `schedule_plain`, `Queues::push_row` | `schedule` | `schedule` |
//! | into the overflow | `schedule_overflow`, `schedule_row_overflow` | `schedule_overflow` | `schedule_overflow` |

use super::Shard;
use super::counters::FailureCause;
use crate::contract::{Addr, Message};
use crate::virtual_time::event::{Head, Kind, ScheduledEvent};
use crate::virtual_time::outbox::{OverflowEvent, RING};

impl<M: Message> Shard<M> {
    /// Returns the latency between two actors without a network model.
    #[inline(always)]
    fn latency(&self, from: u32, to: u32) -> u64 {
        let key = self.settings.latency_key;
        self.settings.latency.of(key, Addr(from), Addr(to))
    }

    /// Returns the arrival time of a message sent now.
    #[inline(always)]
    pub(super) fn arrival(&self, from: u32, to: u32) -> u64 {
        if self.settings.network.is_some() {
            return self.arrival_by_network();
        }
        self.turn.now.saturating_add(self.latency(from, to))
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
        let transit = self.latency(self.turn.me, to);
        self.post_in(transit.saturating_add(delay), kind, to, answers, body)
    }

    /// Posts a message with only its sender as metadata, without a network model.
    #[inline(always)]
    pub(in super::super) fn post_plain(&mut self, to: u32, delay: u64, body: M) -> u64 {
        let (from, now) = (self.turn.me, self.turn.now);
        let transit = self.latency(from, to).saturating_add(delay);
        let header = self.header();
        if header.seq == u32::MAX {
            return self.refuse(Kind::Message, to, body);
        }
        header.seq += 1;
        let head = Head::new(0, Kind::Plain, to, from, header.seq, now);
        self.schedule_plain(now.saturating_add(transit), head, body);
        head.span()
    }

    /// Sends a message or reply of the actor being run, which arrives `after` nanoseconds from now.
    #[inline(always)]
    pub(in super::super) fn post_in(
        &mut self,
        after: u64,
        kind: Kind,
        to: u32,
        answers: u64,
        body: M,
    ) -> u64 {
        let header = self.header();
        if header.seq == u32::MAX {
            return self.refuse(kind, to, body);
        }
        header.seq += 1;
        let seq = header.seq;
        let time = self.turn.now.saturating_add(after);
        if kind == Kind::Message && !self.settings.traces {
            let head = Head::new(0, Kind::Plain, to, self.turn.me, seq, self.turn.now);
            self.schedule_plain(time, head, body);
            return head.span();
        }
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
        self.schedule(time, ScheduledEvent::with_body(head, body));
        span
    }

    /// Sends several messages of the actor being run to one receiver, each as [`Shard::post_plain`] does.
    #[inline(always)]
    pub(in super::super) fn post_all<const N: usize>(&mut self, to: u32, bodies: [M; N]) {
        let (from, now) = (self.turn.me, self.turn.now);
        let last = u32::try_from(N).ok();
        let last = last.and_then(|count| self.header().seq.checked_add(count));
        let Some(last) = last else {
            for body in bodies {
                self.post_plain(to, 0, body);
            }
            return;
        };
        let first = std::mem::replace(&mut self.header().seq, last).wrapping_add(1);
        self.post_row(from, now, first, to, bodies);
    }

    /// Schedules messages of one sender to one receiver, the first with this sequence number.
    #[inline(always)]
    pub(super) fn post_row<const N: usize>(
        &mut self,
        from: u32,
        sent: u64,
        first: u32,
        to: u32,
        bodies: [M; N],
    ) {
        let time = sent.saturating_add(self.latency(from, to));
        if time >= self.window.ring_end {
            return self.schedule_row_overflow(time, (from, sent, first, to), bodies);
        }
        let head = Head::new(self.offset(time), Kind::Plain, to, from, first, sent);
        let shard = self.places.owner(to);
        let place = self.place(time);
        self.queues.push_row(shard, place, head.label, bodies);
    }

    /// Schedules messages that are due beyond the ring.
    #[cold]
    #[inline(never)]
    fn schedule_row_overflow<const N: usize>(
        &mut self,
        time: u64,
        (from, sent, first, to): (u32, u64, u32, u32),
        bodies: [M; N],
    ) {
        for (body, seq) in bodies.into_iter().zip(first..=u32::MAX) {
            let head = Head::new(self.offset(time), Kind::Plain, to, from, seq, sent);
            self.schedule_overflow(time, ScheduledEvent::with_body(head, body));
        }
    }

    /// Fails the run, because the actor being run has used up its sequence numbers.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&mut self, kind: Kind, to: u32, body: M) -> u64 {
        self.fail(FailureCause::Sends);
        let head = Head::new(0, kind, to, self.turn.me, u32::MAX, self.turn.now);
        self.never.push(ScheduledEvent::with_body(head, body));
        head.span()
    }

    /// Sends an internal event of the engine from the actor being run. The event comes after all messages that the
    /// actor has sent, because it has the sequence number of the last message and a kind that is ordered after
    /// messages.
    pub(in super::super) fn notify(&mut self, kind: Kind, to: u32, parent: u64) {
        let (seq, from) = (self.header().seq, self.turn.me);
        let mut head = Head::new(0, kind, to, from, seq, self.turn.now);
        head.cause.parent = parent;
        let time = self.arrival(from, to);
        self.schedule(time, ScheduledEvent::bare(head));
    }

    /// Schedules the events that follow from a spawn that `parent` requested at `asked`.
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
        self.schedule(time, ScheduledEvent::bare(head));
    }

    /// Schedules an event at the receiver's shard. `time` is in a later window.
    #[inline(always)]
    pub(in super::super) fn schedule(&mut self, time: u64, mut event: ScheduledEvent<M>) {
        let offset = self.offset(time);
        event.head.label.set_offset(offset);
        if time >= self.window.ring_end {
            return self.schedule_overflow(time, event);
        }
        let to = self.places.owner(event.head.to);
        let place = self.place(time);
        let vacancy = self.queues.near(to, place);
        vacancy.write(|place| place.write(event));
    }

    /// Schedules a message with only its sender as metadata.
    #[inline(always)]
    pub(super) fn schedule_plain(&mut self, time: u64, mut head: Head, body: M) {
        let offset = self.offset(time);
        head.label.set_offset(offset);
        if time >= self.window.ring_end {
            return self.schedule_overflow(time, ScheduledEvent::with_body(head, body));
        }
        let to = self.places.owner(head.to);
        let place = self.place(time);
        let vacancy = self.queues.near(to, place);
        vacancy.write(|place| place.write_plain(head.label, body));
    }

    /// Returns the ring index of the window that contains `time`.
    #[inline(always)]
    fn place(&self, time: u64) -> usize {
        ((time >> self.settings.window_bits) % RING) as usize
    }

    /// Returns the nanoseconds from the start of a time's window to the time.
    #[inline(always)]
    pub(in super::super) fn offset(&self, time: u64) -> u32 {
        time as u32 & self.settings.offset_mask
    }

    /// Schedules an event beyond the ring.
    #[cold]
    #[inline(never)]
    pub(super) fn schedule_overflow(&mut self, time: u64, event: ScheduledEvent<M>) {
        if time == u64::MAX {
            return self.never.push(event);
        }
        let to = self.places.owner(event.head.to);
        self.queues
            .push_overflow(to, to == self.index, OverflowEvent { time, event });
    }
}
