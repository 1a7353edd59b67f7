//! The output files of a run, read again to be shown: flows, and the table of `--timeline`.
//!
//! A file that is too large, truncated or invalid is refused. The error names the file and says what to do.

mod flows;
mod table;

pub use flows::Flows;
pub use table::TimelineTable;

use corsair_observe::graph::GraphError;
use serde::Serialize;
use std::io;
use std::path::PathBuf;

/// The traffic from one node to another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EdgeState {
    /// The calling node.
    pub from: u32,
    /// The called node.
    pub to: u32,
    /// Messages per second.
    pub rate: f32,
    /// The share of answers that were errors.
    pub errors: f32,
    /// The median and the 99th percentile of response times, in seconds.
    pub p50: f32,
    /// See `p50`.
    pub p99: f32,
}

/// The measurements of a group in an interval. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The start of the interval.
    pub from: f64,
    /// The end of the interval.
    pub to: f64,
    /// Requests per second.
    pub rate: f64,
    /// Errors per second.
    pub errors: f64,
    /// Percentiles of response times; `None` if no request was answered.
    pub p50: Option<f64>,
    /// See `p50`.
    pub p99: Option<f64>,
    /// See `p50`.
    pub p999: Option<f64>,
    /// The longest queue of an instance at the end of the interval.
    pub queue: u64,
    /// The fraction of slots or processors in use, from 0 to 1, if they are limited.
    pub utilisation: Option<f64>,
}

/// The reason why the output files of a run cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The file is not a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A file or directory cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The path of the unreadable file or directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A directory contains no graph.
    #[error(
        "there is no graph in {}: no .json file in it or in json/ below it; write one with -j",
        path.display()
    )]
    NoGraph {
        /// The path of the directory without a graph.
        path: PathBuf,
    },
    /// A directory contains several graphs or several tables.
    #[error("{} has several {what}; leave one of them there, or give it: {names}", path.display())]
    Several {
        /// The path of the directory with several files.
        path: PathBuf,
        /// The kind of file.
        what: &'static str,
        /// The names of these files.
        names: String,
    },
    /// A file contains no flows.
    #[error("{} has no flows in the format zipkin1: {error}", path.display())]
    Flows {
        /// The path of the file that contains no flows.
        path: PathBuf,
        /// The position and cause of the error.
        error: serde_json::Error,
    },
    /// A line does not belong to a table of results over time.
    #[error("{}:{line}: this line does not belong to a table of --timeline; write the table again with --timeline", path.display())]
    Table {
        /// The path of the table.
        path: PathBuf,
        /// The number of the invalid line.
        line: usize,
    },
    /// A file is too large.
    #[error("{} has more than {most} bytes; show a shorter run", path.display())]
    TooLarge {
        /// The path of the file that is too large.
        path: PathBuf,
        /// The maximum size in bytes.
        most: u64,
    },
}
