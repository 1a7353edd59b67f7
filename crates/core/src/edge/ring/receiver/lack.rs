//! What a receiver finds when it looks for a message and there is none.

use crate::edge::error::TryRecvError;
use crate::edge::ring::shared::IsAborted;

/// Why there is no message.
pub(super) enum Lack {
    /// There is none as long as the tail is this.
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
