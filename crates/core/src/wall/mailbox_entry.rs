//! The entry of a mailbox: an event and its metadata.

use crate::contract::{Addr, Envelope, Event, SpanId, Time, Token};

/// An event on its way to an actor.
#[derive(Debug)]
pub(crate) struct MailboxEntry<M> {
    pub(crate) event: Event<M>,
    pub(crate) sent: Time,
    pub(crate) trace: SpanId,
    pub(crate) parent: SpanId,
    pub(crate) span: SpanId,
    pub(crate) answers: SpanId,
    /// The wait that is notified if the receiver cannot answer.
    pub(crate) asks: Asks,
    /// The epoch of the [`Counters`](super::counters::Counters) in which the event counts as sent.
    pub(crate) epoch: u8,
}

/// The recipient of the notification that a message gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// No one: the message is not a request.
    None,
    /// The sender, by an ordinary event.
    Sender,
    /// One wait of the sender; no other wait is notified.
    Wait,
}

impl<M> MailboxEntry<M> {
    /// True for an event that only the library's own waits receive: a time-out, or the failure of a request.
    /// Other waits ignore it.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        match self.event {
            Event::Timer(token) => token.0 >= Token::OWN,
            Event::Unanswered { .. } => self.asks == Asks::Wait,
            _ => false,
        }
    }

    /// Creates a message of the actor in `span`. It belongs to the trace in `known`, with the parent in `known`, or
    /// starts its own trace.
    #[inline]
    pub(crate) fn message(
        span: SpanId,
        body: M,
        sent: Time,
        known: (SpanId, SpanId),
    ) -> MailboxEntry<M> {
        let from = span.sender();
        let (trace, parent) = match known {
            (SpanId::NONE, _) => (span, SpanId::NONE),
            known => known,
        };
        MailboxEntry {
            trace,
            parent,
            span,
            ..MailboxEntry::system(Event::Message { from, body }, sent)
        }
    }

    /// Creates an event of the executor, which belongs to no trace and is never dropped.
    #[inline]
    pub(crate) fn system(event: Event<M>, sent: Time) -> MailboxEntry<M> {
        MailboxEntry {
            event,
            sent,
            trace: SpanId::NONE,
            parent: SpanId::NONE,
            span: SpanId::NONE,
            answers: SpanId::NONE,
            asks: Asks::None,
            epoch: 0,
        }
    }

    /// True if the entry counts against the capacity of a mailbox.
    #[inline]
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.event, Event::Message { .. })
    }

    /// Returns the metadata for the receiver `me`.
    #[inline]
    pub(crate) fn envelope(&self, me: Addr) -> Envelope {
        let from = match self.event {
            Event::Message { from, .. } => from,
            Event::Down { who, .. } | Event::Unanswered { who, .. } => who,
            Event::DeadLetter { .. } => self.span.sender(),
            Event::Timer(_) | Event::Spawned { .. } => me,
        };
        Envelope {
            from,
            sent: self.sent,
            trace: self.trace,
            parent: self.parent,
            span: self.span,
            answers: self.answers,
        }
    }
}
