//! Why processes do not run together.

use corsair::cluster::ProcessLost;
use std::io;

/// Why processes do not run together.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The MPI library cannot be used.
    #[error("MPI cannot be used: {0}")]
    Mpi(&'static str),
    /// `mpirun` is missing.
    #[error("mpirun, which starts the processes, is not installed; install an MPI library, for example with `{install}`", install = crate::INSTALL)]
    NoMpirun,
    /// `mpirun` cannot be started.
    #[error("mpirun cannot be started: {0}")]
    Launch(#[source] io::Error),
    /// A process differs from the first one.
    #[error(
        "process {process} and process 0 {what}; start all of them with the same program and flags"
    )]
    Different {
        /// The number of the process.
        process: usize,
        /// In what.
        what: &'static str,
    },
    /// A process cannot run its part.
    #[error("{}{why}", of(*process))]
    Failed {
        /// The number of the process.
        process: usize,
        /// What it says.
        why: String,
    },
    /// The outcome of a process cannot be read.
    #[error("the outcome of process {process} cannot be read: {error}")]
    Outcome {
        /// The number of the process.
        process: usize,
        /// What is wrong with it.
        error: postcard::Error,
    },
    /// Another process has ended.
    #[error("another process has ended before the run did")]
    Lost,
}

impl From<ProcessLost> for ClusterError {
    fn from(_: ProcessLost) -> ClusterError {
        ClusterError::Lost
    }
}

/// Names a process, unless it is the one that users think of.
fn of(process: usize) -> String {
    match process {
        0 => String::new(),
        process => format!("process {process}: "),
    }
}
