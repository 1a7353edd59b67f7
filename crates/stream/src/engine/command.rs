//! The commands of an engine to its root actor.

use super::task::Task;
use crate::node::body::{Inputs, Outputs};
use crate::node::definition::Work;
use corsair::Message;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Requests to the root actor from outside the run. The digest does not include these requests; runs on the wall
/// clock have no digest anyway.
#[derive(Message)]
#[message(skip)]
pub(super) enum Command {
    /// Start the nodes of a task.
    Start(Plan),
    /// End the run. All tasks have ended.
    End,
}

/// The channel for commands to the root. It is unbounded, because there is one command for each task, and sending must
/// not wait: a caller may be cancelled at any wait.
#[derive(Debug)]
pub(super) struct Commands(UnboundedSender<Command>);

impl Commands {
    /// Sends a command to the root. Does nothing after the run.
    pub(super) fn give(&self, command: Command) {
        let _ = self.0.send(command);
    }
}

pub(super) fn commands() -> (Commands, UnboundedReceiver<Command>) {
    let (commands, received) = unbounded_channel();
    (Commands(commands), received)
}

/// A task whose nodes have not been started.
pub(super) struct Plan {
    pub(super) task: Arc<Task>,
    pub(super) nodes: Vec<Ready>,
}

/// A node that is ready to run.
pub(super) struct Ready {
    pub(super) work: Work,
    pub(super) inputs: Inputs,
    pub(super) outputs: Outputs,
}
