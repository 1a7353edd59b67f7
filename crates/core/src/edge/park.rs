//! Waiting: a cell for the waker of an end, and threads that sleep until they are woken.
#![allow(
    unsafe_code,
    reason = "a cell holds the waker; a flag says which thread may access it"
)]

use crate::sync::{AtomicBool, Ordering, UnsafeCell};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The waker of a waiting end.
///
/// A bit called *waits* in an atomic word elsewhere decides which thread may access the cell. While the bit is clear,
/// only the owner may access the cell; the owner is the end that waits. After the owner has set the bit, a thread that
/// clears the bit may take the waker once, and then clears `full`.
#[derive(Debug)]
pub(super) struct ParkedWaker {
    waker: UnsafeCell<Option<Waker>>,
    /// True while the cell contains a waker that neither another thread nor the owner has taken.
    full: AtomicBool,
}

// SAFETY: one thread at a time accesses `waker`: the owner while *waits* is clear and `full` is false, otherwise the
// thread that has cleared *waits*. Atomic operations on `full` and on the word with *waits* order these accesses.
unsafe impl Sync for ParkedWaker {}

impl ParkedWaker {
    pub(super) fn new() -> ParkedWaker {
        ParkedWaker {
            waker: UnsafeCell::new(None),
            full: AtomicBool::new(false),
        }
    }

    /// Stores the owner's waker, before the owner sets *waits*. Returns false if another thread is still taking the
    /// previous waker. That takes only a moment, so the caller should try again.
    ///
    /// # Safety
    /// The caller is the owner, and *waits* is clear.
    pub(super) unsafe fn put(&self, waker: &Waker) -> bool {
        if self.full.load(Ordering::Acquire) {
            return false;
        }
        self.waker.with_mut(|kept| {
            // SAFETY: *waits* is clear and `full` is false, so no other thread accesses the cell.
            let kept = unsafe { &mut *kept };
            match kept {
                Some(kept) => kept.clone_from(waker),
                None => *kept = Some(waker.clone()),
            }
        });
        self.full.store(true, Ordering::Relaxed);
        true
    }

    /// Returns the cell to the owner, which has cleared *waits* itself or failed to set it.
    ///
    /// # Safety
    /// The caller is the owner, and no other thread can take the stored waker any more.
    pub(super) unsafe fn take_back(&self) {
        self.full.store(false, Ordering::Relaxed);
    }

    /// Takes the owner's waker, so that the caller can call it.
    ///
    /// # Safety
    /// The caller has cleared *waits* with an acquire operation, and calls this method once for each time that it has
    /// done so.
    #[cold]
    pub(super) unsafe fn take(&self) -> Option<Waker> {
        // SAFETY: the caller has cleared *waits*, so only it accesses the cell until `full` is cleared.
        let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
        self.full.store(false, Ordering::Release);
        waker
    }
}

/// Polls until the result is ready; between polls the thread sleeps until it is woken. Returns `Pending` after the
/// deadline.
pub(super) fn block_until<R>(
    deadline: Option<Instant>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>,
) -> Poll<R> {
    thread::with_waker(|waker| {
        let mut context = Context::from_waker(waker);
        loop {
            let result = poll(&mut context);
            if result.is_ready() || !thread::park(deadline) {
                return result;
            }
        }
    })
}

/// Polls like [`block_until`], but without a deadline.
pub(super) fn block_on<R>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>) -> R {
    loop {
        if let Poll::Ready(result) = block_until(None, &mut poll) {
            return result;
        }
    }
}

#[cfg(not(loom))]
mod thread {
    use std::sync::Arc;
    use std::task::{Wake, Waker};
    use std::thread::{self, Thread};
    use std::time::Instant;

    /// Sleeps until the thread is woken, perhaps spuriously. Returns false after the deadline.
    pub(super) fn park(deadline: Option<Instant>) -> bool {
        let Some(deadline) = deadline else {
            thread::park();
            return true;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        thread::park_timeout(left);
        true
    }

    struct Sleeper(Thread);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            self.0.unpark();
        }
    }

    fn waker() -> Waker {
        Waker::from(Arc::new(Sleeper(thread::current())))
    }

    thread_local! {
        static WAKER: Waker = waker();
    }

    /// Passes the waker of this thread to a function. Creates a new waker if the thread is ending and its own waker no
    /// longer exists.
    pub(super) fn with_waker<R>(mut run: impl FnMut(&Waker) -> R) -> R {
        match WAKER.try_with(Waker::clone) {
            Ok(waker) => run(&waker),
            Err(_) => run(&waker()),
        }
    }
}

#[cfg(loom)]
mod thread {
    use loom::thread::{self, Thread};
    use std::sync::Arc;
    use std::task::{Wake, Waker};
    use std::time::Instant;

    /// In a loom model, every deadline has passed.
    pub(super) fn park(deadline: Option<Instant>) -> bool {
        if deadline.is_none() {
            thread::park();
        }
        deadline.is_none()
    }

    struct Sleeper(Thread);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    pub(super) fn with_waker<R>(mut run: impl FnMut(&Waker) -> R) -> R {
        run(&Waker::from(Arc::new(Sleeper(thread::current()))))
    }
}

/// Spins for a moment until another thread's action is done, if a core is available for that thread. Returns whether
/// the action is done.
///
/// The thread does not yield while it spins. If an end sleeps instead, the other end gets ahead of it, so both
/// synchronise only once for many messages. Ends that yield would synchronise for each message, with a useless thread
/// switch each time.
#[cfg(not(loom))]
pub(super) fn spin_until(done: impl Fn() -> bool) -> bool {
    use std::sync::LazyLock;
    /// True if there are cores for two threads, one for each end.
    static SPINS: LazyLock<bool> = LazyLock::new(|| crate::sync::spins(2) > 0);
    /// The first check is late enough for the other end to get ahead: two ends that check at every step take
    /// the cache line of the index from each other for every message.
    const FIRST: u32 = 5;
    const ROUNDS: u32 = 8;
    *SPINS && spin(FIRST..ROUNDS, done)
}

/// In a loom model spinning has no effect, so this function does nothing.
#[cfg(loom)]
pub(super) fn spin_until(_: impl Fn() -> bool) -> bool {
    false
}

/// Waits for an action of another thread that takes some dozens of instructions, or longer if that thread is
/// interrupted.
#[cfg(not(loom))]
pub(super) fn spin_or_sleep(mut done: impl FnMut() -> bool) {
    use std::time::Duration;
    /// The longest sleep, in microseconds.
    const LONGEST: u64 = 1 << 10;
    /// The number of times that this thread yields before it sleeps. A yield lets the awaited thread run if that thread was
    /// interrupted.
    const YIELDS: u32 = 8;
    let mut pause = 1;
    loop {
        if spin(0..7, &mut done) {
            return;
        }
        for _ in 0..YIELDS {
            std::thread::yield_now();
            if done() {
                return;
            }
        }
        std::thread::sleep(Duration::from_micros(pause));
        pause = (2 * pause).min(LONGEST);
    }
}

#[cfg(loom)]
pub(super) fn spin_or_sleep(mut done: impl FnMut() -> bool) {
    while !done() {
        loom::thread::yield_now();
    }
}

/// Spins until `done` returns true, in each round twice as long as in the previous one. Returns false if `done` is
/// still false after the last round.
#[cfg(not(loom))]
fn spin(rounds: std::ops::Range<u32>, mut done: impl FnMut() -> bool) -> bool {
    for round in rounds {
        for _ in 0..1 << round {
            std::hint::spin_loop();
        }
        if done() {
            return true;
        }
    }
    false
}
