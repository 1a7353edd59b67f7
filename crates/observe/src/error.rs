//! Errors of an observer.

use crate::FileError;
use std::net::SocketAddr;

/// Why a run could not be observed, or its output not be written.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log of messages.
    #[error("cannot write the log of messages: {0}")]
    Messages(std::io::Error),
    /// There are more kinds of messages than records can distinguish.
    #[error("{0} kinds of messages are too many for flows; the maximum is 65535")]
    Kinds(usize),
    /// There are more edges than edge numbers.
    #[error(
        "the graph has more than 4294967295 edges, which cannot be numbered; make the run shorter"
    )]
    Edges,
    /// Text that is not an address.
    #[error("{what}: '{given}' is not an address; write one as {example}")]
    Address {
        /// The system whose address it should be.
        what: &'static str,
        /// The given text.
        given: String,
        /// An example of an address.
        example: &'static str,
    },
    /// There was no answer, or an unexpected one.
    #[error("{what} at {address} cannot be reached: {reason}; start it, or correct the address")]
    Unreachable {
        /// The system.
        what: &'static str,
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The system refuses the connection.
    #[error("{what} at {address} refuses: {reason}")]
    Refused {
        /// The system.
        what: &'static str,
        /// The address.
        address: String,
        /// Its answer.
        reason: String,
    },
    /// The metrics cannot be served.
    #[error("metrics cannot be served at {address}: {error}; choose another port")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A part that this build does not have.
    #[error("{what} needs the feature '{feature}'; build with --features {feature}")]
    LeftOut {
        /// The requested output.
        what: &'static str,
        /// The feature that includes it.
        feature: &'static str,
    },
    /// The system refuses a thread.
    #[error("cannot start the thread that writes what is observed: {0}")]
    Thread(std::io::Error),
    /// This output cannot be saved in a checkpoint.
    #[error("{0} cannot be continued from a checkpoint; leave it out")]
    NotSaved(&'static str),
    /// The state of the output cannot be written.
    #[error("what is observed cannot be saved: {0}")]
    State(serde_json::Error),
    /// A checkpoint from which the output cannot continue.
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::CheckpointError),
    /// The thread that writes has panicked.
    #[error("the thread that writes what is observed has panicked: {0}")]
    Panicked(String),
}
