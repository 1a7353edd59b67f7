//! Errors of sending and receiving.

use std::fmt;

/// The error of a send to an edge that was aborted, or that this end has closed. Contains the unsent message.
///
/// `Aborted<()>` is used for batches, whose unsent messages stay in the caller's vector.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the edge has been aborted or closed and takes no more messages")]
pub struct Aborted<T>(pub T);

impl<T> Aborted<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Aborted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aborted(..)")
    }
}

/// The error of a message that could not be sent at once. Contains the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrySendError<T> {
    /// The edge is full.
    #[error("the edge is full; send again when a message has been received")]
    Full(T),
    /// The edge was aborted, or this end closed it.
    #[error("the edge has been aborted or closed and takes no more messages")]
    Aborted(T),
}

impl<T> TrySendError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(message) | TrySendError::Aborted(message) => message,
        }
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Aborted(_) => "Aborted(..)",
        })
    }
}

impl<T> From<Aborted<T>> for TrySendError<T> {
    fn from(Aborted(message): Aborted<T>) -> Self {
        TrySendError::Aborted(message)
    }
}

/// The error of a message that could not be sent in time. Contains the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendTimeoutError<T> {
    /// The edge stayed full.
    #[error("the edge stayed full; send again, or give it more time or a larger capacity")]
    TimedOut(T),
    /// The edge was aborted, or this end closed it.
    #[error("the edge has been aborted or closed and takes no more messages")]
    Aborted(T),
}

impl<T> SendTimeoutError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::TimedOut(message) | SendTimeoutError::Aborted(message) => message,
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::TimedOut(_) => "TimedOut(..)",
            SendTimeoutError::Aborted(_) => "Aborted(..)",
        })
    }
}

impl<T> From<Aborted<T>> for SendTimeoutError<T> {
    fn from(Aborted(message): Aborted<T>) -> Self {
        SendTimeoutError::Aborted(message)
    }
}

/// The reasons why no message was received in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvTimeoutError {
    /// No message arrived in time.
    #[error("the edge stayed empty; recv again, or give it more time")]
    TimedOut,
    /// The other end has closed the edge, and all messages have been received.
    #[error("the edge was closed, and all messages have been received")]
    Closed,
    /// The edge has been aborted.
    #[error("the edge has been aborted")]
    Aborted,
}

/// No message could be received at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryRecvError {
    /// The edge is empty.
    #[error("the edge is empty; recv again when a message has been sent")]
    Empty,
    /// The other end has closed the edge, and all messages have been received.
    #[error("the edge was closed, and all messages have been received")]
    Closed,
    /// The edge has been aborted.
    #[error("the edge has been aborted")]
    Aborted,
}
