//! Runs that are observed, from the actors to the bytes.

mod collectors;
mod files;
mod fleet;
mod order;
#[cfg(feature = "kafka")]
mod real_kafka;
mod real_neo4j;
