//! Errors of graph files.

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
        /// The path of the unreadable file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file ends too early.
    #[error("{} is cut off at line {line}, column {column}; write it again with -j", .path.display())]
    CutOff {
        /// The path of the truncated file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The number of the column, counted from 1.
        column: usize,
    },
    /// The file is not JSON.
    #[error("{} is not JSON: {error}; write it again with -j", .path.display())]
    NotJson {
        /// The path of the file that is not JSON.
        path: PathBuf,
        /// The fault and its position.
        error: serde_json::Error,
    },
    /// The JSON has another structure.
    #[error("{} is not a graph: {error}; correct it, or write it again with -j", .path.display())]
    NoGraph {
        /// The path of the file that is not a graph.
        path: PathBuf,
        /// The fault and its position.
        error: serde_json::Error,
    },
    /// The version is missing.
    #[error(
        "{} has no \"version\"; a graph file begins with one, such as {}", .path.display(), READ.join(" or ")
    )]
    NoVersion {
        /// The path of the file without a version.
        path: PathBuf,
    },
    /// The version is unknown.
    #[error("{} has version '{version}'; {} can be read", .path.display(), READ.join(" and "))]
    OtherVersion {
        /// The path of the file with the unknown version.
        path: PathBuf,
        /// The version in the file.
        version: String,
    },
    /// An event is invalid.
    #[error(
        "{}: event {number} of \"graph\" {wrong}; correct it, or write the file again with -j", .path.display()
    )]
    NoEvent {
        /// The path of the file with the invalid event.
        path: PathBuf,
        /// The number of the event, from 1.
        number: u64,
        /// A description of the fault.
        wrong: &'static str,
    },
    /// The graph is empty.
    #[error("{} has no nodes; a graph file lists them under \"graph\"", .path.display())]
    Empty {
        /// The path of the file without nodes.
        path: PathBuf,
    },
    /// Two nodes have the same name.
    #[error("{} has the node {name} twice; remove one", .path.display())]
    Twice {
        /// The path of the file with the duplicate node.
        path: PathBuf,
        /// The name that two nodes have.
        name: String,
    },
    /// An end of an edge is not a node of the graph.
    #[error(
        "{} has an edge from {from} to {to}, but no node {missing}; add it, or remove the edge", .path.display()
    )]
    NoSuchNode {
        /// The path of the file with the invalid edge.
        path: PathBuf,
        /// The node at which the edge begins.
        from: String,
        /// The node at which the edge ends.
        to: String,
        /// The end that is not a node.
        missing: String,
    },
}
