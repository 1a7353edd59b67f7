//! Reasons why a receiver finds no message.

use crate::edge::error::TryRecvError;
use crate::edge::ring::shared::IsAborted;

/// The reasons why a receiver finds no message.
pub(super) enum Lack {
    /// The ring is empty as long as the tail has this value.
    Empty(u64),
    Closed,
    Aborted,
}

impl From<IsAborted> for Lack {
    fn from(_: IsAborted) -> Lack {
        Lack::Aborted
    }
}

impl From<Lack> for TryRecvError {
    fn from(lack: Lack) -> TryRecvError {
        match lack {
            Lack::Empty(_) => TryRecvError::Empty,
            Lack::Closed => TryRecvError::Closed,
            Lack::Aborted => TryRecvError::Aborted,
        }
    }
}
