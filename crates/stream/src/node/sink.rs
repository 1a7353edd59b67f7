//! A node that delivers its input through a queue, and passes it on.

use super::counter::Counters;
use super::queue::{Body, Counts, Queue, Undelivered};
use super::state::State;
use crate::batch::Flow;
use corsair::edge::Overflow;

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
        let bodies = self.own_queue()?.rest();
        let points = bodies.len();
        let saved = SavedSink {
            posted: self.posted,
            bodies,
        };
        Some(State::new(points, &saved))
    }

    /// Restores the undelivered bodies of a saved state, which are delivered first.
    pub(crate) fn restore(&mut self, state: &State) {
        if let (Some(counts), Some(saved)) = (&self.own, state.read::<SavedSink>()) {
            self.queue.refill(saved.bodies, counts);
            self.posted = saved.posted;
        }
    }
}

/// The saved state of a sink.
#[derive(serde::Serialize, serde::Deserialize)]
struct SavedSink {
    posted: u64,
    bodies: Vec<Undelivered>,
}
