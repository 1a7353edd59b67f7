//! The density of windows, which decides whether one thread runs all shards or each shard has its own.

use crate::virtual_time::exchange::Vote;

/// A window is sparse if no shard has more events than this: they cost about as much as a barrier.
const SPARSE: u64 = if cfg!(miri) { 4 } else { 64 };
/// The number of consecutive sparse windows after which one thread runs all shards.
const SPARSE_IN_A_ROW: u32 = if cfg!(miri) { 3 } else { 16 };
/// And after this many dense ones in a row all run their own again.
const DENSE_IN_A_ROW: u32 = 2;

/// The number of consecutive sparse or dense windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Density {
    sparse: u32,
    dense: u32,
}

impl Density {
    /// Counts a window. All shards count the same.
    #[inline]
    pub(super) fn count(&mut self, agreed: &Vote) {
        if agreed.events > SPARSE {
            (self.sparse, self.dense) = (0, self.dense + 1);
        } else {
            (self.sparse, self.dense) = (self.sparse + 1, 0);
        }
    }

    /// Counts a window, given the most events that a shard had. Returns whether all are to run their own again.
    #[inline(always)]
    pub(super) fn is_dense_after(&mut self, events: u64) -> bool {
        self.dense = if events > SPARSE { self.dense + 1 } else { 0 };
        self.is_dense()
    }

    /// Whether one thread is to run all shards.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        self.sparse >= SPARSE_IN_A_ROW
    }

    /// Whether each shard is to run its own windows.
    #[inline]
    pub(super) fn is_dense(&self) -> bool {
        self.dense >= DENSE_IN_A_ROW
    }
}
