//! Errors of runs over several processes.

use corsair::cluster::ProcessLost;
use std::io;

/// An error that keeps processes from running together.
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
    /// A process differs from the first one in its program or configuration.
    #[error(
        "process {process} and process 0 {what}; start all of them with the same program and flags"
    )]
    Different {
        /// The number of the process.
        process: usize,
        /// The property in which the process differs.
        what: &'static str,
    },
    /// A process cannot run its part.
    #[error("{}{why}", of(*process))]
    Failed {
        /// The number of the process that cannot run.
        process: usize,
        /// The reason that the process gives.
        why: String,
    },
    /// The outcome that a process sent cannot be decoded.
    #[error("the outcome of process {process} cannot be read: {error}")]
    Outcome {
        /// The number of the process.
        process: usize,
        /// The decoding error.
        error: postcard::Error,
    },
    /// Another process has ended.
    #[error("another process has ended before the run was over")]
    Lost,
}

impl From<ProcessLost> for ClusterError {
    fn from(_: ProcessLost) -> ClusterError {
        ClusterError::Lost
    }
}

/// Returns the prefix of messages about a process; empty for process 0.
fn of(process: usize) -> String {
    match process {
        0 => String::new(),
        process => format!("process {process}: "),
    }
}
