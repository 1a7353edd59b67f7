//! The building blocks of nodes: the traits that each kind implements, and their common parts.
//!
//! An [`Operator`] is the work of a node, without edges and without waiting; [`body`] makes an actor of it. Operators
//! store state per group through [`series`] and retained rows through [`retain`], because these two modules enforce the
//! bounds. The kinds of nodes are in [`nodes`](crate::nodes).

pub(crate) mod append;
pub(crate) mod body;
pub(crate) mod clock;
pub(crate) mod counter;
pub(crate) mod definition;
pub(crate) mod endpoint;
pub(crate) mod evaluate;
pub(crate) mod faults;
mod kind;
pub(crate) mod latest;
pub(crate) mod memory;
pub(crate) mod operator;
mod outlet;
pub(crate) mod post;
pub(crate) mod post_to;
pub(crate) mod queue;
pub(crate) mod retain;
pub(crate) mod saved_batches;
pub(crate) mod series;
pub(crate) mod sink;
pub(crate) mod spill;
pub(crate) mod state;

pub(crate) use counter::{Counter, Counters};
pub(crate) use definition::{Built, Context, Definition, Input};
pub(crate) use kind::Kind;
pub(crate) use operator::Operator;
pub(crate) use state::State;
