//! Errors of an observer.

use crate::FileError;
use std::net::SocketAddr;

/// The reasons why a run cannot be observed, or its output cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file cannot be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log of messages cannot be written.
    #[error("cannot write the log of messages: {0}")]
    Messages(std::io::Error),
    /// There are more kinds of messages than the field of a record can hold.
    #[error("{0} kinds of messages are too many for flows; the maximum is 65535")]
    Kinds(usize),
    /// There are more edges than edge numbers.
    #[error(
        "the graph has more than 4294967295 edges, which cannot be numbered; make the run shorter"
    )]
    Edges,
    /// A text is not a valid address.
    #[error("{what}: '{given}' is not an address; write one as {example}")]
    Address {
        /// The system whose address is invalid.
        what: &'static str,
        /// The text given as an address.
        given: String,
        /// An example of an address.
        example: &'static str,
    },
    /// The system did not answer, or its answer was unexpected.
    #[error("{what} at {address} cannot be reached: {reason}; start it, or correct the address")]
    Unreachable {
        /// The system that did not answer.
        what: &'static str,
        /// The address of the system.
        address: String,
        /// The reason why the system cannot be reached.
        reason: String,
    },
    /// The system refuses the connection.
    #[error("{what} at {address} refuses: {reason}")]
    Refused {
        /// The system that answered.
        what: &'static str,
        /// The address of the system.
        address: String,
        /// The system's answer.
        reason: String,
    },
    /// The metrics cannot be served.
    #[error("metrics cannot be served at {address}: {error}; choose another port")]
    Metrics {
        /// The address at which metrics were to be served.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The requested output is missing from this build.
    #[error("{what} needs the feature '{feature}'; build with --features {feature}")]
    LeftOut {
        /// The requested output.
        what: &'static str,
        /// The feature that adds this output to the build.
        feature: &'static str,
    },
    /// The system refuses a thread.
    #[error("cannot start the observer's thread: {0}")]
    Thread(std::io::Error),
    /// This output cannot be saved in a checkpoint.
    #[error("{0} cannot be continued from a checkpoint; leave it out")]
    NotSaved(&'static str),
    /// The state of the output cannot be written.
    #[error("the observer's state cannot be saved: {0}")]
    State(serde_json::Error),
    /// The output cannot continue from the checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::CheckpointError),
    /// The thread that writes has panicked.
    #[error("the observer's thread has panicked: {0}")]
    Panicked(String),
}
