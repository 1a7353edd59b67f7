//! What an emitter finds when it looks for a message and there is none.

use crate::edge::error::TryEmitError;
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

impl From<Lack> for TryEmitError {
    fn from(lack: Lack) -> TryEmitError {
        match lack {
            Lack::Empty(_) => TryEmitError::Empty,
            Lack::Closed => TryEmitError::Closed,
            Lack::Aborted => TryEmitError::Aborted,
        }
    }
}
