//! What can go wrong when values are marshalled.

use std::error::Error;

/// Why values could not be marshalled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarshalError {
    /// The format has no way to write a value, or its `Serialize` implementation refused.
    #[error("value {index} cannot be written as {format}: {source}")]
    Encode {
        /// Index of the value in the slice; no value before it failed.
        index: usize,
        /// Name of the format.
        format: &'static str,
        /// What the format said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The `Serialize` implementation of a value panicked.
    #[error("the Serialize implementation of value {index} panicked: {message}")]
    Panicked {
        /// Index of the value in the slice; no value before it failed.
        index: usize,
        /// The message of the panic.
        message: String,
    },
    /// The system refused a thread.
    #[error("cannot start {workers} workers: {source}; ask for fewer")]
    Workers {
        /// How many were asked for.
        workers: usize,
        /// What the system said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A strategy that blocks was called from asynchronous code.
    #[error(
        "ParallelTasks blocks, and was called inside a tokio runtime; call it from spawn_blocking, or take Chunked"
    )]
    InsideRuntime,
}

impl MarshalError {
    /// Index of the value that failed, if a value did.
    pub fn index(&self) -> Option<usize> {
        match self {
            MarshalError::Encode { index, .. } | MarshalError::Panicked { index, .. } => {
                Some(*index)
            }
            MarshalError::Workers { .. } | MarshalError::InsideRuntime => None,
        }
    }
}
