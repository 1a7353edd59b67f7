//! Events on their way from a buffer to an actor.

use super::stored::Stored;
use crate::contract::{Addr, Event, Token};

/// A message in its buffer, of which the body has not been moved out. If it is not taken, it is leaked.
pub(super) struct MessageDelivery<M>(*mut Stored<M>);

impl<M> MessageDelivery<M> {
    /// The delivery of a message.
    ///
    /// # Safety
    /// The event has a body that has not been moved out and is not used otherwise, and is there until the actor has
    /// handled it.
    #[inline(always)]
    pub(super) unsafe fn new(message: *mut Stored<M>) -> MessageDelivery<M> {
        MessageDelivery(message)
    }

    /// Moves the message out.
    #[inline(always)]
    pub(super) fn take(self) -> Event<M> {
        // SAFETY: the event is there and has a body, as `new` was promised, and `self` is gone when that is moved out.
        unsafe {
            Event::Message {
                from: Addr((*self.0).label.from),
                body: Stored::body(self.0).read(),
            }
        }
    }

    /// Where the message is; whoever asks moves it out.
    #[inline(always)]
    pub(super) fn into_ptr(self) -> *mut Stored<M> {
        self.0
    }
}

/// A timer in its buffer whose token is the actor's.
pub(super) struct TimerDelivery<M>(*mut Stored<M>);

impl<M> TimerDelivery<M> {
    /// The delivery of a timer.
    ///
    /// # Safety
    /// The event is a timer, and is there until the actor has handled it.
    #[inline(always)]
    pub(super) unsafe fn new(timer: *mut Stored<M>) -> TimerDelivery<M> {
        TimerDelivery(timer)
    }

    /// The event as an actor sees it.
    #[inline(always)]
    pub(super) fn take(self) -> Event<M> {
        // SAFETY: the event is there and is a timer, as `new` was promised.
        Event::Timer(Token(unsafe { Stored::token(self.0) }))
    }

    /// Where the event is.
    #[inline(always)]
    pub(super) fn into_ptr(self) -> *mut Stored<M> {
        self.0
    }
}
