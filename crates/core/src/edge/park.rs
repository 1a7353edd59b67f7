//! How an end waits: a place for its waker, and a thread that sleeps until it is woken.
#![allow(
    unsafe_code,
    reason = "a cell holds the waker; a flag says which thread may touch it"
)]

use crate::sync::{AtomicBool, Ordering, UnsafeCell};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The waker of one end that waits.
///
/// Whose turn it is to touch it is said by a bit of a word elsewhere, *waits*: while it is
/// clear, the owner, which is the end that waits. The thread that clears the bit that the owner has set may
/// take the waker once, and says in `full` that this is over.
#[derive(Debug)]
pub(super) struct Parked {
    waker: UnsafeCell<Option<Waker>>,
    /// A waker was put in; it was not taken, nor has the owner taken its turn back.
    full: AtomicBool,
}

// SAFETY: `waker` is touched by turns only, as said above; `full` and the word order the accesses.
unsafe impl Sync for Parked {}

impl Parked {
    pub(super) fn new() -> Parked {
        Parked {
            waker: UnsafeCell::new(None),
            full: AtomicBool::new(false),
        }
    }

    /// The owner puts its waker in, before it sets *waits*. False if a thread is still taking
    /// the one before, which takes but a moment: try again.
    ///
    /// # Safety
    /// The caller is the owner, and *waits* is clear.
    pub(super) unsafe fn put(&self, waker: &Waker) -> bool {
        if self.full.load(Ordering::Acquire) {
            return false;
        }
        self.waker.with_mut(|kept| {
            // SAFETY: it is the owner's turn: *waits* is clear, and no thread is still taking.
            let kept = unsafe { &mut *kept };
            match kept {
                Some(kept) => kept.clone_from(waker),
                None => *kept = Some(waker.clone()),
            }
        });
        self.full.store(true, Ordering::Relaxed);
        true
    }

    /// The owner has its turn back: it has cleared *waits* itself, or failed to set it.
    ///
    /// # Safety
    /// The caller is the owner, and the waker that it has put in can no longer be taken.
    pub(super) unsafe fn take_back(&self) {
        self.full.store(false, Ordering::Relaxed);
    }

    /// The owner's waker, to be called.
    ///
    /// # Safety
    /// The caller has cleared *waits*, with an operation that acquires, and calls this once for it.
    #[cold]
    pub(super) unsafe fn take(&self) -> Option<Waker> {
        // SAFETY: it is the caller's turn, until `full` is cleared.
        let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
        self.full.store(false, Ordering::Release);
        waker
    }

    /// Wakes the owner.
    ///
    /// # Safety
    /// As [`Parked::take`].
    #[cold]
    pub(super) unsafe fn wake(&self) {
        // SAFETY: `wake` is called by the other end after it has claimed the waker, so no other thread takes or replaces it.
        if let Some(waker) = unsafe { self.take() } {
            waker.wake();
        }
    }
}

/// Polls until it is ready; the thread sleeps in between, until it is woken. Pending once it is later than
/// the deadline.
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

/// As [`block_until`], without a deadline.
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

    /// Sleeps until it is woken, or perhaps for no reason. False if it is later than the deadline.
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

    /// Lends the waker of this thread; makes one if the thread is ending.
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

    /// In a model a deadline is always over.
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

/// Waits awake for a moment for what another thread is about to do, if there is a core on which it can be
/// done. Whether it was done.
///
/// It does not yield: an end that sleeps lets the other get some way, and the two then meet once for many messages. Ends
/// that yield in between meet for each, and the scheduler switches threads for nothing.
#[cfg(not(loom))]
pub(super) fn spin_until(done: impl Fn() -> bool) -> bool {
    use std::sync::LazyLock;
    /// An end and the other end.
    static SPINS: LazyLock<bool> = LazyLock::new(|| crate::sync::spins(2) > 0);
    /// The first look comes late enough for the other end to have got some way: two ends that look
    /// at every step take the line with the index from each other for every message.
    const FIRST: u32 = 5;
    const ROUNDS: u32 = 8;
    *SPINS && spin(FIRST..ROUNDS, done)
}

/// Nothing that a model has to see.
#[cfg(loom)]
pub(super) fn spin_until(_: impl Fn() -> bool) -> bool {
    false
}

/// Waits for what takes another thread some dozens of instructions, unless it was interrupted.
#[cfg(not(loom))]
pub(super) fn spin_or_sleep(mut done: impl FnMut() -> bool) {
    use std::time::Duration;
    /// Microseconds.
    const LONGEST: u64 = 1 << 10;
    /// How many times other threads may run, among them the interrupted one, before this thread sleeps.
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

/// Spins twice as long in each round, until it is done. Whether it is.
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
