//! The delivery of events from a buffer to an actor.

use super::event::Label;
use super::stored_event::{EventPtr, TimerPtr, UnreadEvent};
use crate::contract::{Addr, Event, Token};

/// The events after the current one, from which a body may take messages for the same actor and instant without
/// returning to the engine.
pub(super) struct Upcoming<M> {
    next: *const EventPtr<M>,
    end: *const EventPtr<M>,
}

impl<M> Clone for Upcoming<M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Upcoming<M> {}

impl<M> Upcoming<M> {
    /// No event may be taken.
    pub(super) const NONE: Upcoming<M> = Upcoming {
        next: std::ptr::null(),
        end: std::ptr::null(),
    };

    /// Creates the list of the events of a window after the current one.
    ///
    /// # Safety
    /// Until this value is replaced, the slice and the events stay in place, and [`Upcoming::take_alike`] gets only labels
    /// of messages. The events have not been moved out, and those that `take_alike` returns are not used otherwise.
    #[inline(always)]
    pub(super) unsafe fn new(events: &[EventPtr<M>]) -> Upcoming<M> {
        let std::ops::Range { start, end } = events.as_ptr_range();
        Upcoming { next: start, end }
    }

    /// Takes the next event if it has the same receiver, instant and kind as this label of a message.
    #[inline(always)]
    pub(super) fn take_alike(&mut self, label: &Label) -> Option<MessageDelivery<M>> {
        if self.next == self.end {
            return None;
        }
        // SAFETY: the caller of `new` has guaranteed that the slice is in place from `next` to `end`.
        let event = unsafe { *self.next };
        if !label.is_alike(event.label()) {
            return None;
        }
        self.next = self.next.wrapping_add(1);
        // SAFETY: the caller of `new` has guaranteed that the event has not been moved out and is not used otherwise, and
        // that the label is one of a message, which has a body. The event has the same kind.
        Some(unsafe { MessageDelivery::new(event) })
    }
}

/// A message in its buffer whose body has not been moved out. If it is not taken, it is leaked.
pub(super) struct MessageDelivery<M>(UnreadEvent<M>);

impl<M> MessageDelivery<M> {
    /// Creates the delivery of a message.
    ///
    /// # Safety
    /// The event has a body that has not been moved out and is not used otherwise, and it exists until the
    /// actor has handled it.
    #[inline(always)]
    pub(super) unsafe fn new(message: EventPtr<M>) -> MessageDelivery<M> {
        // SAFETY: the event has not been moved out and is not used otherwise.
        MessageDelivery(unsafe { UnreadEvent::new(message) })
    }

    /// Returns the address of the event.
    #[inline(always)]
    pub(super) fn event(&self) -> EventPtr<M> {
        self.0.event()
    }

    /// Returns the message.
    #[inline(always)]
    pub(super) fn body(&self) -> &M {
        // SAFETY: the caller of `new` has guaranteed that the event has a body that has not been moved out.
        unsafe { &*self.event().body() }
    }

    /// Moves the message out.
    #[inline(always)]
    pub(super) fn take(self) -> Event<M> {
        let event = self.event();
        Event::Message {
            from: Addr(event.label().from),
            // SAFETY: the caller of `new` has guaranteed that the event is in place and has a body. `take` consumes
            // `self`, so the body is moved out once.
            body: unsafe { event.body().read() },
        }
    }

    /// Returns the event, which has not been moved out.
    #[inline(always)]
    pub(super) fn into_unread(self) -> UnreadEvent<M> {
        self.0
    }
}

/// A timer in its buffer, whose token the actor has set.
pub(super) struct TimerDelivery<M>(TimerPtr<M>);

impl<M> TimerDelivery<M> {
    /// Creates the delivery of a timer.
    #[inline(always)]
    pub(super) fn new(timer: TimerPtr<M>) -> TimerDelivery<M> {
        TimerDelivery(timer)
    }

    /// Returns the event for the actor.
    #[inline(always)]
    pub(super) fn take(self) -> Event<M> {
        Event::Timer(Token(self.0.token()))
    }

    /// Returns the event, which has not been moved out.
    #[inline(always)]
    pub(super) fn into_unread(self) -> UnreadEvent<M> {
        self.0.into_unread()
    }
}
