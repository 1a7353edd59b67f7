//! Where commands become durable, and are put into the one order in which they are applied.
//!
//! A [`Log`] guarantees that
//! - a command comes out of its feed only once it is durable;
//! - commands come out in the order of their positions, each once, the same on every node;
//! - a submitted command comes out with its reply, or its reply gets the error.
//!
//! Two implementations: [`Embedded`](embedded::Embedded) for one node, and
//! [`JetStream`](jetstream::JetStream) for several.

pub(crate) mod embedded;
pub(crate) mod jetstream;

use crate::command::{Command, Outcome};
use crate::model::Millis;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::oneshot;

/// Where the outcome of a command goes.
pub(crate) type Reply = oneshot::Sender<Result<Outcome, LogError>>;

/// A command that is durable, on its way to be applied.
#[derive(Debug)]
pub(crate) struct Entry {
    pub position: u64,
    /// `None` if it is not a command of this service: it occupies its position and does nothing.
    pub command: Option<Command>,
    /// When the log took it, by the log's own clock.
    pub taken: Millis,
    /// By which the entry is known again.
    pub digest: Digest,
    /// For the outcome, if it was submitted on this node and since it was started.
    pub reply: Option<Reply>,
}

/// A hash of an entry as the log keeps it; all zeros where none can be put in its place.
pub(crate) type Digest = [u8; 16];

/// Where a log's entries go: to the thread that applies them.
pub(crate) type Feed = crossbeam_channel::Sender<Vec<Entry>>;

/// See the [module](self).
pub(crate) trait Log: Send + Sync + 'static {
    /// Takes a command.
    ///
    /// # Errors
    /// [`LogError::Busy`] if too many are under way.
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError>;

    /// The position of the last entry that was reported durable to any node.
    fn end(&self) -> Pin<Box<dyn Future<Output = Result<u64, LogError>> + Send + '_>>;

    /// The entries up to this position are durable elsewhere too: this node will not ask for them.
    fn forget(&self, position: u64);

    /// How long a command may take to come out; `None`: as long as the disk of this machine takes.
    fn patience(&self) -> Option<Duration>;

    /// The newest version of commands that all nodes read.
    fn reads(&self) -> u8;

    /// Whether the log takes commands now.
    fn is_up(&self) -> bool;

    /// True if the log has lost entries, so that reopening does not help.
    fn has_stopped(&self) -> bool;

    /// Takes no more commands. What was taken before still becomes durable and comes out; then the
    /// feed ends.
    fn close(&self);
}

/// Why a command failed at the log. The command may have become durable or not,
/// unless it says otherwise.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// It was not taken.
    #[error("more than {0} changes are under way; try again in a moment")]
    Busy(usize),
    /// Its disk or server did not do it.
    #[error(
        "the log cannot be written: {0}; whether this was stored is not known, so try again with the same Idempotency-Key"
    )]
    Failed(String),
    /// Its server cannot be asked.
    #[error("the log cannot be asked: {0}; try again in a moment, or another node")]
    Unreachable(String),
    /// The disk is full.
    #[error("{0}")]
    Full(String),
    /// A node that cannot read this command runs still.
    #[error("nodes of an older version run still; this can be done when all are upgraded")]
    OlderNodes,
    /// The log is not what it was: nothing is taken or served until the node is started again.
    #[error("this node has stopped: {0}")]
    Stopped(String),
    /// The node is shutting down, or reopens its files.
    #[error("this node is closing; try again in a moment, with the same Idempotency-Key")]
    Closed,
}
