//! Graph files: GraphJSON as spigo writes and reads it, version 0.4 (0.3 is read too).
//!
//! A file is one JSON object: a header (`arch`, `version`, `args`, `date`) and the array `graph`. The array has events
//! in the order of time. Each event is an object on a separate line:
//!
//! | event | keys |
//! |---|---|
//! | an actor exists | `node`, `package` (`service` in 0.3), `timestamp`, `metadata` |
//! | an actor knows another | `edge`, `source`, `target`, `timestamp` |
//! | an actor no longer knows another | `forget`, `source`, `target`, `timestamp` |
//! | an actor has ended | `done`, `exit`, `timestamp` |

mod edge_intervals;
mod error;
mod markup;
mod neo4j;
mod network;
mod reader;
mod sink;
mod writer;

pub use error::GraphError;
pub use reader::{GraphFile, GraphNode, read};
pub(crate) use sink::{GraphSink, SavedGraph};

/// The version in the header of files written here. spigo's tools expect this name.
const VERSION: &str = "spigo-0.4";

/// The versions that are read.
const READ: [&str; 2] = ["spigo-0.3", "spigo-0.4"];
