//! The nodes of a task: what each does with what arrives.
//!
//! An [`Operator`] is the plain part of a node, without edges and without waiting: flows in, flows
//! out. [`body`] makes an actor of it.

pub(crate) mod aggregate;
pub(crate) mod alert;
pub(crate) mod body;
pub(crate) mod derive;
pub(crate) mod group;
pub(crate) mod join;
pub(crate) mod sink;
pub(crate) mod window;

use crate::Kind;
use crate::batch::Flow;
use crate::expression::ExpressionError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a node does with what arrives.
pub(crate) trait Operator: Send + 'static {
    /// Takes what arrived on an input, and puts what becomes of it at the end of `out`.
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError>;

    /// Nothing more comes: puts at the end of `out` what was held back.
    fn finish(&mut self, _: &mut Vec<Flow>) -> Result<(), NodeError> {
        Ok(())
    }

    /// What it counts, under these names.
    fn counters(&self) -> Vec<(&'static str, Counter)> {
        Vec::new()
    }
}

/// A number that one node counts up and anybody may read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

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
    /// An expression has no result.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// An aggregate of values that it does not go with.
    #[error("there is no {function} of `{field}`, which is a {kind}")]
    Aggregate {
        /// The function's name.
        function: &'static str,
        /// The field.
        field: String,
        /// The type that was found.
        kind: Kind,
    },
    /// A sum beyond 64 bits.
    #[error("the sum of `{field}` does not fit into 64 bits")]
    Sum {
        /// The field.
        field: String,
    },
    /// Its code panicked.
    #[error("it panicked; the panic's words are in the log")]
    Panicked,
    /// The run of all nodes has ended.
    #[error("the engine has stopped: {0}")]
    Run(String),
}
