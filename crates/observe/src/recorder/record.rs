//! The records in a lane: actors, events and times.

use crate::{Exit, Node, Payload, Population, Status, TraceContext};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A record in a lane.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The time in nanoseconds since the start of the run.
    pub(crate) at: u64,
    /// The number of the reporting actor.
    pub(crate) actor: u32,
    /// The reported event.
    pub(crate) what: RecordedEvent,
}

/// An event of an actor. The type is small, because a run may record millions of events per second.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RecordedEvent {
    /// The actor has appeared.
    Node(Box<Node>),
    /// The name of an actor that no graph shows.
    Name(Box<str>),
    /// The actor knows the actor with this number.
    Edge(u32),
    /// The actor no longer knows the actor with this number.
    Forget(u32),
    /// The actor has ended.
    Done(Exit),
    /// An actor's end of an exchange.
    Span {
        context: TraceContext,
        kind: u16,
        annotation: Annotation,
        status: Status,
    },
    /// The actor has received a message.
    Message {
        sender: u32,
        kind: u16,
        payload: Payload,
    },
    /// An additional line in the log of messages.
    Note(Box<str>),
    /// `count` actors have appeared together; this actor is the first of them. This record is not sent to other
    /// processes, which receive a node for each member.
    #[serde(skip)]
    Population {
        count: u32,
        population: Arc<dyn Population>,
    },
}

/// The end of an exchange that a record describes, and the direction of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Annotation {
    /// The client has sent a message that expects no response.
    Tell,
    /// The client has sent a request.
    ClientSend,
    /// The server has received the message.
    ServerReceive,
    /// The server has sent the response.
    ServerSend,
    /// The client has received the response.
    ClientReceive,
}

impl Record {
    /// Returns the key by which the output is sorted. Records with equal keys stay in the order of recording. Nodes and
    /// names have the lowest keys of an instant, so that other records of the instant can refer to them. The key is a
    /// single number, because millions of keys are compared.
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
