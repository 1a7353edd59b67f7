//! Streams of points: the InfluxDB line protocol in, tasks over edges, results out.
//!
//! ```text
//!  POST /write ─ line ─▶ block ─▶ route ─edge─▶ from ─edge─▶ where ─edge─▶ window ─edge─▶ count …
//! ```
//!
//! A write is parsed into [blocks](block::Block): the points of one measurement, column by column.
//! Nodes exchange [batches](batch::Batch), which are selections of rows of a shared block, so a
//! point is never copied, however many tasks take it. Every node is an actor, and every arrow is an
//! [edge](corsair::edge).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod batch;
pub mod block;
mod checkpoint;
pub mod engine;
pub mod expression;
#[cfg(feature = "flags")]
pub mod flags;
mod hash;
pub mod http;
mod json;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod language;
pub mod line;
mod node;
mod nodes;
mod now;
mod pending;
pub mod pipeline;
pub mod replay;
pub mod store;
mod value;

pub use node::latest::LatestByGroup;
pub use node::operator::NodeError;

pub use value::{Kind, Value};
