//! The maximum depth of recursion.
//!
//! Nested forks use the stack of their thread. Near the end of a stack the worker continues on a new stack: another
//! thread acts as the worker, and the previous thread waits for it. So only memory limits the depth of recursion. When
//! memory runs out, there is a panic with a message instead of a stack overflow.
#![allow(unsafe_code, reason = "libc reports the extent of a stack")]

use super::worker::Worker;
use crate::memory::available_memory;
use std::panic::resume_unwind;
use std::thread;

/// The size of a stack in bytes. Only the used part takes memory.
pub(super) const STACK: usize = 64 << 20;

/// The number of bytes reserved below the deepest fork, for the user's code between two forks and for the system.
pub(super) const RESERVE: usize = 256 << 10;

/// The stack on which a worker runs.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    lowest_fork: usize,
}

impl Extent {
    /// The extent of a worker that has no thread yet: it permits any depth.
    pub(super) const UNLIMITED: Extent = Extent { lowest_fork: 0 };

    /// Returns the stack of the calling thread, which has just started and has a stack of this size.
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

    /// Returns the stack of the calling thread, which is not a worker.
    fn of_this_thread() -> Extent {
        let lowest = lowest_address().map_or(1, |(lowest, size)| lowest + RESERVE.min(size / 4));
        Extent {
            lowest_fork: lowest,
        }
    }

    /// The lowest address at which a fork may begin.
    #[inline]
    pub(super) fn lowest_fork(self) -> usize {
        self.lowest_fork
    }
}

thread_local! {
    /// The stack of this thread while the thread is not a worker.
    static OWN: Extent = Extent::of_this_thread();
}

/// True if the stack of the calling function is too full for another fork on it.
#[inline(never)]
pub(super) fn is_low() -> bool {
    let here = 0u8;
    let extent = match Worker::current() {
        Some(worker) => worker.stack(),
        // The thread-local value is gone while the thread ends.
        None => OWN.try_with(|extent| *extent).unwrap_or(Extent::UNLIMITED),
    };
    (&raw const here).addr() < extent.lowest_fork
}

/// Returns the lowest address of the calling thread's stack, and its size in bytes, if the system reports
/// them.
#[cfg(all(target_os = "linux", not(miri)))]
fn lowest_address() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut lowest = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: the attributes are initialised by the first call before the others use them, and
    // are not used after the last.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let status = libc::pthread_attr_getstack(attributes.as_ptr(), &mut lowest, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (status == 0).then(|| (lowest.addr(), size))
    }
}

/// Returns `None`, because only Linux is supported.
#[cfg(any(not(target_os = "linux"), miri))]
fn lowest_address() -> Option<(usize, usize)> {
    None
}

/// Runs `work` as `worker` on a new stack. The calling thread waits.
///
/// # Panics
/// If there is not enough memory for another stack, or the operating system cannot start a thread. If `work` panics,
/// with the same panic.
#[cold]
#[inline(never)]
pub(super) fn on_fresh_stack<R: Send>(worker: &Worker, work: impl FnOnce() -> R + Send) -> R {
    assert!(
        has_memory(),
        "fork-join: the recursion is too deep: there is no memory left for another stack, which \
         may take {} MiB; fork less deeply, or give the process more memory",
        STACK >> 20
    );
    thread::scope(|scope| {
        let started = thread::Builder::new()
            .name(String::from("corsair-fork-join"))
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                // SAFETY: the thread that acted as the worker waits for this thread in `join` below.
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

/// True if there is memory for two more stacks: one for the recursion, and one in reserve for the panic if memory runs
/// out.
fn has_memory() -> bool {
    let wanted = 2 * STACK;
    let mut addresses = Vec::<u8>::new();
    let reserved = addresses.try_reserve_exact(wanted).is_ok();
    // Prevents the compiler from removing the unused reservation.
    std::hint::black_box(&mut addresses);
    reserved && available_memory().is_none_or(|available| available >= wanted as u64)
}
