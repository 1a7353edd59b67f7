//! The time that ends have spent blocked.

use crate::edge::clock;
use std::time::Duration;

/// A sum over all ends that wait. Lies under the lock.
#[derive(Default)]
pub(super) struct Blocked {
    /// Nanoseconds, up to `since`.
    total: u64,
    /// How many wait.
    waiting: u64,
    since: u64,
}

impl Blocked {
    fn advance(&mut self) {
        let now = clock::now();
        self.total += now.saturating_sub(self.since) * self.waiting;
        self.since = now;
    }

    pub(super) fn begin(&mut self) {
        self.advance();
        self.waiting += 1;
    }

    pub(super) fn end(&mut self) {
        self.advance();
        self.waiting -= 1;
    }

    pub(super) fn read(&self) -> Duration {
        let under_way = clock::now().saturating_sub(self.since) * self.waiting;
        Duration::from_nanos(self.total + under_way)
    }
}
