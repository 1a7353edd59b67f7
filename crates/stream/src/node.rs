//! The nodes of a task: what each does with what arrives.
//!
//! An [`Operator`] is the plain part of a node, without edges and without waiting: flows in, flows
//! out. [`body`] makes an actor of it. An operator never fails: a point that it cannot take is
//! counted, logged at a limited rate, and left out.

pub(crate) mod aggregate;
pub(crate) mod alert;
pub(crate) mod body;
pub(crate) mod buffer;
pub(crate) mod default;
pub(crate) mod derivative;
pub(crate) mod derive;
pub(crate) mod faults;
pub(crate) mod group;
pub(crate) mod http_out;
pub(crate) mod http_post;
pub(crate) mod join;
pub(crate) mod log;
pub(crate) mod queue;
pub(crate) mod retain;
pub(crate) mod series;
pub(crate) mod stats;
pub(crate) mod union;
pub(crate) mod window;

use crate::batch::{Flow, Group};
use crate::block::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a node does with what arrives.
pub(crate) trait Operator: Send + 'static {
    /// Takes what arrived on an input, and appends what becomes of it to `out`.
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>);

    /// Rows of a batch that it takes at once; larger ones are divided before.
    fn most_rows(&self) -> usize {
        usize::MAX
    }

    /// A clock at whose strikes it hands something on. Asked for once.
    fn clock(&mut self) -> Option<stats::Clock> {
        None
    }

    /// Its clock has struck: appends what it hands on to `out`.
    fn strike(&mut self, _time: i64, _: &mut Vec<Flow>) {}

    /// The stream has ended: appends what was held back to `out`.
    fn finish(&mut self, _: &mut Vec<Flow>) {}

    /// The queues of what it delivers itself, which are empty before it ends.
    fn queues(&self) -> Vec<queue::Queue> {
        Vec::new()
    }

    /// What it keeps between points, for the next start; `None`: nothing.
    fn save(&self) -> Option<Kept> {
        None
    }

    /// Goes on from what was saved. Called before anything arrives.
    fn restore(&mut self, _: Kept) {}
}

/// What a node keeps between points, by group.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kept {
    /// Of a `window`: the end of the window being filled, and its points.
    Windows(Vec<(Group, i64, Vec<Block>)>),
    /// Of a `join`: what groups have, and what no group has yet.
    Join(join::Saved),
    /// Of a `union`, for each input.
    Union(Vec<union::SavedInput>),
    /// Of an `alert`: the levels, and for each handler what has not been delivered.
    Alert(Vec<(Group, alert::State)>, Vec<Vec<String>>),
    /// Of a sink: bodies that have not been delivered.
    Bodies(Vec<String>),
    /// Of a `stats`: how many points there have been.
    Counts(Vec<(Group, i64)>),
    /// Of a `derivative`: the last point's time and value.
    Last(Vec<(Group, (i64, f64))>),
}

impl Kept {
    /// How many points, or bodies.
    pub(crate) fn len(&self) -> usize {
        match self {
            Kept::Windows(windows) => {
                let blocks = windows.iter().flat_map(|(_, _, blocks)| blocks);
                blocks.map(Block::rows).sum()
            }
            Kept::Join(saved) => saved.points(),
            Kept::Union(inputs) => inputs.iter().map(union::SavedInput::points).sum(),
            Kept::Alert(_, bodies) => bodies.iter().map(Vec::len).sum(),
            Kept::Bodies(bodies) => bodies.len(),
            Kept::Counts(_) | Kept::Last(_) => 0,
        }
    }
}

/// A number that one node counts up and anybody may read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

/// The counters of a node under their names.
pub(crate) type Counters = Vec<(&'static str, Counter)>;

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a node cannot go on. Its task is aborted with this reason, and no other.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NodeError {
    /// Its code panicked.
    #[error("it panicked; the panic's words are in the log")]
    Panicked,
    /// The run of all nodes has ended.
    #[error("the engine has stopped: {0}")]
    Run(String),
}
