//! Why a file is not a graph.

use super::READ;
use std::io;
use std::path::PathBuf;

/// The reasons why a file is not a valid graph. Each message names the position of the fault and
/// says how to fix it.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}; write a graph file with -j first", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file ends too early.
    #[error("{} is cut off at line {line}, column {column}; write it again with -j", .path.display())]
    CutOff {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The file is not JSON.
    #[error("{} is not JSON: {error}; write it again with -j", .path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// The fault and its position.
        error: serde_json::Error,
    },
    /// The JSON has another structure.
    #[error("{} is not a graph: {error}; correct it, or write it again with -j", .path.display())]
    NoGraph {
        /// The file.
        path: PathBuf,
        /// The fault and its position.
        error: serde_json::Error,
    },
    /// The version is missing.
    #[error(
        "{} has no \"version\"; a graph file begins with one, such as {}", .path.display(), READ.join(" or ")
    )]
    NoVersion {
        /// The file.
        path: PathBuf,
    },
    /// The version is unknown.
    #[error("{} has version '{version}'; {} can be read", .path.display(), READ.join(" and "))]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version.
        version: String,
    },
    /// An event is invalid.
    #[error(
        "{}: event {number} of \"graph\" {wrong}; correct it, or write the file again with -j", .path.display()
    )]
    NoEvent {
        /// The file.
        path: PathBuf,
        /// The number of the event, from 1.
        number: u64,
        /// A description of the fault.
        wrong: &'static str,
    },
    /// The graph is empty.
    #[error("{} has no nodes; a graph file lists them under \"graph\"", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Two nodes have the same name.
    #[error("{} has the node {name} twice; remove one", .path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// An edge ends nowhere.
    #[error(
        "{} has an edge from {from} to {to}, and no node {missing}; add it, or remove the edge", .path.display()
    )]
    NoSuchNode {
        /// The file.
        path: PathBuf,
        /// The missing end of the edge.
        from: String,
        /// The node at the other end of the edge.
        to: String,
        /// The end that is not a node.
        missing: String,
    },
}
