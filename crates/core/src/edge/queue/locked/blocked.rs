//! The time that ends have spent blocked.

use crate::edge::clock;
use std::time::Duration;

/// The time in which at least one end waited. The clock is read when the first end begins to wait and when the last one
/// stops. Protected by the lock.
#[derive(Default)]
pub(super) struct Blocked {
    /// Nanoseconds of waits that are over.
    total: u64,
    waiting: usize,
    /// The time at which the earliest of the current waits began.
    since: u64,
}

impl Blocked {
    pub(super) fn begin(&mut self) {
        if self.waiting == 0 {
            self.since = clock::now();
        }
        self.waiting += 1;
    }

    pub(super) fn end(&mut self) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.total += clock::now().saturating_sub(self.since);
        }
    }

    pub(super) fn read(&self) -> Duration {
        let under_way = match self.waiting {
            0 => 0,
            _ => clock::now().saturating_sub(self.since),
        };
        Duration::from_nanos(self.total + under_way)
    }
}
