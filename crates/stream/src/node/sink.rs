//! A node that delivers what arrives through a queue, and passes it on.

use super::operator::Counters;
use super::queue::{Body, Counts, Queue};
use super::state::State;
use crate::batch::Flow;
use corsair::edge::Overflow;

/// Makes the body that is delivered for a flow.
pub(crate) type MakeBody = Box<dyn Fn(&Flow) -> Body + Send>;

/// See the [module](self).
pub(crate) struct Sink {
    pub(crate) queue: Queue,
    /// What counts bodies of a queue that this sink alone fills. `None`: the engine owns the queue.
    pub(crate) own: Option<Counts>,
    /// What happens to a body for a full queue.
    pub(crate) overflow: Overflow,
    pub(crate) body: MakeBody,
    pub(crate) counters: Counters,
}

impl Sink {
    /// The queue, if this sink alone fills it.
    pub(crate) fn own_queue(&self) -> Option<Queue> {
        self.own.as_ref().map(|_| self.queue.clone())
    }

    /// Delivers first what a saved state had not delivered.
    pub(crate) fn restore(&self, state: &State) {
        if let (Some(counts), Some(bodies)) = (&self.own, state.read::<Vec<String>>()) {
            self.queue.refill(bodies, counts);
        }
    }
}
