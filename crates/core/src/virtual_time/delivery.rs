//! The delivery of events from a buffer to an actor.

use super::event::Label;
use super::stored_event::StoredEvent;
use crate::contract::{Addr, Event, Token};

/// The events after the current one, from which a body may take messages for the same actor and instant without
/// returning to the engine.
pub(super) struct Upcoming<M> {
    next: *const *mut StoredEvent<M>,
    end: *const *mut StoredEvent<M>,
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
    /// Until this value is replaced, the events stay in place, and only [`Upcoming::take_alike`] moves them out.
    #[inline(always)]
    pub(super) unsafe fn new(events: &[*mut StoredEvent<M>]) -> Upcoming<M> {
        let std::ops::Range { start, end } = events.as_ptr_range();
        Upcoming { next: start, end }
    }

    /// Takes the next event if it has the same receiver, instant and kind as this label.
    #[inline(always)]
    pub(super) fn take_alike(&mut self, label: &Label) -> Option<*mut StoredEvent<M>> {
        if self.next == self.end {
            return None;
        }
        // SAFETY: the caller of `new` has guaranteed that the events from `next` to `end` are in place.
        unsafe {
            let event = *self.next;
            if !label.is_alike(&(*event).label) {
                return None;
            }
            self.next = self.next.add(1);
            Some(event)
        }
    }
}

/// A message in its buffer whose body has not been moved out. If it is not taken, it is leaked.
pub(super) struct MessageDelivery<M>(*mut StoredEvent<M>);

impl<M> MessageDelivery<M> {
    /// Creates the delivery of a message.
    ///
    /// # Safety
    /// The event has a body that has not been moved out and is not used otherwise, and it exists until the
    /// actor has handled it.
    #[inline(always)]
    pub(super) unsafe fn new(message: *mut StoredEvent<M>) -> MessageDelivery<M> {
        MessageDelivery(message)
    }

    /// Moves the message out.
    #[inline(always)]
    pub(super) fn take(self) -> Event<M> {
        // SAFETY: the caller of `new` has guaranteed that the event is in place and has a body. `take` consumes `self`,
        // so the body is moved out once.
        unsafe {
            Event::Message {
                from: Addr((*self.0).label.from),
                body: StoredEvent::body(self.0).read(),
            }
        }
    }

    /// Returns the pointer to the message; the caller moves the body out.
    #[inline(always)]
    pub(super) fn into_ptr(self) -> *mut StoredEvent<M> {
        self.0
    }
}

/// A timer in its buffer, whose token the actor has set.
pub(super) struct TimerDelivery<M>(*mut StoredEvent<M>);

impl<M> TimerDelivery<M> {
    /// Creates the delivery of a timer.
    ///
    /// # Safety
    /// The event is a timer, and exists until the actor has handled it.
    #[inline(always)]
    pub(super) unsafe fn new(timer: *mut StoredEvent<M>) -> TimerDelivery<M> {
        TimerDelivery(timer)
    }

    /// Returns the event for the actor.
    #[inline(always)]
    pub(super) fn take(self) -> Event<M> {
        // SAFETY: the caller of `new` has guaranteed that the event is in place and is a timer.
        Event::Timer(Token(unsafe { StoredEvent::token(self.0) }))
    }

    /// Returns the pointer to the event.
    #[inline(always)]
    pub(super) fn into_ptr(self) -> *mut StoredEvent<M> {
        self.0
    }
}
