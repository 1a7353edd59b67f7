//! The lock of a queue.
//!
//! The lock is held for some dozens of instructions, taken twice for each message, and rarely contended. So it is one
//! word, which is acquired with one locked instruction and released with a plain store. A lock that wakes sleeping
//! threads would need a second locked instruction for the release. Here no thread is woken: a thread that finds the
//! lock taken spins, yields a few times, and then sleeps for some microseconds at a time. It sleeps only if the thread
//! that holds the lock was interrupted.
#![allow(unsafe_code, reason = "the spin lock lends the value in its cell")]

#[cfg(not(loom))]
pub(super) type Lock<T> = SpinLock<T>;

/// The lock in loom models of the queue: loom's own mutex, because modelling each step of spinning would add only
/// equivalent orders.
#[cfg(loom)]
pub(super) struct Lock<T>(crate::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Lock<T> {
        Lock(crate::sync::Mutex::new(value))
    }

    pub(super) fn with<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        run(&mut self.0.lock().expect("nothing panics with the lock held"))
    }
}

use crate::edge::park::spin_or_sleep;
use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// A value and a flag that is set while a thread has access to the value.
#[cfg_attr(loom, allow(dead_code, reason = "models have another"))]
pub(super) struct SpinLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that has changed `held` from false to true accesses the value, so `T: Send` suffices.
unsafe impl<T: Send> Sync for SpinLock<T> {}

#[cfg_attr(loom, allow(dead_code, reason = "models have another"))]
impl<T> SpinLock<T> {
    pub(super) fn new(value: T) -> SpinLock<T> {
        SpinLock {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `run` with the value. `run` must not call this method again.
    #[inline]
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        if !self.acquire() {
            self.wait();
        }
        let _held = LockGuard(&self.held);
        // SAFETY: this thread has set `held`. No other thread accesses the value until the guard clears `held`, after
        // this borrow.
        self.value.with_mut(|value| run(unsafe { &mut *value }))
    }

    #[inline]
    fn acquire(&self) -> bool {
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Waits until the lock is acquired.
    #[cold]
    fn wait(&self) {
        // A load before the exchange leaves the word in the holder's cache. In a model, a load may return an old value
        // for ever.
        let seems_free = || cfg!(loom) || !self.held.load(Ordering::Relaxed);
        spin_or_sleep(|| seems_free() && self.acquire());
    }
}

/// A guard that releases the lock when it is dropped, even by a panic.
struct LockGuard<'a>(&'a AtomicBool);

impl Drop for LockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::SpinLock;
    use loom::thread;
    use std::sync::Arc;

    #[test]
    fn one_thread_at_a_time_has_the_value_and_sees_what_the_others_wrote() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let lock = Arc::new(SpinLock::new((0, 0)));
            let add = |lock: &SpinLock<(u32, u32)>| {
                lock.with(|(a, b)| {
                    *a += 1;
                    *b += 1;
                    assert_eq!(a, b);
                });
            };
            let other = {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    add(&lock);
                    add(&lock);
                })
            };
            add(&lock);
            other.join().expect("it does not panic");
            assert_eq!(lock.with(|value| *value), (3, 3));
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::SpinLock;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    #[test]
    fn more_threads_than_cores_lose_no_change() {
        const ROUNDS: u64 = if cfg!(miri) { 20 } else { 5_000 };
        let lock = SpinLock::new(0_u64);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..ROUNDS).for_each(|_| lock.with(|count| *count += 1)));
            }
        });
        assert_eq!(lock.with(|count| *count), 8 * ROUNDS);
    }

    #[test]
    fn a_panic_releases_it() {
        let lock = SpinLock::new(1);
        let result = catch_unwind(AssertUnwindSafe(|| lock.with(|_| panic!("a test"))));
        assert!(result.is_err());
        assert_eq!(lock.with(|value| *value), 1);
    }
}
