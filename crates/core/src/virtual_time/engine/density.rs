//! The density of windows, which decides whether one thread runs all shards or each shard has its own.

use crate::virtual_time::exchange::Reduction;

/// The maximum number of events per shard in a sparse window. Handling this number of events takes about as long as a
/// barrier.
const SPARSE: u64 = if cfg!(miri) { 4 } else { 64 };
/// The number of consecutive sparse windows after which one thread runs all shards.
const SPARSE_IN_A_ROW: u32 = if cfg!(miri) { 3 } else { 16 };
/// The number of consecutive dense windows after which each shard runs on its own thread again.
const DENSE_IN_A_ROW: u32 = 2;

/// The number of consecutive sparse or dense windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Density {
    sparse: u32,
    dense: u32,
}

impl Density {
    /// Counts a window. All shards count the same events.
    #[inline]
    pub(super) fn count(&mut self, agreed: &Reduction) {
        if agreed.events > SPARSE {
            (self.sparse, self.dense) = (0, self.dense + 1);
        } else {
            (self.sparse, self.dense) = (self.sparse + 1, 0);
        }
    }

    /// Counts a window, given the highest number of events of a shard. Returns true if each shard should run on its own
    /// thread again.
    #[inline(always)]
    pub(super) fn is_dense_after(&mut self, events: u64) -> bool {
        self.dense = if events > SPARSE { self.dense + 1 } else { 0 };
        self.is_dense()
    }

    /// True if one thread should run all shards.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        self.sparse >= SPARSE_IN_A_ROW
    }

    /// True if each shard should run on its own thread.
    #[inline]
    pub(super) fn is_dense(&self) -> bool {
        self.dense >= DENSE_IN_A_ROW
    }
}
