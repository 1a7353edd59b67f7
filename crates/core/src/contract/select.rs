//! A wait for the first of several events.

use super::address::Addr;
use super::event::{Envelope, Event, SpanId, Token};
use std::fmt;
use std::time::Duration;

/// A list of events that can end a wait. [`AsyncContext::select`](crate::AsyncContext::select) waits for the first of
/// them to arrive, and returns its index in the list. The indices follow the order in which events were added.
pub struct Select<M> {
    arms: Vec<Arm<M>>,
    limit: Option<Duration>,
}

/// A predicate on the sender and the message.
type Accepts<M> = dyn Fn(Addr, &M) -> bool + Send + Sync;

enum Arm<M> {
    Any,
    Message(Box<Accepts<M>>),
    Timer(Token),
    Answer(SpanId),
    Down(Addr),
    Spawned(u32),
}

impl<M> Select<M> {
    /// Creates a selection without events.
    pub fn new() -> Select<M> {
        Select {
            arms: Vec::new(),
            limit: None,
        }
    }

    fn or(mut self, arm: Arm<M>) -> Select<M> {
        self.arms.push(arm);
        self
    }

    /// Adds any event that no other choice accepts.
    pub fn any(self) -> Select<M> {
        self.or(Arm::Any)
    }

    /// Adds any message for which the predicate on its sender and the message returns true.
    pub fn message(self, wanted: impl Fn(Addr, &M) -> bool + Send + Sync + 'static) -> Select<M> {
        self.or(Arm::Message(Box::new(wanted)))
    }

    /// Adds a message from this sender.
    pub fn from(self, sender: Addr) -> Select<M> {
        self.message(move |from, _| from == sender)
    }

    /// Adds a timer with this token.
    pub fn timer(self, token: Token) -> Select<M> {
        self.or(Arm::Timer(token))
    }

    /// Adds the answer to a [`Context::request`](crate::Context::request), or its failure.
    pub fn answer(self, request: SpanId) -> Select<M> {
        self.or(Arm::Answer(request))
    }

    /// Adds the end of another actor. The end must be one that is reported to this actor by [`Event::Down`].
    pub fn down(self, who: Addr) -> Select<M> {
        self.or(Arm::Down(who))
    }

    /// Adds the addresses for this spawn request.
    pub fn spawned(self, request: u32) -> Select<M> {
        self.or(Arm::Spawned(request))
    }

    /// Limits the wait to this time.
    pub fn within(mut self, limit: Duration) -> Select<M> {
        self.limit = Some(limit);
        self
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Returns the index of the first choice that accepts the event.
    pub(crate) fn arm(&self, event: &Event<M>, envelope: &Envelope) -> Option<usize> {
        let fits = |arm: &Arm<M>| match (arm, event) {
            (Arm::Any, _) => true,
            (Arm::Message(wanted), Event::Message { from, body }) => wanted(*from, body),
            (Arm::Timer(token), Event::Timer(due)) => token == due,
            (Arm::Answer(request), Event::Message { .. }) => envelope.answers == *request,
            (Arm::Answer(request), Event::Unanswered { request: asked, .. }) => asked == request,
            (Arm::Down(who), Event::Down { who: ended, .. }) => who == ended,
            (Arm::Spawned(request), Event::Spawned { request: done, .. }) => request == done,
            _ => false,
        };
        self.arms.iter().position(fits)
    }
}

impl<M> Default for Select<M> {
    fn default() -> Self {
        Select::new()
    }
}

impl<M> fmt::Debug for Select<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Select")
            .field("arms", &self.arms.len())
            .field("limit", &self.limit)
            .finish()
    }
}
