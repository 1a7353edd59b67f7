//! What lies in a mailbox: an event and what is known about it.

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
    /// Who is notified if the receiver cannot answer.
    pub(crate) asks: Asks,
    /// Under which epoch of the [`Counters`](super::counters::Counters) it counts as sent.
    pub(crate) epoch: u8,
}

/// Who waits for the answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// It is not a request.
    None,
    /// The sender, somehow.
    Sender,
    /// One wait of the sender; no other wait learns that there is no answer.
    Wait,
}

impl<M> MailboxEntry<M> {
    /// Whether it is for a wait of the library alone: its timer, or that its request will not be
    /// answered. To any other wait it does not exist.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        match self.event {
            Event::Timer(token) => token.0 >= Token::OWN,
            Event::Unanswered { .. } => self.asks == Asks::Wait,
            _ => false,
        }
    }

    /// A message of the actor that `span` names. In a trace that is `known`, with its parent there, or
    /// else it begins its own.
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

    /// An event that the executor itself makes: outside of any trace, and never dropped.
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

    /// Whether the bound of a mailbox counts it.
    #[inline]
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.event, Event::Message { .. })
    }

    /// What the receiver `me` may know about it.
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
