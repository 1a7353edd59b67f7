//! Keeps each worker of the engine on one processor, together with the hosts that it starts.
//!
//! A worker, its hosts and their threads take turns, and to wake a thread on another processor takes longer than most
//! turns. If the system refuses, a simulation is only slower.
#![allow(unsafe_code, reason = "calls the scheduler")]

use crate::kernel::tsc;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The processors that this process may use, in order. The first is the one on which the first worker ran.
static ALL: OnceLock<Vec<usize>> = OnceLock::new();
/// The number of workers that have a processor.
static WORKERS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns the processor of the calling worker. The first call of a worker chooses one, keeps the worker there, and lets it
/// read the processor's clock as its hosts do.
pub(crate) fn of_this_worker() -> Option<usize> {
    if MINE.get().is_none() {
        let all = ALL.get_or_init(all);
        let index = WORKERS.fetch_add(1, Ordering::Relaxed) % all.len().max(1);
        MINE.set(all.get(index).copied());
        MINE.get().inspect(|&processor| stay_on(processor));
        tsc::install_in_worker();
    }
    MINE.get()
}

/// Keeps the calling thread, and those that it starts, on a processor.
pub(crate) fn stay_on(processor: usize) {
    // SAFETY: all-zero bytes are an empty set, and both calls access no other memory than the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

fn all() -> Vec<usize> {
    // SAFETY: all-zero bytes are an empty set, and the calls access no other memory than the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        let every = 0..libc::CPU_SETSIZE as usize;
        let mut all: Vec<usize> = every.filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect();
        let here = usize::try_from(libc::sched_getcpu()).unwrap_or(0);
        let first = all.iter().position(|&cpu| cpu == here).unwrap_or(0);
        all.rotate_left(first);
        all
    }
}
