//! The work of a node, without edges and without waiting: it turns flows into flows.

use super::clock::Clock;
use super::counter::Counters;
use super::queue::Queue;
use super::state::State;
use crate::batch::{Flow, Watermark};

/// The work of a node on arriving points and windows.
///
/// An operator never fails: a point that it cannot use is counted, logged at a limited rate, and dropped.
pub(crate) trait Operator: Send + 'static {
    /// Takes points or a window from an input, and appends the results to `out`.
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>);

    /// Takes a watermark from the only input, and appends the results to `out`. The watermark is passed on after the
    /// results.
    fn watermark(&mut self, _: &Watermark, _: &mut Vec<Flow>) {}

    /// Returns the maximum number of rows of a batch that [`take`](Operator::take) accepts. Larger batches are split
    /// before the call.
    fn most_rows(&self) -> usize {
        usize::MAX
    }

    /// Returns the clock that drives [`strike`](Operator::strike). Called once.
    fn clock(&mut self) -> Option<Clock> {
        None
    }

    /// Handles a tick of the clock: appends the results to `out`, and returns watermarks that are sent after the
    /// results.
    fn strike(&mut self, _time: i64, _: &mut Vec<Flow>) -> Vec<Watermark> {
        Vec::new()
    }

    /// Handles the end of the stream: appends everything that was deferred to `out`.
    fn finish(&mut self, _: &mut Vec<Flow>) {}

    /// Returns the queues that the operator fills. They are drained before the node ends.
    fn queues(&self) -> Vec<Queue> {
        Vec::new()
    }

    /// Returns the operator's counters with their names.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// Returns the operator's state between points, for the next start; `None` if the operator has no state.
    fn save(&self) -> Option<State> {
        None
    }

    /// Continues from a saved state. Called before anything arrives.
    fn restore(&mut self, _: &State) {}
}

/// The reason why a node stopped. Its task is aborted with this reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NodeError {
    /// The node's code panicked.
    #[error("it panicked; the panic's message is in the log")]
    Panicked,
    /// The run of all nodes has ended.
    #[error("the engine has stopped: {0}")]
    Run(String),
}
