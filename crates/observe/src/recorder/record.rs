//! The contents of a lane: actors, events and times.

use crate::{Exit, Node, Payload, Population, Status, TraceContext};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// When, in nanoseconds of the run.
    pub(crate) at: u64,
    /// The number of the actor that tells.
    pub(crate) actor: u32,
    /// What.
    pub(crate) what: What,
}

/// An event. Small, because a run may record millions of them a second.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// The actor has appeared.
    Node(Box<Node>),
    /// The name of the actor, which no graph shows.
    Name(Box<str>),
    /// It knows the actor with this number.
    Edge(u32),
    /// It does no longer.
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
    /// A line of its own in the log of messages.
    Note(Box<str>),
    /// It has appeared, and the actors after it, `count` of them together. It goes to no other process; a node for each
    /// does.
    #[serde(skip)]
    Population {
        count: u32,
        population: Arc<dyn Population>,
    },
}

/// Which end of an exchange, and which way.
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
    /// What the output is ordered by; equal keys keep the order in which they were recorded. Nodes
    /// and names come first, so that whatever names them at the same instant finds them.
    /// One number, because millions of them are compared.
    #[inline]
    pub(crate) fn key(&self) -> u128 {
        let first = matches!(
            self.what,
            What::Node(_) | What::Population { .. } | What::Name(_)
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
