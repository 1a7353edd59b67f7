//! Edges, in every flavour.

#[macro_use]
mod flavour;

mod collectors;
mod contract;
mod graph;
mod model;
mod tasks;
mod waits;
