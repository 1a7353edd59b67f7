//! The reasons why an engine could not start, or a task could not be started or found.

use crate::language::LanguageError;
use std::io;
use std::sync::Arc;

/// The reasons why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Virtual time cannot run tasks, because tasks wait for edges.
    #[error(
        "streams run on the wall clock, and the executor `virtual` has none; use tokio, threads or pool"
    )]
    Virtual,
    /// The system refused a thread.
    #[error("no thread for the engine: {0}")]
    Thread(#[from] io::Error),
}

/// The reasons why a task could not be started or found.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The task's text is not a valid pipeline.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// A node posts to a URL that needs TLS, and this build has no TLS.
    #[error(
        "`{node}` posts to {url}, and this build has no TLS; build with `--features corsair-stream/tls`, or post to a plain http URL"
    )]
    Tls {
        /// The name of the node.
        node: Arc<str>,
        /// The URL.
        url: Arc<str>,
    },
    /// A node posts to an endpoint that the server does not have.
    #[error(
        "`{node}` posts to the endpoint '{endpoint}', and there is none; define it in the file of `--endpoints FILE`"
    )]
    Endpoint {
        /// The name of the node.
        node: Arc<str>,
        /// The name of the endpoint.
        endpoint: Arc<str>,
    },
    /// The name of a task cannot be part of a URL.
    #[error(
        "`{0}` is not a name for a task; use 1 to 128 letters, digits, `-`, `_` and `.`, and begin with a letter or digit"
    )]
    Name(String),
    /// A task with this name exists.
    #[error("there is a task `{0}` already; delete it first, or take another name")]
    Duplicate(Arc<str>),
    /// No task has this name.
    #[error("there is no task `{name}`{}", did_you_mean(.near))]
    Unknown {
        /// The unknown name.
        name: String,
        /// The nearest existing name.
        near: Option<String>,
    },
    /// An alert writes to a file that is not allowed.
    #[error(
        "`{node}` writes alerts to {path}, and tasks may write none there; name the directory for them (`--alert-logs DIR`)"
    )]
    AlertLog {
        /// The name of the node.
        node: Arc<str>,
        /// The path of the refused file.
        path: Arc<str>,
    },
    /// The number of tasks is at its limit.
    #[error("there are {0} tasks already, as many as there may be; delete one first")]
    TooMany(usize),
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    Closed,
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
