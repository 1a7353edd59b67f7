//! The contents of a lane: actors, events and times.

use crate::{Exit, Node, Payload, Population, Status, TraceContext};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The time in nanoseconds of the run.
    pub(crate) at: u64,
    /// The number of the reporting actor.
    pub(crate) actor: u32,
    /// The contents.
    pub(crate) what: RecordedEvent,
}

/// An event. Small, because a run may record millions of them a second.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RecordedEvent {
    /// The actor has appeared.
    Node(Box<Node>),
    /// The name of the actor, which no graph shows.
    Name(Box<str>),
    /// It knows the actor with this number.
    Edge(u32),
    /// It no longer knows the actor with this number.
    Forget(u32),
    /// It has ended.
    Done(Exit),
    /// Its end of an exchange.
    Span {
        context: TraceContext,
        kind: u16,
        annotation: Annotation,
        status: Status,
    },
    /// It has received a message.
    Message {
        sender: u32,
        kind: u16,
        payload: Payload,
    },
    /// A separate line in the log of messages.
    Note(Box<str>),
    /// `count` actors have appeared together, from this one on. It is not sent to other processes; they get a
    /// node for each.
    #[serde(skip)]
    Population {
        count: u32,
        population: Arc<dyn Population>,
    },
}

/// The end of an exchange, and the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Annotation {
    /// Client send, of a message without a response.
    Tell,
    /// Client send, of a request.
    ClientSend,
    /// Server receive.
    ServerReceive,
    /// Server send.
    ServerSend,
    /// Client receive.
    ClientReceive,
}

impl Record {
    /// Returns the sort key of the output; equal keys keep the order of recording. Nodes and names come
    /// first, so that records of the same instant can refer to them. It is one number, because millions of
    /// keys are compared.
    #[inline]
    pub(crate) fn key(&self) -> u128 {
        let first = matches!(
            self.what,
            RecordedEvent::Node(_) | RecordedEvent::Population { .. } | RecordedEvent::Name(_)
        );
        let later = u64::from(!first);
        u128::from(self.at) << 64 | u128::from(later << 32 | u64::from(self.actor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_less_than_a_cache_line() {
        assert_eq!(size_of::<Record>(), 48);
    }
}
