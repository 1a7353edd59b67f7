//! Messages of actors to themselves without latency. Each message waits for an internal timer, which is due at once,
//! and is delivered in place of the timer.

use super::Shard;
use super::waits::is_own_message;
use crate::contract::Message;
use crate::virtual_time::delivery::MessageDelivery;
use crate::virtual_time::event::{Head, Kind, ScheduledEvent};
use crate::virtual_time::table::Table;
use std::collections::VecDeque;

/// Waiting messages by actor, with the tokens of their timers, in the order in which they were sent.
///
/// The messages are due at the instant at which they were sent. So while the run is not paused, only the actor being
/// run can have such messages.
pub(super) struct OwnMessages<M> {
    actor: u32,
    waiting: VecDeque<(u32, ScheduledEvent<M>)>,
    others: Table<u32, VecDeque<(u32, ScheduledEvent<M>)>>,
}

impl<M> Default for OwnMessages<M> {
    fn default() -> OwnMessages<M> {
        OwnMessages {
            actor: super::ROOT,
            waiting: VecDeque::new(),
            others: Table::default(),
        }
    }
}

impl<M> OwnMessages<M> {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.others.is_empty()
    }

    /// Returns the messages of one actor.
    #[inline(always)]
    fn of(&mut self, actor: u32) -> &mut VecDeque<(u32, ScheduledEvent<M>)> {
        if self.actor != actor {
            self.turn_to(actor);
        }
        &mut self.waiting
    }

    #[inline(never)]
    fn turn_to(&mut self, actor: u32) {
        if !self.waiting.is_empty() {
            let waiting = std::mem::take(&mut self.waiting);
            self.others.insert(self.actor, waiting);
        }
        if let Some(waiting) = self.others.remove(&actor) {
            self.waiting = waiting;
        }
        self.actor = actor;
    }

    /// Adds a message.
    #[inline(always)]
    pub(super) fn push(&mut self, actor: u32, token: u32, message: ScheduledEvent<M>) {
        self.of(actor).push_back((token, message));
    }

    /// Takes the message whose timer has this token.
    #[inline(always)]
    fn take(&mut self, actor: u32, token: u32) -> Option<ScheduledEvent<M>> {
        let waiting = self.of(actor);
        // Messages are due in the order in which they were sent, so this is usually the first one.
        let (_, message) = match waiting.pop_front_if(|(own, _)| *own == token) {
            Some(first) => first,
            None => {
                let place = waiting.iter().position(|(own, _)| *own == token)?;
                waiting.remove(place)?
            }
        };
        Some(message)
    }

    /// Takes the first message of an actor.
    fn take_first(&mut self, actor: u32) -> Option<ScheduledEvent<M>> {
        self.of(actor).pop_front().map(|(_, message)| message)
    }

    /// Takes all messages, with their tokens, in no particular order.
    pub(super) fn into_messages(self) -> impl Iterator<Item = (u32, ScheduledEvent<M>)> {
        self.waiting
            .into_iter()
            .chain(self.others.into_values().flatten())
    }

    /// Iterates over all messages with their actors and tokens, in order for each actor.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, &ScheduledEvent<M>)> {
        let others = self.others.iter().map(|(&actor, waiting)| (actor, waiting));
        let all = others.chain([(self.actor, &self.waiting)]);
        all.flat_map(|(actor, waiting)| {
            let each = waiting.iter();
            each.map(move |(token, message)| (actor, *token, message))
        })
    }
}

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
        let token = self.waits.own_message();
        self.own
            .push(me, token, ScheduledEvent::with_body(head, body));
        self.set_timer(0, token);
        span
    }

    /// Returns the message that belongs to the due timer, if there is one.
    #[inline(always)]
    pub(in super::super) fn take_own(&mut self, token: u32) -> Option<ScheduledEvent<M>> {
        if !is_own_message(token) {
            return None;
        }
        self.own.take(self.turn.me, token)
    }

    /// Makes a message of an actor to itself the event being handled.
    #[inline(always)]
    pub(in super::super) fn arrive(&mut self, message: ScheduledEvent<M>) -> MessageDelivery<M> {
        debug_assert!(message.head.kind().has_body());
        let event = self.turn.scratch.event.set(0, message).event();
        self.turn.current = Some(event);
        // SAFETY: a message to the actor itself has a body, which was just written to the shard's memory and is not used
        // otherwise.
        unsafe { MessageDelivery::new(event) }
    }

    /// True if the actor being run may have stashed events, or messages to itself.
    pub(in super::super) fn has_stashed(&mut self) -> bool {
        self.header().stashed != 0 || !self.own.is_empty()
    }

    /// Takes a message that the actor being run had sent to itself before it ended.
    pub(in super::super) fn take_any_own(&mut self) -> Option<ScheduledEvent<M>> {
        if self.own.is_empty() {
            return None;
        }
        self.own.take_first(self.turn.me)
    }
}
