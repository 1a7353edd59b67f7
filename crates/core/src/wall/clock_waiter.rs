//! The sleep of the clock thread, which is woken only for work that is due before the end of its sleep.
//!
//! The clock thread announces that it is looking, checks all work under a lock, and then announces the end of its sleep
//! and sleeps. Another thread adds work under the same lock, and then reads the announcement. If the clock thread took
//! the lock before the work was added, the other thread sees the announcement and wakes the clock thread if necessary.
//! If the clock thread takes the lock later, it sees the added work.

use crate::contract::Time;
use crate::sync::{AtomicU64, Ordering::Relaxed};
#[cfg(loom)]
use crate::sync::{Condvar, Mutex};
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// The clock thread's sleep; see the [module](self).
#[derive(Debug)]
pub(super) struct ClockWaiter {
    /// The end of the sleep; work that is due later does not wake the thread.
    until: AtomicU64,
    notified: Mutex<bool>,
    changed: Condvar,
}

impl ClockWaiter {
    pub(super) fn new() -> ClockWaiter {
        ClockWaiter {
            until: AtomicU64::new(u64::MAX),
            notified: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Announces that the thread is about to look: from now on all new work wakes it.
    pub(super) fn look(&self) {
        self.until.store(u64::MAX, Relaxed);
    }

    /// Sleeps until `until`, for at most `pause`, or until a thread that adds earlier work wakes it. Such work may have
    /// been added since the announcement.
    pub(super) fn sleep(&self, until: Time, pause: Duration) {
        let mut notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
        if !*notified {
            self.until.store(until.0, Relaxed);
            notified = match self.changed.wait_timeout(notified, pause) {
                Ok((notified, _)) => notified,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        *notified = false;
    }

    /// Announces added work with this due time.
    pub(super) fn notify(&self, due: Time) {
        if due.0 < self.until.load(Relaxed) {
            let mut notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::replace(&mut *notified, true) {
                self.changed.notify_one();
            }
        }
    }
}

/// Loom models: `RUSTFLAGS="--cfg loom" cargo test -p corsair --release --lib clock_waiter::loom`.
#[cfg(all(test, loom))]
mod loom {
    use super::ClockWaiter;
    use crate::contract::Time;
    use loom::sync::{Arc, Mutex};
    use loom::thread;
    use std::time::Duration;

    /// Each thread adds work with the given due times, and a clock thread takes out the work that it finds. The clock
    /// thread sleeps without a limit, first until 10 and then until 20, so loom reports an endless wait if a wake-up is
    /// lost.
    fn keeper_finds_all(added: &'static [&'static [u64]]) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let waiter = Arc::new(ClockWaiter::new());
            let shards: Vec<_> = added
                .iter()
                .map(|_| Arc::new(Mutex::new(Vec::new())))
                .collect();
            let adders: Vec<_> = shards
                .iter()
                .zip(added)
                .map(|(shard, added)| {
                    let (waiter, shard) = (Arc::clone(&waiter), Arc::clone(shard));
                    thread::spawn(move || {
                        for &due in *added {
                            shard.lock().unwrap().push(due);
                            waiter.notify(Time(due));
                        }
                    })
                })
                .collect();
            let mut left: usize = added.iter().map(|added| added.len()).sum();
            let mut until = 10;
            loop {
                waiter.look();
                for shard in &shards {
                    left -= std::mem::take(&mut *shard.lock().unwrap()).len();
                }
                if left == 0 {
                    break;
                }
                waiter.sleep(Time(until), Duration::MAX);
                until = 20;
            }
            for adder in adders {
                adder.join().unwrap();
            }
        });
    }

    #[test]
    fn work_due_before_the_end_of_the_sleep_wakes_the_waiter() {
        keeper_finds_all(&[&[5]]);
        keeper_finds_all(&[&[5, 4]]);
        keeper_finds_all(&[&[5, 15]]);
        keeper_finds_all(&[&[5], &[6]]);
    }
}
