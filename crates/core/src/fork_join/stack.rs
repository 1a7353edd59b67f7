//! How deep a recursion may go.
//!
//! Forks nest on the machine's stack. Where a stack nears its end, the worker goes on on a fresh
//! one: a further thread takes the worker's place, and the thread before waits for it. So the
//! depth of a recursion is bounded by memory, and where memory ends there is a panic that says so
//! instead of an overflow.

use super::worker::Worker;
use std::panic::resume_unwind;
use std::thread;

/// The size of a stack, in bytes. Only what is used of it takes memory.
pub(super) const STACK: usize = 64 << 20;

/// What is kept free below the deepest fork, in bytes: for the user's code between two forks, and
/// for what the system needs.
pub(super) const RESERVE: usize = 256 << 10;

/// The stack on which a worker runs.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    lowest_fork: usize,
}

impl Extent {
    /// No bounds: of a worker that is no thread yet.
    pub(super) const UNLIMITED: Extent = Extent { lowest_fork: 0 };

    /// The stack of this size of the calling thread, which has used next to nothing of it.
    #[inline(never)]
    pub(super) fn of_new_thread(size: usize) -> Extent {
        let here = 0u8;
        let top = (&raw const here).addr();
        // Under miri addresses say nothing about the depth.
        let lowest = if cfg!(miri) {
            1
        } else {
            top.saturating_sub(size - RESERVE)
        };
        Extent {
            lowest_fork: lowest.max(1),
        }
    }

    /// The lowest address at which a fork may begin.
    #[inline]
    pub(super) fn lowest_fork(self) -> usize {
        self.lowest_fork
    }
}

/// Goes on with `work` on a fresh stack; the calling thread, which is `worker`, waits.
///
/// # Panics
/// If there is not enough memory or no thread left for another stack. And with what `work`
/// panics with.
#[cold]
#[inline(never)]
pub(super) fn on_fresh_stack<R: Send>(worker: &Worker, work: impl FnOnce() -> R + Send) -> R {
    if let Some(available) = available_memory()
        && available < 2 * STACK as u64
    {
        panic!(
            "fork-join: the recursion is too deep: {} MiB of memory are left, \
             another stack may take {} MiB; fork less deeply, or give the process more memory",
            available >> 20,
            STACK >> 20
        );
    }
    thread::scope(|scope| {
        let started = thread::Builder::new()
            .name(String::from("corsair-fork-join"))
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                // SAFETY: the thread that is the worker waits for this one, in `join` below.
                unsafe { worker.embody(Extent::of_new_thread(STACK), |_| work()) }
            });
        match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(refusal) => panic!(
                "fork-join: the recursion is too deep: the system refuses another stack of \
                 {} MiB: {refusal}; fork less deeply, or raise the limits on threads and memory",
                STACK >> 20
            ),
        }
    })
}

/// How much memory the system could still give, in bytes, if it tells (Linux does).
fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
