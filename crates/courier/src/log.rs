//! The log. It makes commands durable, and defines the one order in which they are applied.
//!
//! A [`Log`] guarantees the following:
//! - A command leaves the feed only when it is durable.
//! - Commands leave the feed in the order of their positions, each once, and in the same order on every node.
//! - A submitted command leaves the feed with its reply, or its reply gets the error.
//!
//! Two implementations: [`Embedded`](embedded::Embedded) for one node, and
//! [`Replicated`](replicated::Replicated) for the members of a cluster.

pub(crate) mod embedded;
mod ends;
pub(crate) mod replicated;

use crate::command::{Command, Outcome};
use crate::model::Millis;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::oneshot;

/// The receiver of a command's result.
pub(crate) type Reply = oneshot::Sender<Result<Outcome, LogError>>;

/// A durable command that has not been applied yet.
#[derive(Debug)]
pub(crate) struct Entry {
    pub position: u64,
    /// The command; `None` if the entry is not a command of this service and has no effect.
    pub command: Option<Command>,
    /// The time at which the log accepted the command, by the log's clock.
    pub taken: Millis,
    /// The receiver of the result, if the command was submitted on this node since its start.
    pub reply: Option<Reply>,
}

/// The channel to the thread that applies the entries of a log.
pub(crate) type Feed = crossbeam_channel::Sender<Vec<Entry>>;

/// The log. See the [module](self).
pub(crate) trait Log: Send + Sync + 'static {
    /// Submits a command.
    ///
    /// # Errors
    /// [`LogError::Busy`] if too many are in progress.
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError>;

    /// Returns the position of the last entry that was reported durable to any node.
    fn end(&self) -> Pin<Box<dyn Future<Output = Result<u64, LogError>> + Send + '_>>;

    /// Releases the entries up to this position, which are durable elsewhere, so that this node does not need them any
    /// more.
    fn forget(&self, position: u64);

    /// Returns the time limit of a command. `None` if only the local disk can delay it.
    fn patience(&self) -> Option<Duration>;

    /// Returns the newest version of commands that all nodes can read.
    fn reads(&self) -> u8;

    /// True if the log accepts commands now.
    fn is_up(&self) -> bool;

    /// True if the node cannot continue, even if it reopens its files.
    fn has_stopped(&self) -> bool;

    /// Stops accepting commands. Commands that were accepted still become durable and are sent to the feed; then the
    /// feed ends.
    fn close(&self);
}

/// The reason why a command failed at the log. Unless the variant says otherwise, the command may or may not have
/// become durable.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// The command was not accepted.
    #[error("more than {0} changes are in progress; try again in a moment")]
    Busy(usize),
    /// The disk failed.
    #[error(
        "the log cannot be written: {0}; the change may have been stored, so try again with the same Idempotency-Key"
    )]
    Failed(String),
    /// No majority of the nodes can be reached.
    #[error("the log cannot be reached: {0}; try again in a moment, or use another node")]
    Unreachable(String),
    /// The disk is full.
    #[error("{0}")]
    Full(String),
    /// A node that cannot read this command is still running.
    #[error("some nodes run an older version; this request works after all nodes are upgraded")]
    OlderNodes,
    /// The node cannot continue, and refuses all requests.
    #[error("this node has stopped: {0}")]
    Stopped(String),
    /// The node is shutting down, or is reopening its files.
    #[error("this node is closing; try again in a moment, with the same Idempotency-Key")]
    Closed,
}
