//! Counters of the two ends, each on separate cache lines.

use crate::edge::clock;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that one thread at a time writes and all threads may read.
#[derive(Debug)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds without a locked instruction, because there is only one writer.
    #[inline]
    pub(super) fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }
}

/// The time that an end has spent blocked.
#[derive(Debug)]
pub(super) struct Blocked {
    /// Nanoseconds of waits that are over.
    total: Counter,
    /// The start of the current wait; 0 while the end is not waiting.
    since: Counter,
}

impl Blocked {
    fn new() -> Blocked {
        Blocked {
            total: Counter::new(),
            since: Counter::new(),
        }
    }

    pub(super) fn begin(&self) {
        self.since.set(clock::now());
    }

    pub(super) fn end(&self) {
        let since = self.since.get();
        if since != 0 {
            self.since.set(0);
            self.total.add(clock::now().saturating_sub(since));
        }
    }

    /// Returns the total time, including the current wait.
    pub(super) fn read(&self) -> Duration {
        let under_way = match self.since.get() {
            0 => 0,
            since => clock::now().saturating_sub(since),
        };
        Duration::from_nanos(self.total.get() + under_way)
    }
}

/// Counters that the sending end writes.
#[derive(Debug)]
pub(super) struct SenderCounters {
    /// The weight of published messages; not counted if all messages weigh 1.
    pub(super) weight: Counter,
    /// The weight of messages that the overflow policy has dropped.
    pub(super) dropped: Counter,
    /// The maximum number of messages buffered at once.
    pub(super) high_water: Counter,
    pub(super) blocked: Blocked,
}

/// Counters that the receiving end writes.
#[derive(Debug)]
pub(super) struct ReceiverCounters {
    /// The weight of received messages; not counted if the head of the ring has it.
    pub(super) weight: Counter,
    pub(super) blocked: Blocked,
}

impl SenderCounters {
    pub(super) fn new() -> SenderCounters {
        SenderCounters {
            weight: Counter::new(),
            dropped: Counter::new(),
            high_water: Counter::new(),
            blocked: Blocked::new(),
        }
    }
}

impl ReceiverCounters {
    pub(super) fn new() -> ReceiverCounters {
        ReceiverCounters {
            weight: Counter::new(),
            blocked: Blocked::new(),
        }
    }
}
