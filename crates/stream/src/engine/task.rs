//! A running task: its origin, its nodes, its edges, and its end.

use super::entrance::Entrance;
use super::status::{EdgeStatus, NodeStatus, TaskState, TaskStatus};
use crate::node::body::Ending;
use crate::node::faults::Faults;
use crate::node::latest::LatestByGroup;
use crate::node::operator::NodeError;
use crate::node::queue::Queue;
use crate::node::{Counters, State};
use crate::pipeline::Pipeline;
use corsair::edge::{AbortHandle, Meter};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// The origin of a stored task, which a process needs to restart it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TaskOrigin {
    /// The generation of the engine's routes from which on the task takes points of the log.
    pub(super) since: u64,
    /// The creation time in nanoseconds since 1970.
    pub(super) created: i64,
    /// The lengths of the files of its alerts, by path.
    pub(super) files: BTreeMap<String, u64>,
}

/// A task that runs, or has ended.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: Arc<str>,
    pub(super) pipeline: Pipeline,
    pub(super) nodes: Vec<NodeParts>,
    pub(super) edges: Vec<EdgeParts>,
    pub(super) abort: AbortHandle,
    /// The queue of all `log` nodes of the engine.
    pub(super) log: Queue,
    /// The origin, which stays the same over restarts, except `since`, whose current value is in
    /// the field below.
    pub(super) origin: TaskOrigin,
    /// The generation of the routes from which on the task takes points of a log.
    pub(super) since: Arc<AtomicU64>,
    /// The saved states of the task's nodes after a suspension, by node index.
    pub(super) kept: Mutex<Vec<(usize, State)>>,
    /// The number of the task's nodes that have not ended.
    pub(super) running: AtomicUsize,
    pub(super) failure: OnceLock<Failure>,
    pub(super) end: Notify,
    /// The first edge of each `from`, by node index.
    pub(super) entrances: Vec<Arc<Entrance>>,
}

/// The public parts of a node.
#[derive(Debug, Default)]
pub(super) struct NodeParts {
    pub(super) counters: Counters,
    /// Set for a node that evaluates expressions.
    pub(super) faults: Option<Faults>,
    /// Set for an `http_out`.
    pub(super) latest: Option<LatestByGroup>,
    /// The queues of an `http_post`, or of an alert's files and receivers.
    pub(super) queues: Vec<Queue>,
}

/// The public parts of an edge.
#[derive(Debug)]
pub(super) struct EdgeParts {
    /// The node where the edge begins; `None` for writes.
    pub(super) from: Option<usize>,
    pub(super) to: usize,
    pub(super) meter: Meter,
}

/// The reason for a task's early end.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) node: usize,
    pub(super) error: NodeError,
}

impl Task {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Aborts the task: drops the contents of its edges, so that its nodes end.
    pub(super) fn abort(&self) {
        self.abort.abort();
        for queue in self.queues() {
            queue.discard();
        }
        self.log.wake_senders();
    }

    /// Returns the queues of the nodes that deliver output to files or receivers.
    pub(super) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.nodes.iter().flat_map(|node| &node.queues)
    }

    /// Returns the reason why the inputs of the task's nodes have ended, or will end.
    pub(super) fn ending(&self, suspended: bool) -> Ending {
        match (self.abort.is_aborted(), suspended) {
            (true, _) => Ending::Aborted,
            (false, true) => Ending::Suspended,
            (false, false) => Ending::Stream,
        }
    }

    /// Fails the task because a node has failed. Only the first error is stored.
    pub(super) fn fail(&self, node: usize, error: NodeError) {
        let _ = self.failure.set(Failure { node, error });
        self.abort();
    }

    /// Counts the end of a node. True if it was the last one.
    pub(super) fn node_ended(&self) -> bool {
        let last = self.running.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.end.notify_waiters();
        }
        last
    }

    /// Records that the run has ended before the task.
    pub(super) fn lost(&self, reason: &str) {
        if self.running.swap(0, Ordering::AcqRel) > 0 {
            self.fail(0, NodeError::Run(reason.into()));
            self.end.notify_waiters();
        }
    }

    /// True until the task's last node has ended or one of its nodes has failed.
    pub(super) fn is_running(&self) -> bool {
        self.failure.get().is_none() && self.running.load(Ordering::Acquire) > 0
    }

    /// Waits until all nodes of the task have ended.
    pub(super) async fn ended(&self) {
        loop {
            let notified = self.end.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            notified.await;
        }
    }

    /// Returns the contents of the `http_out` with this name.
    pub(super) fn endpoint(&self, name: &str) -> Option<&LatestByGroup> {
        let mut endpoints = self.shown();
        endpoints.find_map(|(endpoint, latest)| (**endpoint == *name).then_some(latest))
    }

    /// Returns the contents of each `http_out`.
    pub(super) fn endpoints(&self) -> Vec<(Arc<str>, LatestByGroup)> {
        let shown = self.shown();
        shown
            .map(|(endpoint, latest)| (endpoint.clone(), latest.clone()))
            .collect()
    }

    fn shown(&self) -> impl Iterator<Item = (&Arc<str>, &LatestByGroup)> {
        let nodes = self.pipeline.nodes().iter().zip(&self.nodes);
        nodes.filter_map(|(node, parts)| {
            Some((node.what.definition().endpoint()?, parts.latest.as_ref()?))
        })
    }

    pub(super) fn status(&self) -> TaskStatus {
        let nodes = self.pipeline.nodes();
        let state = match self.failure.get() {
            Some(Failure { node, error }) => TaskState::Failed {
                node: nodes[*node].name.to_string(),
                reason: error.to_string(),
            },
            None if self.running.load(Ordering::Acquire) == 0 => TaskState::Ended,
            None => TaskState::Running,
        };
        TaskStatus {
            name: self.name.to_string(),
            state,
            text: self.pipeline.to_string(),
            nodes: nodes
                .iter()
                .zip(&self.nodes)
                .map(|(node, parts)| NodeStatus {
                    name: node.name.to_string(),
                    text: self.pipeline.written(node).to_string(),
                    counters: parts.counters.iter().map(|(n, c)| (*n, c.get())).collect(),
                    last_error: parts.faults.as_ref().and_then(Faults::last),
                })
                .collect(),
            edges: self
                .edges
                .iter()
                .map(|edge| EdgeStatus {
                    from: edge
                        .from
                        .map_or("stream".into(), |at| nodes[at].name.to_string()),
                    to: nodes[edge.to].name.to_string(),
                    statistics: edge.meter.read(),
                })
                .collect(),
        }
    }
}
