//! What nodes are made of: the traits that each kind implements, and what kinds share.
//!
//! An [`Operator`] is the work of a node, without edges and without waiting. [`body`] makes an actor of
//! it. What an operator keeps per group goes through [`series`], and kept rows through [`retain`]: the
//! bounds are there. The kinds themselves are in [`nodes`](crate::nodes).

pub(crate) mod append;
pub(crate) mod body;
pub(crate) mod clock;
pub(crate) mod counter;
pub(crate) mod definition;
pub(crate) mod evaluate;
pub(crate) mod faults;
pub(crate) mod latest;
pub(crate) mod operator;
pub(crate) mod queue;
pub(crate) mod retain;
pub(crate) mod series;
pub(crate) mod sink;
pub(crate) mod state;

pub(crate) use counter::{Counter, Counters};
pub(crate) use definition::{Built, Context, Definition, Input, Kind};
pub(crate) use operator::Operator;
pub(crate) use state::State;
