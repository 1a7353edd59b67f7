//! Checkpoints: the states of all nodes at one position in the sequence of writes, taken while tasks run.
//!
//! A [`Barrier`] passes over every edge of every task, between the points of two writes (Chandy and Lamport,
//! "Distributed Snapshots", 1985; aligned, as in Flink). When a node has received the barrier from all of its inputs,
//! it reports its state and passes the barrier on. Until then, elements that arrive after the barrier wait. So the
//! reported states contain exactly the points before the barrier.

use crate::node::State;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The state of a node.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) task: Arc<str>,
    /// The index of the node in its task.
    pub(crate) place: usize,
    pub(crate) state: Option<State>,
    /// The time in which the node has serialized its state.
    pub(crate) took: Duration,
}

/// A mark on the edges of a task. The checkpoint is complete when its last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    collecting: Arc<Collecting>,
    /// A reference that the clones on the edges of one task share.
    passing: Arc<()>,
}

/// An observer of a barrier, which is true while the barrier is on the edges of its task.
#[derive(Debug)]
pub(crate) struct Passing(Weak<()>);

#[derive(Debug)]
struct Collecting {
    reported: Mutex<Vec<Reported>>,
    complete: Option<oneshot::Sender<Vec<Reported>>>,
}

impl Barrier {
    /// Creates a barrier and a receiver. The receiver gets the reports of all nodes when the barrier has passed all
    /// edges.
    pub(crate) fn new() -> (Barrier, oneshot::Receiver<Vec<Reported>>) {
        let (complete, reports) = oneshot::channel();
        let collecting = Collecting {
            reported: Mutex::default(),
            complete: Some(complete),
        };
        let barrier = Barrier {
            collecting: Arc::new(collecting),
            passing: Arc::new(()),
        };
        (barrier, reports)
    }

    /// Returns the barrier for another task.
    pub(crate) fn of_task(&self) -> Barrier {
        Barrier {
            collecting: self.collecting.clone(),
            passing: Arc::new(()),
        }
    }

    /// Returns an observer of the barrier's clones.
    pub(crate) fn passing(&self) -> Passing {
        Passing(Arc::downgrade(&self.passing))
    }

    /// Serializes and reports the state of a node.
    pub(crate) fn report(&self, task: &Arc<str>, place: usize, save: &dyn Fn() -> Option<State>) {
        let begun = Instant::now();
        let state = save();
        let reported = Reported {
            task: task.clone(),
            place,
            state,
            took: begun.elapsed(),
        };
        self.collecting.reported.lock().push(reported);
    }
}

impl Passing {
    /// True if all nodes of the task have reported, or have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        if let Some(complete) = self.complete.take() {
            let _ = complete.send(std::mem::take(self.reported.get_mut()));
        }
    }
}
