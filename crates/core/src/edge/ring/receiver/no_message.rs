//! Reasons why a receiver finds no message.

use crate::edge::error::TryRecvError;
use crate::edge::ring::shared::IsAborted;

/// The reasons why a receiver finds no message.
pub(super) enum NoMessage {
    /// The ring is empty as long as the tail word has this value.
    Empty(u64),
    Closed,
    Aborted,
}

impl From<IsAborted> for NoMessage {
    fn from(_: IsAborted) -> NoMessage {
        NoMessage::Aborted
    }
}

impl From<NoMessage> for TryRecvError {
    fn from(no_message: NoMessage) -> TryRecvError {
        match no_message {
            NoMessage::Empty(_) => TryRecvError::Empty,
            NoMessage::Closed => TryRecvError::Closed,
            NoMessage::Aborted => TryRecvError::Aborted,
        }
    }
}
