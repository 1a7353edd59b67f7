//! Why something could not be written.

use crate::FileError;
use std::net::SocketAddr;

/// Why a run could not be observed, or what was observed could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log of messages.
    #[error("cannot write the log of messages: {0}")]
    Messages(std::io::Error),
    /// More kinds of messages than records can tell apart.
    #[error("{0} kinds of messages are too many for flows; the maximum is 65535")]
    Kinds(usize),
    /// More edges than have numbers.
    #[error(
        "the graph has more than 4294967295 edges, which cannot be numbered; make the run shorter"
    )]
    Edges,
    /// Text that is not an address.
    #[error("{what}: '{given}' is not an address; write one as {example}")]
    Address {
        /// What it should be the address of.
        what: &'static str,
        /// What was given.
        given: String,
        /// An example of an address.
        example: &'static str,
    },
    /// No answer, or not the one expected.
    #[error("{what} at {address} cannot be reached: {reason}; start it, or correct the address")]
    Unreachable {
        /// What should be there.
        what: &'static str,
        /// Where.
        address: String,
        /// What happened instead.
        reason: String,
    },
    /// It answers, and refuses.
    #[error("{what} at {address} refuses: {reason}")]
    Refused {
        /// What is there.
        what: &'static str,
        /// Where.
        address: String,
        /// What it says.
        reason: String,
    },
    /// The metrics cannot be served.
    #[error("metrics cannot be served at {address}: {error}; choose another port")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// A part that this build does not have.
    #[error("{what} needs the feature '{feature}'; build with --features {feature}")]
    LeftOut {
        /// What was asked for.
        what: &'static str,
        /// What has it.
        feature: &'static str,
    },
    /// The system refuses a thread.
    #[error("cannot start the thread that writes what is observed: {0}")]
    Thread(std::io::Error),
    /// What is observed cannot be saved in the middle of it.
    #[error("{0} cannot be continued from a checkpoint; leave it out")]
    NotSaved(&'static str),
    /// The state of what is observed cannot be written.
    #[error("what is observed cannot be saved: {0}")]
    State(serde_json::Error),
    /// A checkpoint from which the output cannot continue.
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::CheckpointError),
    /// The thread that writes has panicked.
    #[error("the thread that writes what is observed has panicked: {0}")]
    Panicked(String),
}
