//! A node that delivers its input through a queue, and passes it on.

use super::counter::Counters;
use super::queue::{Body, Counts, Queue, SavedQueue};
use super::state::State;
use crate::batch::Flow;
use crate::language::{Parsed, Parser, Problem, fail};
use crate::pipeline::{Text, Writer};
use corsair::edge::Overflow;
use std::fmt;

/// Makes the body for a flow.
pub(crate) type MakeBody = Box<dyn Fn(&Flow) -> Body + Send>;

/// See the [module](self).
pub(crate) struct Sink {
    pub(crate) queue: Queue,
    /// The counters of a queue that only this sink fills. `None`: the engine owns the queue.
    pub(crate) own: Option<Counts>,
    /// The overflow policy of the queue.
    pub(crate) overflow: Overflow,
    pub(crate) body: MakeBody,
    /// The number of bodies so far, from which the next body gets its sequence number.
    pub(crate) posted: u64,
    pub(crate) counters: Counters,
}

impl Sink {
    /// Returns the queue, if only this sink fills it.
    pub(crate) fn own_queue(&self) -> Option<Queue> {
        self.own.as_ref().map(|_| self.queue.clone())
    }

    /// Makes the next body.
    pub(crate) fn next(&mut self, flow: &Flow) -> Body {
        self.posted += 1;
        Body {
            number: self.posted,
            ..(self.body)(flow)
        }
    }

    /// Returns the undelivered bodies, if only this sink fills the queue.
    pub(crate) fn save(&self) -> Option<State> {
        let queue = self.own_queue()?.save();
        let points = queue.bodies.len();
        let saved = SavedSink {
            posted: self.posted,
            queue,
        };
        Some(State::new(points, &saved))
    }

    /// Restores the undelivered bodies of a saved state, which are delivered first.
    pub(crate) fn restore(&mut self, state: &State) {
        if let (Some(counts), Some(saved)) = (&self.own, state.read::<SavedSink>()) {
            self.queue.restore(saved.queue, counts);
            self.posted = saved.posted;
        }
    }
}

/// The saved state of a sink.
#[derive(serde::Serialize, serde::Deserialize)]
struct SavedSink {
    posted: u64,
    queue: SavedQueue,
}

/// The name of the property for the policy of a sink's queue.
pub(crate) const OVERFLOW: &str = "overflow";

/// Parses the policy of a sink's queue.
pub(crate) fn overflow(parser: &mut Parser<'_>) -> Parsed<Overflow> {
    let span = parser.span;
    let text = parser.argument(Parser::string)?;
    match text.parse() {
        Ok(Overflow::Abort) | Err(_) => fail(Problem::Overflow(text.to_string()), span),
        Ok(policy) => Ok(policy),
    }
}

/// Writes the policy of a sink's queue.
pub(crate) fn write_overflow(policy: Option<Overflow>, out: &mut Writer<'_, '_>) -> fmt::Result {
    match policy {
        Some(policy) => out.property(OVERFLOW, &[&Text(&policy.to_string())]),
        None => Ok(()),
    }
}
