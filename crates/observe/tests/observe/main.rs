//! Runs that are observed, from the actors to the bytes.

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
