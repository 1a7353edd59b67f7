//! Observed runs, from the events of actors to the bytes of the files.

mod collector;
mod collectors;
mod command;
mod files;
mod fleet;
mod order;
#[cfg(feature = "kafka")]
mod real_kafka;
mod real_neo4j;
mod spans;
