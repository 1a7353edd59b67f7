//! Counters that nodes increment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one node increments and any thread may read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

/// The counters of a node under their names.
pub(crate) type Counters = Vec<(&'static str, Counter)>;

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// Sets the number, for counters that report a current amount.
    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
