//! The errors of marshalling.

use std::error::Error;

/// The reason why values could not be marshalled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarshalError {
    /// The format cannot write a value, or the value's `Serialize` implementation returned an
    /// error.
    #[error("value {index} cannot be written as {format}: {source}")]
    Encode {
        /// The index of the value in the slice; no value before it failed.
        index: usize,
        /// The name of the format.
        format: &'static str,
        /// The error of the format.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The `Serialize` implementation of a value panicked.
    #[error("the Serialize implementation of value {index} panicked: {message}")]
    Panicked {
        /// The index of the value in the slice; no value before it failed.
        index: usize,
        /// The message of the panic.
        message: String,
    },
    /// The system refused a thread.
    #[error("cannot start {workers} workers: {source}; use fewer workers")]
    Workers {
        /// The number of requested workers.
        workers: usize,
        /// The error of the system.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A blocking strategy was called from asynchronous code.
    #[error(
        "ParallelTasks blocks, and was called inside a tokio runtime; call it from spawn_blocking, or use Chunked"
    )]
    InsideRuntime,
}

impl MarshalError {
    /// Returns the index of the failed value, if the error is about a value.
    pub fn index(&self) -> Option<usize> {
        match self {
            MarshalError::Encode { index, .. } | MarshalError::Panicked { index, .. } => {
                Some(*index)
            }
            MarshalError::Workers { .. } | MarshalError::InsideRuntime => None,
        }
    }
}
