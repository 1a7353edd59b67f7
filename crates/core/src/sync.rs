//! The primitives of hand-written synchronisation: the standard ones, or those of `loom`, which
//! checks every interleaving of a small model (`cfg(loom)`).

#[cfg(not(loom))]
#[cfg_attr(
    not(all(feature = "edge", feature = "fork-join", feature = "threads")),
    allow(unused_imports, reason = "only optional modules use some imports")
)]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    },
    sync::{Condvar, Mutex},
};

/// `std::cell::UnsafeCell` with the access functions of loom's type, which observes each access.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Lends the contents for reading.
    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Lends the contents for writing.
    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A stopwatch that measures time by the wall clock. WebAssembly without a host has no clock, so there the measured
/// time is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))] std::time::Instant,
);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(
            #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
            std::time::Instant::now(),
        )
    }

    pub(crate) fn elapsed(self) -> std::time::Duration {
        #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
        return self.0.elapsed();
        #[cfg(all(target_family = "wasm", target_os = "unknown"))]
        std::time::Duration::ZERO
    }
}

/// Locks a mutex and ignores poisoning: no code of an actor runs under such a lock, so its value stays
/// consistent if a thread panics.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns how often a thread that waits for `waiters` others spins before it yields: zero if there are fewer cores
/// than threads. The function makes a system call, so store its result.
pub(crate) fn spins(waiters: usize) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Under miri one thread runs at a time.
    if waiters <= cores && !cfg!(miri) {
        2_000
    } else {
        0
    }
}

/// Performs one step of waiting for another thread: spins in the first `spins` steps, then yields.
#[cfg(not(loom))]
#[inline]
pub(crate) fn wait(tries: &mut u32, spins: u32) {
    if *tries < spins {
        *tries += 1;
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

#[cfg(loom)]
pub(crate) fn wait(_: &mut u32, _: u32) {
    loom::thread::yield_now();
}
