//! Edges, in every flavour.

#[macro_use]
mod flavour;

mod contract;
mod graph;
mod model;
mod senders;
mod tasks;
mod waits;
