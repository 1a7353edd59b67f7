//! Operations on the event being handled: its trace, and taking it by the waiting actor.

use super::Shard;
use crate::contract::{Event, Message, SpanId};
use crate::virtual_time::delivery::MessageDelivery;
use crate::virtual_time::event::{Head, ScheduledEvent};
use crate::virtual_time::stored_event::{EventPtr, UnreadEvent};
use crate::virtual_time::window_timers::WindowTimer;

impl<M: Message> Shard<M> {
    /// Starts a new trace for the messages sent from here on.
    pub(in super::super) fn new_trace(&mut self) {
        let mut head = self.current();
        head.cause.trace = 0;
        self.resume(head);
    }

    /// Makes this span of this trace the cause of the messages sent from here on.
    #[inline]
    pub(in super::super) fn continue_trace(&mut self, trace: SpanId, parent: SpanId) {
        let mut head = self.current();
        head.cause.trace = trace.as_u64();
        // A span is a sender and its sequence number.
        (head.label.from, head.label.seq) = (parent.sender().0, parent.as_u64() as u32);
        self.resume(head);
    }

    /// Makes a stashed event the cause of the messages sent from here on.
    pub(in super::super) fn resume(&mut self, head: Head) {
        self.turn.resumed = head;
        self.turn.current = None;
    }

    /// Turns a timer that is due within the window into an event. The event is valid until the next call.
    #[inline]
    pub(in super::super) fn timer_event(&mut self, timer: &WindowTimer) -> EventPtr<M> {
        let offset = (timer.time - self.window.base) as u32;
        let (me, token) = (self.turn.me, timer.token);
        self.turn.scratch.event.set_timer(0, offset, me, token)
    }

    /// Makes a stashed event the cause of later messages like [`Shard::resume`], and sets the kind of the event's
    /// message, if it has one, for reports.
    pub(in super::super) fn resume_stashed(&mut self, head: Head, kind: Option<usize>) {
        self.turn.kind = kind.unwrap_or(self.turn.kind);
        self.resume(head);
    }

    /// Takes the event that has arrived, if it was not taken yet.
    #[inline(always)]
    pub(in super::super) fn take_arrival(&mut self) -> Option<ScheduledEvent<M>> {
        let event = self.turn.arrival.take()?;
        Some(event.read(self.turn.now))
    }

    /// Takes the event in the form for an actor that waits for any event.
    #[inline(always)]
    pub(in super::super) fn take_event(&mut self) -> Option<Event<M>> {
        match self.turn.arrival.take()?.read_message() {
            Ok((from, body)) => Some(Event::Message { from, body }),
            Err(event) => self.take_other(event),
        }
    }

    #[inline(never)]
    fn take_other(&mut self, event: UnreadEvent<M>) -> Option<Event<M>> {
        event.read(self.turn.now).for_actor()
    }

    /// Advances to the next message of the same instant, if the receiver may take it.
    #[inline(always)]
    pub(in super::super) fn next_of_row(&mut self) -> Option<MessageDelivery<M>> {
        let current = self.turn.current?;
        let message = self.turn.upcoming.take_alike(current.label())?;
        self.window.cursor += 1;
        self.turn.current = Some(message.event());
        Some(message)
    }

    /// Takes the event that has arrived, unless `except` is true for its head.
    pub(in super::super) fn take_arrival_unless(
        &mut self,
        except: impl Fn(&Head) -> bool,
    ) -> Option<ScheduledEvent<M>> {
        let arrival = self.turn.arrival.as_ref()?;
        if except(&arrival.event().head(self.turn.now)) {
            return None;
        }
        self.take_arrival()
    }

    /// Stashes an event of the actor being run.
    pub(in super::super) fn stash_event(&mut self, event: ScheduledEvent<M>) {
        let mut list = self.header().stashed;
        self.stash.push(&mut list, event);
        self.header().stashed = list;
    }

    /// Returns true if the actor being run has stashed events.
    #[inline(always)]
    pub(in super::super) fn has_stashed_events(&mut self) -> bool {
        self.header().stashed != 0
    }

    /// Takes the first stashed event of the actor being run.
    #[inline(always)]
    pub(in super::super) fn take_stashed(&mut self) -> Option<ScheduledEvent<M>> {
        let mut list = self.header().stashed;
        if list == 0 {
            return None;
        }
        let event = self.stash.pop(&mut list);
        self.header().stashed = list;
        event
    }

    /// Returns the first entry that the actor being run has stashed after the entry with this number.
    pub(in super::super) fn stashed_after(&mut self, seen: u64) -> Option<u32> {
        let list = self.header().stashed;
        self.stash.first_after(list, seen)
    }

    /// Returns the stashed entry of the actor being run that follows the entry `at`.
    pub(in super::super) fn stashed_next(&mut self, at: u32) -> Option<u32> {
        let list = self.header().stashed;
        self.stash.next(list, at)
    }

    /// Removes an entry that was lent out.
    pub(in super::super) fn remove_stashed(&mut self, at: u32) {
        let mut list = self.header().stashed;
        self.stash.unlink(&mut list, at);
        self.header().stashed = list;
    }
}
