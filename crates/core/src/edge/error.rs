//! Why a message was not collected, or none emitted.

use std::fmt;

/// The edge takes no more: it has been aborted, or closed by this end. Here is the message back.
///
/// `Aborted<()>` where messages stay with the caller, as with batches.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the edge has been aborted or closed and takes no more messages")]
pub struct Aborted<T>(pub T);

impl<T> Aborted<T> {
    /// The message that was not collected.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Aborted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aborted(..)")
    }
}

/// Why a message was not collected at once. It holds the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TryCollectError<T> {
    /// There is no room now.
    #[error("the edge is full; collect again when something has been emitted")]
    Full(T),
    /// The edge has been aborted, or closed by this end.
    #[error("the edge has been aborted or closed and takes no more messages")]
    Aborted(T),
}

impl<T> TryCollectError<T> {
    /// The message that was not collected.
    pub fn into_inner(self) -> T {
        match self {
            TryCollectError::Full(message) | TryCollectError::Aborted(message) => message,
        }
    }
}

impl<T> fmt::Debug for TryCollectError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryCollectError::Full(_) => "Full(..)",
            TryCollectError::Aborted(_) => "Aborted(..)",
        })
    }
}

impl<T> From<Aborted<T>> for TryCollectError<T> {
    fn from(Aborted(message): Aborted<T>) -> Self {
        TryCollectError::Aborted(message)
    }
}

/// Why a message was not collected in time. It holds the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CollectTimeoutError<T> {
    /// There was no room in time.
    #[error("the edge stayed full; collect again, or give it more time or a larger capacity")]
    TimedOut(T),
    /// The edge has been aborted, or closed by this end.
    #[error("the edge has been aborted or closed and takes no more messages")]
    Aborted(T),
}

impl<T> CollectTimeoutError<T> {
    /// The message that was not collected.
    pub fn into_inner(self) -> T {
        match self {
            CollectTimeoutError::TimedOut(message) | CollectTimeoutError::Aborted(message) => {
                message
            }
        }
    }
}

impl<T> fmt::Debug for CollectTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CollectTimeoutError::TimedOut(_) => "TimedOut(..)",
            CollectTimeoutError::Aborted(_) => "Aborted(..)",
        })
    }
}

impl<T> From<Aborted<T>> for CollectTimeoutError<T> {
    fn from(Aborted(message): Aborted<T>) -> Self {
        CollectTimeoutError::Aborted(message)
    }
}

/// Why no message was emitted in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitTimeoutError {
    /// Nothing was collected in time.
    #[error("the edge stayed empty; emit again, or give it more time")]
    TimedOut,
    /// The other end has closed the edge, and everything has been emitted.
    #[error("the edge was closed, and everything has been emitted")]
    Closed,
    /// The edge has been aborted.
    #[error("the edge has been aborted")]
    Aborted,
}

/// Why no message was emitted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryEmitError {
    /// Nothing is buffered now.
    #[error("the edge is empty; emit again when something has been collected")]
    Empty,
    /// The other end has closed the edge, and everything has been emitted.
    #[error("the edge was closed, and everything has been emitted")]
    Closed,
    /// The edge has been aborted.
    #[error("the edge has been aborted")]
    Aborted,
}
