//! Messages of actors to themselves that take no time: each waits with a timer of the library's own,
//! which is due at once, and is delivered in its stead.

use super::Shard;
use crate::contract::{Message, Token};
use crate::virtual_time::scheduled::{Head, Kind, Scheduled};
use crate::virtual_time::stored::Stored;

impl<M: Message> Shard<M> {
    /// Sends the actor being run a message that arrives at this instant. Returns its span.
    pub(in super::super) fn post_self(&mut self, body: M) -> u64 {
        let (me, now) = (self.turn.me, self.turn.now);
        let header = self.header();
        if header.seq == u32::MAX {
            return self.refuse(Kind::Message, me, body);
        }
        header.seq += 1;
        let mut head = Head::new(0, Kind::Message, me, me, header.seq, now);
        let (span, current) = (head.span(), self.current());
        (head.cause.trace, head.cause.parent) = if current.cause.trace == 0 {
            (span, 0)
        } else {
            (current.cause.trace, current.span())
        };
        let token = self.waits.own_token();
        let message = Scheduled::with_body(head, body);
        self.own
            .entry(me)
            .or_default()
            .push_back((token.0, message));
        self.set_timer(0, token.0);
        span
    }

    /// The message for which the timer that is due stands, if it does.
    pub(in super::super) fn take_own(&mut self, token: u32) -> Option<Scheduled<M>> {
        if token < Token::OWN || self.own.is_empty() {
            return None;
        }
        let waiting = self.own.get_mut(&self.turn.me)?;
        // They are due in the order in which they were sent, so it is the first.
        let place = waiting.iter().position(|(own, _)| *own == token)?;
        let (_, message) = waiting.remove(place)?;
        if waiting.is_empty() {
            self.own.remove(&self.turn.me);
        }
        Some(message)
    }

    /// Makes such a message the event that has arrived.
    pub(in super::super) fn arrive(&mut self, message: Scheduled<M>) -> *mut Stored<M> {
        let event = self.turn.scratch.set_message(message);
        self.turn.current = event;
        self.turn.arrived = event;
        event
    }

    /// Whether the actor being run may have kept an event, or sent itself one.
    pub(in super::super) fn has_kept(&mut self) -> bool {
        self.header().kept != 0 || !self.own.is_empty()
    }

    /// Takes what the actor being run, which has ended, had sent itself.
    pub(in super::super) fn take_any_own(&mut self) -> Option<Scheduled<M>> {
        if self.own.is_empty() {
            return None;
        }
        let token = self.own.get(&self.turn.me)?.front()?.0;
        self.take_own(token)
    }
}
